/* SPDX-License-Identifier: GPL-2.0 */
/* Prototypes of helpers_socket.inc.c, for modules that have the part linux_socket of rust/kfi. */
#ifndef _KFI_RUST_HELPERS_SOCKET_H
#define _KFI_RUST_HELPERS_SOCKET_H

#include <linux/net.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/sock.h>

/**
 * struct sock_callbacks - what a socket calls, in softirqs or under its lock
 * @data_ready: there is something to read or to accept
 * @write_space: there is room to write again
 * @state_change: it has been connected, or has come to its end
 */
struct sock_callbacks {
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
};

void kfi_rust_helper_sock_set_up(struct sock *sk, struct sock_callbacks *callbacks);
void *kfi_rust_helper_sock_exchange_callbacks(struct sock *sk, void *data,
					      const struct sock_callbacks *callbacks);
void *kfi_rust_helper_sock_lock_callbacks(struct sock *sk);
void kfi_rust_helper_sock_unlock_callbacks(struct sock *sk);
bool kfi_rust_helper_sk_stream_is_writeable(const struct sock *sk);
int kfi_rust_helper_tcp_is_connected(struct sock *sk);
void kfi_rust_helper_inet_port_at_connect(struct sock *sk);
bool kfi_rust_helper_inet_is_local(__be32 address);
int kfi_rust_helper_inet_of_device(const char *name, __be32 *address);
unsigned int kfi_rust_helper_tcp_user_timeout(const struct sock *sk);
unsigned int kfi_rust_helper_tcp_silence(struct sock *sk);
unsigned int kfi_rust_helper_tcp_unacknowledged(const struct sock *sk);
bool kfi_rust_helper_tcp_has_more_to_tell(struct sock *sk);

#endif /* _KFI_RUST_HELPERS_SOCKET_H */
