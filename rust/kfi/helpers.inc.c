// SPDX-License-Identifier: GPL-2.0
/*
 * Out-of-line copies of inline functions and macros for Rust.
 *
 * Every module compiles its own copy through a helpers.c of its own: an object that is listed in
 * two modules has no unambiguous module name. It has those for all crates, and those for the parts of
 * rust/kfi that it is built with (HAVE_PART, see the Kbuild at the top).
 */
#include <linux/cc_platform.h>
#include <linux/device.h>
#include <linux/dma-map-ops.h>
#include <linux/highmem.h>
#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/swiotlb.h>
#include <linux/task_work.h>
#include <linux/vmalloc.h>
#include <linux/wait_bit.h>

#include <kfi_domain.h>

#include "helpers.h"
#include "helpers_inlined.inc.c"

/* Of the others no bitcode is made. */
#ifndef KFI_INLINED
/*
 * synchronize_rcu_tasks() is synchronize_rcu() without it, which waits for nobody who is preempted
 * outside of a section: the module could go from under them.
 */
#if defined(CONFIG_PREEMPTION) && !defined(CONFIG_TASKS_RCU)
#error "a kernel that preempts needs CONFIG_TASKS_RCU, which CONFIG_KPROBES or CONFIG_TRACING selects"
#endif

void kfi_rust_helper_synchronize_rcu_expedited(void)
{
	synchronize_rcu_expedited();
}

void kfi_rust_helper_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

void kfi_rust_helper_wait_for_value(atomic_long_t *word, long value)
{
	wait_var_event(word, atomic_long_read_acquire(word) == value);
}

bool kfi_rust_helper_wait_for_value_within(atomic_long_t *word, long value, unsigned int ms)
{
	return wait_var_event_timeout(word, atomic_long_read_acquire(word) == value,
				      msecs_to_jiffies(ms));
}

kuid_t kfi_rust_helper_current_uid(void)
{
	return current_uid();
}

int kfi_rust_helper_add_last_work(struct kfi_rust_last_work *work)
{
	struct callback_head *next;
	int ret = task_work_add(current, &work->head, TWA_NONE);

	if (ret)
		return ret;
	/* No other task runs it. Others add in front, and cancel, with the lock. */
	raw_spin_lock_irq(&current->pi_lock);
	next = READ_ONCE(work->head.next);
	work->is_before_others = next &&
		(next->func != work->head.func ||
		 container_of(next, struct kfi_rust_last_work, head)->is_before_others);
	raw_spin_unlock_irq(&current->pi_lock);
	return 0;
}

bool kfi_rust_helper_is_last_work(struct kfi_rust_last_work *work)
{
	return !work->is_before_others && !READ_ONCE(current->task_works);
}

bool kfi_rust_helper_has_to_end(void)
{
	return current->flags & PF_POSTCOREDUMP ||
	       READ_ONCE(current->signal->flags) & SIGNAL_GROUP_EXIT;
}

struct pid *kfi_rust_helper_current_tgid(void)
{
	return task_tgid(current);
}

const struct cred *kfi_rust_helper_current_cred(void)
{
	return current_cred();
}

const struct cred *kfi_rust_helper_override_creds(const struct cred *cred)
{
	return override_creds(cred);
}

void kfi_rust_helper_revert_creds(const struct cred *cred)
{
	revert_creds(cred);
}

void kfi_rust_helper_copy(void *to, const void *from, size_t len)
{
	/* The ranges may overlap. */
	memmove(to, from, len);
}

/*
 * Wakes those that wait there, if no more than a few do and each is woken in a few steps. That is so
 * for a thread, whose entry names it, be it asleep in a call of ours or in poll(2), and for a request of
 * io_uring. An entry that names nobody passes the wake-up on, as that of an epoll instance does, behind
 * which there may be a thousand others: it must not come between the look and the wake-up.
 */
bool kfi_rust_helper_wake_up_few(struct wait_queue_head *head, unsigned int few)
{
	struct wait_queue_entry *entry;
	bool is_short = true;
	unsigned long flags;

	spin_lock_irqsave(&head->lock, flags);
	list_for_each_entry(entry, &head->head, entry) {
		if (few-- == 0 || !entry->private) {
			is_short = false;
			break;
		}
	}
	if (is_short)
		wake_up_all_locked(head);
	spin_unlock_irqrestore(&head->lock, flags);
	return is_short;
}

