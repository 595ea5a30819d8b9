/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The surroundings that LNet and kfilnd need on newer kernels. A header of theirs that all of them
 * include is made to include this one at its end.
 */
#ifndef _KFI_LUSTRE_SURROUNDINGS_H
#define _KFI_LUSTRE_SURROUNDINGS_H

#include <linux/mutex.h>
#include <linux/workqueue.h>

/*
 * Linux 6.18 and later warn about a work queue that is neither said to be bound to CPUs nor to be
 * unbound. Not to say it meant the former.
 */
#undef alloc_workqueue
#define alloc_workqueue(fmt, flags, ...)						\
	alloc_hooks(alloc_workqueue_noprof(fmt,						\
		((flags) & WQ_UNBOUND) ? (flags) : ((flags) | WQ_PERCPU), __VA_ARGS__))

#ifdef CONFIG_LOCKDEP
/*
 * Lockdep stops at its first report. Those that are known to be Lustre's own (see
 * Documentation/lustre.md) would keep it from seeing any others: the locks that they name are
 * taken out of its sight, these and no others.
 */
static inline bool kfi_lustre_known(const char *mutex)
{
	/* hello-lock: one transaction is locked while another one is, of the same class. */
	return !__builtin_strcmp(mutex, "&tn->tn_lock");
}

#undef mutex_init
#define mutex_init(mutex)								\
do {											\
	static struct lock_class_key __key;						\
											\
	__mutex_init((mutex), #mutex, &__key);						\
	if (kfi_lustre_known(#mutex))							\
		lockdep_set_novalidate_class(mutex);					\
} while (0)
#endif

#endif /* _KFI_LUSTRE_SURROUNDINGS_H */
