/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stands for the config.h that Lustre's configure writes: what it would find on the kernels of
 * scripts/kernel, as far as libcfs, lnet, lnet_selftest and kkfilnd ask. The version, and what
 * configure finds out about kfabric, are added by the script build.
 */

/* The kernel's functions, structures and headers that are there. */
#define HAVE_CONST_CTR_TABLE 1
#define HAVE_DEBUGFS_LOOKUP_AND_REMOVE 1
#define HAVE_FLUSH___WORKQUEUE 1
#define HAVE_IN_DEV_FOR_EACH_IFA_RTNL 1
#define HAVE_IP6_SET_PREF 1
#define HAVE_IP_SET_TOS 1
#define HAVE_KFREE_SENSITIVE 1
#define HAVE_KMAP_LOCAL 1
#define HAVE_LINUX_FORTIFY_STRING_HEADER 1
#define HAVE_LINUX_STDARG_HEADER 1
#define HAVE_MMAP_LOCK 1
#define HAVE_MMAP_WRITE_TRYLOCK 1
#define HAVE_NETDEV_LOCK_OPS 1
#define HAVE_NLA_GET_S32 1
#define HAVE_NLA_GET_S64 1
#define HAVE_NLA_STRDUP 1
#define HAVE_PANIC_NOTIFIER_H 1
#define HAVE_PARAM_SET_UINT_MINMAX 1
#define HAVE_PROC_OPS 1
#define HAVE_RB_FIND 1
#define HAVE_SENDPAGE_OK 1
#define HAVE_SHRINKER_ALLOC 1
#define HAVE_SOCK_INUSE_ADD 1
#define HAVE_SOCK_NOT_OWNED_BY_ME 1
#define HAVE_STRUCT_SOCKADDR_UNSIZED 1
#define HAVE_TASK_IS_RUNNING 1
#define HAVE_TCP_SOCK_SET_KEEPCNT 1
#define HAVE_TCP_SOCK_SET_KEEPINTVL 1
#define HAVE_TCP_SOCK_SET_QUICKACK 1
#define HAVE_TIMER_DELETE 1
#define HAVE_TIMER_DELETE_SYNC 1
#define HAVE_VMALLOC_2ARGS 1
#define HAVE_WAIT_BIT_QUEUE_ENTRY 1
#define HAVE_WAIT_VAR_EVENT 1
#define GENL_FAMILY_HAS_RESV_START_OP 1
/* Exported or not: nothing that is built here calls it, and its replacement needs kprobes. */
#define HAVE_ACCOUNT_PAGE_DIRTIED_EXPORT 1

/* The choices of configure unless it is told otherwise. */
#define CDEBUG_ENABLED 1
#define CDEBUG_ENTRY_EXIT 1
#define HAVE_KFILND 1
#define HAVE_MODULE_LOADING_SUPPORT 1
#define LIBCFS_DEBUG 1

/* The C library's. */
#define HAVE_NETDB_H 1

#ifdef __KERNEL__
/* Linux 7.2 has lost these names. */
#define ida_simple_get(ida, start, end, gfp) ida_alloc_range(ida, start, (end) - 1, gfp)
#define ida_simple_remove(ida, id) ida_free(ida, id)

/* And has another name for this member of struct bvec_iter. */
#define bi_bvec_done bi_offset

static inline char *kfi_lustre_strncpy(char *to, const char *from, unsigned long room)
{
	unsigned long at = 0;

	while (at < room && from[at]) {
		to[at] = from[at];
		at++;
	}
	while (at < room)
		to[at++] = '\0';
	return to;
}

#define strncpy kfi_lustre_strncpy
#endif
