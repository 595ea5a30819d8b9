// SPDX-License-Identifier: GPL-2.0
/*
 * Bare sockets of the kernel.
 */
#include <linux/jiffies.h>
#include <linux/socket.h>
#include <linux/tcp.h>
#include <linux/uio.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "socket.h"

#define SOURCE INADDR_LOOPBACK
#define TARGET (INADDR_LOOPBACK + 1)
#define BACKLOG 64
#define TIMEOUT_S 30

/* A socket at one of the addresses, which gives up some time. */
static int open_socket(u32 address, struct socket **opened)
{
	struct sockaddr_in name = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(address),
	};
	struct socket *socket;
	int ret;

	ret = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &socket);
	if (ret)
		return ret;
	WRITE_ONCE(socket->sk->sk_rcvtimeo, TIMEOUT_S * HZ);
	sock_set_sndtimeo(socket->sk, TIMEOUT_S);
	tcp_sock_set_nodelay(socket->sk);
	sock_no_linger(socket->sk);
	ret = kernel_bind(socket, (struct sockaddr_unsized *)&name, sizeof(name));
	if (ret)
		sock_release(socket);
	else
		*opened = socket;
	return ret;
}

int bench_listen(struct bench_listener *listener)
{
	int ret;

	*listener = (struct bench_listener) {};
	ret = open_socket(TARGET, &listener->socket);
	if (!ret)
		ret = kernel_listen(listener->socket, BACKLOG);
	if (!ret)
		ret = kernel_getsockname(listener->socket, (struct sockaddr *)&listener->name);
	if (ret < 0) {
		bench_close_listener(listener);
		return ret;
	}
	return 0;
}

void bench_close_listener(struct bench_listener *listener)
{
	bench_close_socket(listener->socket);
	listener->socket = NULL;
}

int bench_connect(struct bench_listener *listener, struct socket *ends[2])
{
	struct sockaddr_in name = listener->name;
	int ret;

	ends[0] = NULL;
	ends[1] = NULL;
	ret = open_socket(SOURCE, &ends[0]);
	if (!ret)
		ret = kernel_connect(ends[0], (struct sockaddr_unsized *)&name, sizeof(name), 0);
	/* Has the options and the timeouts of the listener. */
	if (!ret)
		ret = kernel_accept(listener->socket, &ends[1], 0);
	if (ret) {
		bench_close_socket(ends[0]);
		ends[0] = NULL;
	}
	return ret;
}

void bench_close_socket(struct socket *socket)
{
	if (socket)
		sock_release(socket);
}

int bench_socket_send(struct socket *socket, void *from, size_t len)
{
	struct kvec vec = { .iov_base = from, .iov_len = len };
	struct msghdr msg = {};
	int ret;

	ret = kernel_sendmsg(socket, &msg, &vec, 1, len);
	if (ret < 0)
		return ret;
	return ret == len ? 0 : -ETIMEDOUT;
}

int bench_socket_receive(struct socket *socket, void *to, size_t len, bool some)
{
	struct kvec vec = { .iov_base = to, .iov_len = len };
	struct msghdr msg = {};
	int ret;

	ret = kernel_recvmsg(socket, &msg, &vec, 1, len, some ? 0 : MSG_WAITALL);
	if (ret < 0)
		return ret;
	return ret && (some || ret == len) ? ret : -ECONNRESET;
}
