// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers that are inlined into Rust where those of the kernel are (CONFIG_RUST_INLINE_HELPERS; see
 * the Kbuild at the top), and are functions like the others elsewhere. What copies memory that others
 * may write at the same time is not among them: no compiler is to see what that does.
 */
#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/wait.h>

#include <kfi_prov.h>

#include "helpers.h"

__always_inline void kfi_rust_helper_set_current_state(unsigned int state)
{
	set_current_state(state);
}

__always_inline void kfi_rust_helper_set_current_state_unordered(unsigned int state)
{
	__set_current_state(state);
}

__always_inline unsigned int kfi_rust_helper_memalloc_nofs_save(void)
{
	return memalloc_nofs_save();
}

__always_inline void kfi_rust_helper_memalloc_nofs_restore(unsigned int flags)
{
	memalloc_nofs_restore(flags);
}

__always_inline unsigned int kfi_rust_helper_memalloc_noio_save(void)
{
	return memalloc_noio_save();
}

__always_inline void kfi_rust_helper_memalloc_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

__always_inline bool kfi_rust_helper_within_module(unsigned long addr, const struct module *module)
{
	return within_module(addr, module);
}

__always_inline void
kfi_rust_helper_init_waitqueue_func_entry(struct wait_queue_entry *entry, wait_queue_func_t func)
{
	init_waitqueue_func_entry(entry, func);
}

__always_inline void kfi_rust_helper_cond_resched(void)
{
	cond_resched();
}

__always_inline bool kfi_rust_helper_irqs_disabled(void)
{
	return irqs_disabled();
}

__always_inline void kfi_rust_helper_preempt_disable(void)
{
	preempt_disable();
}

__always_inline void kfi_rust_helper_preempt_enable(void)
{
	preempt_enable();
}

#ifdef HAVE_kfi_core
__always_inline void kfi_rust_helper_kfi_ref_provider(struct kfi_provider *provider)
{
	kfi_ref_provider(provider);
}

__always_inline void kfi_rust_helper_kfi_deref_provider(struct kfi_provider *provider)
{
	kfi_deref_provider(provider);
}
#endif /* HAVE_kfi_core */

#ifdef HAVE_kfi_provider
__always_inline void *kfi_rust_helper_reserve_take(struct kfi_rust_reserve *reserve)
{
	return mempool_alloc_preallocated((mempool_t *)reserve);
}

__always_inline void kfi_rust_helper_reserve_give(struct kfi_rust_reserve *reserve, void *element)
{
	mempool_free(element, (mempool_t *)reserve);
}

static __always_inline bool has_to_look(struct kfi_rust_tally *tally, u64 value, u64 sum)
{
	return unlikely(sum >= (u64)atomic64_read(&tally->attention)) || unlikely(sum < value);
}

__always_inline int
kfi_rust_helper_tally_add(struct kfi_rust_tally *tally, u64 value, void *owner,
			  void (*attend)(void *owner, u64 value, u64 sum, u64 events))
{
	u64 events, sum;

	/* Close waits for this section as for any other; where RCU is preemptible it costs less. */
	rcu_read_lock_sched();
	/*
	 * Before the addition, by its order: what has been counted by now came before it
	 * (qemu-test/litmus/KFI-poll-mark.litmus).
	 */
	events = atomic64_read(&tally->events);
	/*
	 * Fully ordered, which the proof in counter.rs builds on
	 * (qemu-test/litmus/KFI-add-vs-submit.litmus). In the section, as close may follow at once
	 * (qemu-test/litmus/KFI-add-vs-close.litmus).
	 */
	sum = atomic64_add_return(value, &tally->value);
	/* A function of its own, so that an addition with nothing due saves no registers. */
	if (has_to_look(tally, value, sum))
		return kfi_rust_tally_attend(value, sum, events, owner, attend);
	rcu_read_unlock_sched();
	return 0;
}

__always_inline bool
kfi_rust_helper_tally_count(struct kfi_rust_tally *tally, u64 value, u64 events, u64 *sum)
{
	/* As above. */
	u64 now = atomic64_add_return(value, &tally->value);

	/* After the change, by that order (qemu-test/litmus/KFI-poll-event.litmus). */
	atomic64_add(events, &tally->events);
	*sum = now;
	return has_to_look(tally, value, now);
}

__always_inline struct page *kfi_rust_helper_sg_page(struct scatterlist *entry)
{
	return sg_page(entry);
}

__always_inline void *kfi_rust_helper_page_address(struct page *page)
{
	return page_address(page);
}
#endif /* HAVE_kfi_provider */
