// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that LNet takes from elsewhere and the test kernels do not have: a part of libcfs
 * instead of the files of Lustre that stand between it and the kernel.
 *
 * Functions that the kernel does not export are found there by a kprobe. LNet uses three, so that
 * the timers of lnet_selftest run on certain CPUs: here they run anywhere. Checksums are
 * registered there that only the file system computes. Two functions are of sunrpc, and one that
 * socklnd calls for its checksums is not in every kernel.
 */
#define DEBUG_SUBSYSTEM S_LNET

#include <linux/crc32.h>
#include <linux/inet.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/workqueue.h>

#include <lustre_compat/linux/mm.h>
#include <lustre_compat/linux/module.h>
#include <lustre_compat/linux/vmalloc.h>
#include <lustre_compat/linux/workqueue.h>
#include <linux/libcfs/libcfs.h>
#include <linux/lnet/lnet_crypto.h>
#include <linux/sunrpc/addr.h>

/* --- instead of lustre_compat --- */

int __init cfs_arch_init(void)
{
	init_compat_vfree_atomic();
	return 0;
}

void cfs_arch_exit(void)
{
	exit_compat_vfree_atomic();
}

unsigned long compat_totalram_pages(void)
{
	return totalram_pages();
}
EXPORT_SYMBOL(compat_totalram_pages);

struct workqueue_attrs *compat_alloc_workqueue_attrs(void)
{
	struct workqueue_attrs *attrs;

	attrs = kzalloc_obj(*attrs);
	if (!attrs)
		return NULL;
	if (!zalloc_cpumask_var(&attrs->cpumask, GFP_KERNEL)) {
		kfree(attrs);
		return NULL;
	}
	return attrs;
}
EXPORT_SYMBOL(compat_alloc_workqueue_attrs);

void compat_free_workqueue_attrs(struct workqueue_attrs *attrs)
{
	if (!attrs)
		return;
	free_cpumask_var(attrs->cpumask);
	kfree(attrs);
}
EXPORT_SYMBOL(compat_free_workqueue_attrs);

int compat_apply_workqueue_attrs(struct workqueue_struct *queue,
				 const struct workqueue_attrs *attrs)
{
	return 0;
}
EXPORT_SYMBOL(compat_apply_workqueue_attrs);

/* --- instead of lnet-crypto --- */

int cfs_crypto_register(void)
{
	return 0;
}
EXPORT_SYMBOL(cfs_crypto_register);

void cfs_crypto_unregister(void)
{
}
EXPORT_SYMBOL(cfs_crypto_unregister);

/* --- instead of sunrpc: addresses of IPv4 only --- */

size_t rpc_ntop(const struct sockaddr *address, char *text, const size_t room)
{
	const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)address;

	return address->sa_family == AF_INET ? snprintf(text, room, "%pI4", &ipv4->sin_addr) : 0;
}
EXPORT_SYMBOL(rpc_ntop);

size_t rpc_pton(struct net *net, const char *text, const size_t length, struct sockaddr *address,
		const size_t room)
{
	struct sockaddr_in ipv4 = { .sin_family = AF_INET };

	if (room < sizeof(ipv4) || !in4_pton(text, length, (u8 *)&ipv4.sin_addr, '\0', NULL))
		return 0;
	memcpy(address, &ipv4, sizeof(ipv4));
	return sizeof(ipv4);
}
EXPORT_SYMBOL(rpc_pton);

/* --- instead of lib/crc --- */

#if !IS_ENABLED(CONFIG_CRC32)
u32 crc32_le(u32 crc, const void *bytes, size_t length)
{
	const u8 *byte = bytes;
	int bit;

	while (length--) {
		crc ^= *byte++;
		for (bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320 : 0);
	}
	return crc;
}
EXPORT_SYMBOL(crc32_le);
#endif
