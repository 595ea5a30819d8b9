/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bare sockets of the kernel, beside which the provider's network is measured:
 * TCP from 127.0.0.1 to 127.0.0.2, as between the NICs, and threads that block
 * in them.
 */
#ifndef _KFI_BENCH_SOCKET_H_
#define _KFI_BENCH_SOCKET_H_

#include <linux/in.h>
#include <linux/net.h>
#include <linux/types.h>

/**
 * struct bench_listener - where connections come to
 * @socket: listens
 * @name: its address and port
 */
struct bench_listener {
	struct socket *socket;
	struct sockaddr_in name;
};

int bench_listen(struct bench_listener *listener);
void bench_close_listener(struct bench_listener *listener);

/**
 * bench_connect() - makes a connection
 * @listener: where to
 * @ends: the socket that has connected, and the one that was accepted, both
 *	without delay; the caller's to close
 *
 * Return: 0, or an error
 */
int bench_connect(struct bench_listener *listener, struct socket *ends[2]);

/* Closes a socket, if there is one, at once: nothing of the connection is left. */
void bench_close_socket(struct socket *socket);

/* Sends all of it, by one call. */
int bench_socket_send(struct socket *socket, void *from, size_t len);

/* Receives all of it, or with @some what is there; returns how many bytes, or an error. */
int bench_socket_receive(struct socket *socket, void *to, size_t len, bool some);

#endif /* _KFI_BENCH_SOCKET_H_ */
