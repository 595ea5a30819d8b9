// SPDX-License-Identifier: GPL-2.0
/*
 * For rust/kfi/linux/socket.rs: members of struct sock and struct net_device, which Rust does not
 * see.
 */
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <net/inet_connection_sock.h>
#include <net/inet_sock.h>
#include <net/route.h>
#include <net/tcp.h>

#include "helpers_socket.h"

/* For a new socket; tells the callbacks that it has. */
void kfi_rust_helper_sock_set_up(struct sock *sk, struct sock_callbacks *callbacks)
{
	sk->sk_allocation = GFP_NOIO;
	/* A send in reclaim may come in the middle of another send of the same task. */
	sk->sk_use_task_frag = false;

	callbacks->data_ready = sk->sk_data_ready;
	callbacks->write_space = sk->sk_write_space;
	callbacks->state_change = sk->sk_state_change;
}

/* Data is not for sockets that are accepted from this one; these have its callbacks though. */
void *kfi_rust_helper_sock_exchange_callbacks(struct sock *sk, void *data,
					      const struct sock_callbacks *callbacks)
{
	void *before;

	write_lock_bh(&sk->sk_callback_lock);
	before = __locked_read_sk_user_data_with_flags(sk, 0);
	if (data)
		__rcu_assign_sk_user_data_with_flags(sk, data, SK_USER_DATA_NOCOPY);
	else
		rcu_assign_sk_user_data(sk, NULL);
	WRITE_ONCE(sk->sk_data_ready, callbacks->data_ready);
	WRITE_ONCE(sk->sk_write_space, callbacks->write_space);
	WRITE_ONCE(sk->sk_state_change, callbacks->state_change);
	write_unlock_bh(&sk->sk_callback_lock);
	return before;
}

void *kfi_rust_helper_sock_lock_callbacks(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
	return __locked_read_sk_user_data_with_flags(sk, 0);
}

void kfi_rust_helper_sock_unlock_callbacks(struct sock *sk)
{
	read_unlock_bh(&sk->sk_callback_lock);
}

bool kfi_rust_helper_sk_stream_is_writeable(const struct sock *sk)
{
	return sk_stream_is_writeable(sk);
}

/* Tells once why it is not, and will not be. */
int kfi_rust_helper_tcp_is_connected(struct sock *sk)
{
	switch (inet_sk_state_load(sk)) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return 0;
	case TCP_CLOSE:
		return sock_error(sk) ?: -ENOTCONN;
	default:
		return 1;
	}
}

/* Else each would have a port to itself, whoever it connects to. */
void kfi_rust_helper_inet_port_at_connect(struct sock *sk)
{
	inet_set_bit(BIND_ADDRESS_NO_PORT, sk);
}

bool kfi_rust_helper_inet_is_local(__be32 address)
{
	return inet_addr_type(&init_net, address) == RTN_LOCAL;
}

/* The first one that a device of the initial network namespace has. */
int kfi_rust_helper_inet_of_device(const char *name, __be32 *address)
{
	const struct in_ifaddr *first = NULL;
	const struct in_device *in_dev;
	const struct net_device *dev;
	int ret = -ENODEV;

	rcu_read_lock();
	dev = dev_get_by_name_rcu(&init_net, name);
	if (dev) {
		in_dev = __in_dev_get_rcu(dev);
		if (in_dev)
			first = rcu_dereference(in_dev->ifa_list);
		ret = first ? 0 : -EADDRNOTAVAIL;
	}
	if (first)
		*address = first->ifa_local;
	rcu_read_unlock();
	return ret;
}

unsigned int kfi_rust_helper_tcp_user_timeout(const struct sock *sk)
{
	return READ_ONCE(inet_csk(sk)->icsk_user_timeout);
}

/* In jiffies: since when neither data nor an acknowledgement has come. */
unsigned int kfi_rust_helper_tcp_silence(struct sock *sk)
{
	unsigned int silence;
	bool slow;

	slow = lock_sock_fast(sk);
	silence = keepalive_time_elapsed(tcp_sk(sk));
	unlock_sock_fast(sk, slow);
	return silence;
}

/* How many bytes were sent that the other side does not say to have, its end included. */
unsigned int kfi_rust_helper_tcp_unacknowledged(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->write_seq) - READ_ONCE(tcp_sk(sk)->snd_una);
}

/* Whether there is, behind data, what nobody is told of again: an end, an error, or urgent data. */
bool kfi_rust_helper_tcp_has_more_to_tell(struct sock *sk)
{
	return READ_ONCE(sk->sk_err) || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN ||
	       inet_sk_state_load(sk) == TCP_CLOSE || READ_ONCE(tcp_sk(sk)->urg_data);
}