#ifdef HAVE_kfi_provider
/*
 * For a device whose DMA is the CPU's copying from and to the pages themselves:
 * mapping must neither put a bounce buffer in their place nor flush what is in
 * the caches. Not where mapping belongs to others (Xen, IOMMUs of the
 * architecture), or where devices cannot have all memory (encrypted guests).
 */
int kfi_rust_helper_setup_dma_of_cpu(struct device *dev)
{
#ifdef CONFIG_SWIOTLB
	/* A pool without memory, as that of a device with a pool of its own. */
	static struct io_tlb_mem no_bounce_buffers;

	dev->dma_io_tlb_mem = &no_bounce_buffers;
#endif
	if (get_dma_ops(dev) || cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		return -EOPNOTSUPP;
	dev_set_dma_coherent(dev);
	dev->coherent_dma_mask = DMA_BIT_MASK(64);
	dev->dma_mask = &dev->coherent_dma_mask;
	return 0;
}

struct kfi_rust_reserve *kfi_rust_helper_reserve_create(int elements, size_t size)
{
	return (struct kfi_rust_reserve *)mempool_create_kmalloc_pool(elements, size);
}

void kfi_rust_helper_reserve_destroy(struct kfi_rust_reserve *reserve)
{
	mempool_destroy((mempool_t *)reserve);
}

/* Attends to an addition, in the section in which that was made, and ends it. */
__cold int kfi_rust_tally_attend(u64 value, u64 sum, u64 events, void *owner,
				 void (*attend)(void *owner, u64 value, u64 sum, u64 events))
{
	/*
	 * Others see the value, and what waits for it depends on this thread, which is not preempted
	 * before it has attended to that. Locks are not taken in the section, as they may sleep
	 * where the kernel is a realtime one; there it may be preempted.
	 */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
	rcu_read_lock();
	rcu_read_unlock_sched();
	attend(owner, value, sum, events);
	rcu_read_unlock();
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
	return 0;
}

/*
 * Pages that follow each other in a bio_vec or scatterlist need not be mapped,
 * and if they are, not one after the other.
 */
void kfi_rust_helper_copy_to_pages(struct page *page, size_t offset, const void *from, size_t len)
{
	page += offset >> PAGE_SHIFT;
	offset = offset_in_page(offset);
	while (len) {
		size_t step = min_t(size_t, len, PAGE_SIZE - offset);
		char *to = kmap_local_page(page);

		memmove(to + offset, from, step);
		kunmap_local(to);
		from += step;
		len -= step;
		offset = 0;
		page++;
	}
}

void kfi_rust_helper_copy_from_pages(void *to, struct page *page, size_t offset, size_t len)
{
	page += offset >> PAGE_SHIFT;
	offset = offset_in_page(offset);
	while (len) {
		size_t step = min_t(size_t, len, PAGE_SIZE - offset);
		char *from = kmap_local_page(page);

		memmove(to, from + offset, step);
		kunmap_local(from);
		to += step;
		len -= step;
		offset = 0;
		page++;
	}
}

void kfi_rust_helper_copy_pages(struct page *to, size_t to_offset, struct page *from,
				size_t from_offset, size_t len)
{
	to += to_offset >> PAGE_SHIFT;
	to_offset = offset_in_page(to_offset);
	while (len) {
		size_t step = min_t(size_t, len, PAGE_SIZE - to_offset);
		char *target = kmap_local_page(to);

		kfi_rust_helper_copy_from_pages(target + to_offset, from, from_offset, step);
		kunmap_local(target);
		from_offset += step;
		len -= step;
		to_offset = 0;
		to++;
	}
}
#endif /* HAVE_kfi_provider */

#ifdef HAVE_kfi_consumer
int kfi_rust_helper_kfi_close(struct kfid *fid)
{
	return kfi_close(fid);
}

int kfi_rust_helper_kfi_control(struct kfid *fid, int command, void *arg)
{
	return kfi_control(fid, command, arg);
}

int kfi_rust_helper_kfi_domain(struct kfid_fabric *fabric, struct kfi_info *info,
			       struct kfid_domain **domain, void *context)
{
	return kfi_domain(fabric, info, domain, context);
}

int kfi_rust_helper_kfi_cntr_open(struct kfid_domain *domain, struct kfi_cntr_attr *attr,
				  struct kfid_cntr **cntr, void *context)
{
	return kfi_cntr_open(domain, attr, cntr, context);
}

u64 kfi_rust_helper_kfi_cntr_read(struct kfid_cntr *cntr)
{
	return kfi_cntr_read(cntr);
}

u64 kfi_rust_helper_kfi_cntr_readerr(struct kfid_cntr *cntr)
{
	return kfi_cntr_readerr(cntr);
}

int kfi_rust_helper_kfi_cntr_add(struct kfid_cntr *cntr, u64 value)
{
	return kfi_cntr_add(cntr, value);
}

int kfi_rust_helper_kfi_cntr_adderr(struct kfid_cntr *cntr, u64 value)
{
	return kfi_cntr_adderr(cntr, value);
}

int kfi_rust_helper_kfi_cntr_set(struct kfid_cntr *cntr, u64 value)
{
	return kfi_cntr_set(cntr, value);
}

int kfi_rust_helper_kfi_cntr_seterr(struct kfid_cntr *cntr, u64 value)
{
	return kfi_cntr_seterr(cntr, value);
}

int kfi_rust_helper_kfi_cntr_wait(struct kfid_cntr *cntr, u64 threshold, int timeout)
{
	return kfi_cntr_wait(cntr, threshold, timeout);
}

int kfi_rust_helper_kfi_wait_open(struct kfid_fabric *fabric, struct kfi_wait_attr *attr,
				  struct kfid_wait **waitset)
{
	return kfi_wait_open(fabric, attr, waitset);
}

int kfi_rust_helper_kfi_wait(struct kfid_wait *waitset, int timeout)
{
	return kfi_wait(waitset, timeout);
}

int kfi_rust_helper_kfi_trywait(struct kfid_fabric *fabric, struct kfid **fids, int count)
{
	return kfi_trywait(fabric, fids, count);
}

int kfi_rust_helper_kfi_poll_open(struct kfid_domain *domain, struct kfi_poll_attr *attr,
				  struct kfid_poll **pollset)
{
	return kfi_poll_open(domain, attr, pollset);
}

int kfi_rust_helper_kfi_poll(struct kfid_poll *pollset, void **context, int count)
{
	return kfi_poll(pollset, context, count);
}

int kfi_rust_helper_kfi_poll_add(struct kfid_poll *pollset, struct kfid *event_kfid, u64 flags)
{
	return kfi_poll_add(pollset, event_kfid, flags);
}

int kfi_rust_helper_kfi_poll_del(struct kfid_poll *pollset, struct kfid *event_kfid, u64 flags)
{
	return kfi_poll_del(pollset, event_kfid, flags);
}

int kfi_rust_helper_kfi_cq_open(struct kfid_domain *domain, struct kfi_cq_attr *attr,
				struct kfid_cq **cq, kfi_comp_handler comp_handler, void *context)
{
	return kfi_cq_open(domain, attr, cq, comp_handler, context);
}

ssize_t kfi_rust_helper_kfi_cq_readfrom(struct kfid_cq *cq, void *buf, size_t count,
					kfi_addr_t *src_addr)
{
	return kfi_cq_readfrom(cq, buf, count, src_addr);
}

ssize_t kfi_rust_helper_kfi_cq_sreadfrom(struct kfid_cq *cq, void *buf, size_t count,
					 kfi_addr_t *src_addr, const void *cond, int timeout)
{
	return kfi_cq_sreadfrom(cq, buf, count, src_addr, cond, timeout);
}

ssize_t kfi_rust_helper_kfi_cq_readerr(struct kfid_cq *cq, struct kfi_cq_err_entry *buf, u64 flags)
{
	return kfi_cq_readerr(cq, buf, flags);
}

int kfi_rust_helper_kfi_cq_signal(struct kfid_cq *cq)
{
	return kfi_cq_signal(cq);
}

int kfi_rust_helper_kfi_eq_open(struct kfid_fabric *fabric, struct kfi_eq_attr *attr,
				struct kfid_eq **eq, kfi_event_handler event_handler,
				void *context)
{
	return kfi_eq_open(fabric, attr, eq, event_handler, context);
}

ssize_t kfi_rust_helper_kfi_eq_read(struct kfid_eq *eq, uint32_t *event, void *buf, size_t len,
				    u64 flags)
{
	return kfi_eq_read(eq, event, buf, len, flags);
}

ssize_t kfi_rust_helper_kfi_eq_sread(struct kfid_eq *eq, uint32_t *event, void *buf, size_t len,
				     int timeout, u64 flags)
{
	return kfi_eq_sread(eq, event, buf, len, timeout, flags);
}

ssize_t kfi_rust_helper_kfi_eq_write(struct kfid_eq *eq, uint32_t event, const void *buf,
				     size_t len, u64 flags)
{
	return kfi_eq_write(eq, event, buf, len, flags);
}

ssize_t kfi_rust_helper_kfi_eq_readerr(struct kfid_eq *eq, struct kfi_eq_err_entry *buf, u64 flags)
{
	return kfi_eq_readerr(eq, buf, flags);
}

int kfi_rust_helper_kfi_open_ops(struct kfid *fid, const char *name, u64 flags, void **ops,
				 void *context)
{
	return kfi_open_ops(fid, name, flags, ops, context);
}

void *kfi_rust_helper_kzalloc(size_t size)
{
	return kzalloc(size, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
}

void *kfi_rust_helper_vmalloc_buffer(size_t size)
{
	/* The caller is told of a failure; the log need not be. */
	return __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
}

unsigned long kfi_rust_helper_memory_pages(void)
{
	return totalram_pages();
}

/* Of memory from kmalloc or vmalloc. */
struct page *kfi_rust_helper_page_of(const void *addr)
{
	return is_vmalloc_addr(addr) ? vmalloc_to_page(addr) : virt_to_page(addr);
}

/*
 * For both: the caller has seen to it that the area ends within the memory. If they fail nothing is
 * mapped any more when they return.
 */

/*
 * Page by page, as they are not in one piece. Not as remap_vmalloc_range() does it: nobody is to take
 * references to the pages (vmsplice(), registered buffers), as these would stay when the buffer is gone
 * that is counted.
 */
int kfi_rust_helper_map_vmalloc(struct vm_area_struct *vma, void *addr)
{
	unsigned long user;
	int ret;

	for (user = vma->vm_start; user < vma->vm_end; user += PAGE_SIZE, addr += PAGE_SIZE) {
		ret = remap_pfn_range(vma, user, vmalloc_to_pfn(addr), PAGE_SIZE,
				      vma->vm_page_prot);
		if (ret) {
			/*
			 * It has taken back this page only. Other threads see the pages before it
			 * until the area is torn down, which is after the caller has let go of them.
			 */
			if (user != vma->vm_start)
				zap_special_vma_range(vma, vma->vm_start, user - vma->vm_start);
			return ret;
		}
	}
	return 0;
}

int kfi_rust_helper_map_kmalloc(struct vm_area_struct *vma, void *addr)
{
	return remap_pfn_range(vma, vma->vm_start, page_to_pfn(virt_to_page(addr)),
			       vma->vm_end - vma->vm_start, vma->vm_page_prot);
}

void kfi_rust_helper_sg_set_page(struct scatterlist *entry, struct page *page, unsigned int len,
				 unsigned int offset)
{
	sg_set_page(entry, page, len, offset);
}

/*
 * Neither kmalloc nor vmalloc give anything below. Not where memory begins, if that is chosen at boot:
 * user space may find out what is returned here.
 */
unsigned long kfi_rust_helper_first_kernel_address(void)
{
	unsigned long first = min_t(unsigned long, PAGE_OFFSET, VMALLOC_START);
	unsigned long half = 1UL << (BITS_PER_LONG - 1);

	return first >= half ? half : first;
}

int kfi_rust_helper_raw_smp_processor_id(void)
{
	return raw_smp_processor_id();
}

#define KFI_HELPER(type, name, params, args) \
	type kfi_rust_helper_##name params { return name args; }
#include "helpers_list.h"
#undef KFI_HELPER
#endif /* HAVE_kfi_consumer */
#endif /* KFI_INLINED */
