/* SPDX-License-Identifier: GPL-2.0 */
/* Prototypes of helpers.inc.c, for -Wmissing-prototypes and for bindgen. */
#ifndef _KFI_RUST_HELPERS_H
#define _KFI_RUST_HELPERS_H

#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include <kfabric.h>
#include <kfi_atomic.h>
#include <kfi_cm.h>
#include <kfi_eq.h>
#include <kfi_prov.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>

void kfi_rust_helper_synchronize_rcu_expedited(void);
void kfi_rust_helper_synchronize_rcu_tasks(void);
int kfi_rust_helper_setup_dma_of_cpu(struct device *dev);
void kfi_rust_helper_wait_for_value(atomic_long_t *word, long value);
bool kfi_rust_helper_wait_for_value_within(atomic_long_t *word, long value, unsigned int ms);
void kfi_rust_helper_set_current_state(unsigned int state);
void kfi_rust_helper_set_current_state_unordered(unsigned int state);
unsigned int kfi_rust_helper_memalloc_nofs_save(void);
void kfi_rust_helper_memalloc_nofs_restore(unsigned int flags);
unsigned int kfi_rust_helper_memalloc_noio_save(void);
void kfi_rust_helper_memalloc_noio_restore(unsigned int flags);
bool kfi_rust_helper_within_module(unsigned long addr, const struct module *module);
void kfi_rust_helper_init_waitqueue_func_entry(struct wait_queue_entry *entry,
					       wait_queue_func_t func);
bool kfi_rust_helper_wake_up_few(struct wait_queue_head *head, unsigned int few);

/**
 * struct kfi_rust_tally - a value that is added to: see tally.rs
 * @value: the value
 * @gap: what every addition writes shares no cache line with what it reads before and after that,
 *	and what the application's additions do not change
 * @attention: from this value on somebody has to look
 * @events: how many additions were counted
 */
struct kfi_rust_tally {
	atomic64_t value;
	u64 gap[7];
	atomic64_t attention;
	atomic64_t events;
};

int kfi_rust_helper_tally_add(struct kfi_rust_tally *tally, u64 value, void *owner,
			      void (*attend)(void *owner, u64 value, u64 sum, u64 events));
int kfi_rust_tally_attend(u64 value, u64 sum, u64 events, void *owner,
			  void (*attend)(void *owner, u64 value, u64 sum, u64 events));
bool kfi_rust_helper_tally_count(struct kfi_rust_tally *tally, u64 value, u64 events, u64 *sum);

kuid_t kfi_rust_helper_current_uid(void);
struct pid *kfi_rust_helper_current_tgid(void);

/**
 * struct kfi_rust_last_work - work of a task that is to be its last: see last_work.rs
 * @head: what the kernel knows of it
 * @is_before_others: when it was added there was work of another kind, which runs behind it
 */
struct kfi_rust_last_work {
	struct callback_head head;
	bool is_before_others;
};

int kfi_rust_helper_add_last_work(struct kfi_rust_last_work *work);
bool kfi_rust_helper_is_last_work(struct kfi_rust_last_work *work);
bool kfi_rust_helper_has_to_end(void);
const struct cred *kfi_rust_helper_current_cred(void);
const struct cred *kfi_rust_helper_override_creds(const struct cred *cred);
void kfi_rust_helper_revert_creds(const struct cred *cred);
void kfi_rust_helper_cond_resched(void);
bool kfi_rust_helper_irqs_disabled(void);
void kfi_rust_helper_preempt_disable(void);
void kfi_rust_helper_preempt_enable(void);
struct page *kfi_rust_helper_sg_page(struct scatterlist *entry);
void *kfi_rust_helper_page_address(struct page *page);
void kfi_rust_helper_copy(void *to, const void *from, size_t len);
void kfi_rust_helper_copy_to_pages(struct page *page, size_t offset, const void *from, size_t len);
void kfi_rust_helper_copy_from_pages(void *to, struct page *page, size_t offset, size_t len);
void kfi_rust_helper_copy_pages(struct page *to, size_t to_offset, struct page *from,
				size_t from_offset, size_t len);

/* A pool of memory, see pieces.rs. */
struct kfi_rust_reserve;

struct kfi_rust_reserve *kfi_rust_helper_reserve_create(int elements, size_t size);
void *kfi_rust_helper_reserve_take(struct kfi_rust_reserve *reserve);
void kfi_rust_helper_reserve_give(struct kfi_rust_reserve *reserve, void *element);
void kfi_rust_helper_reserve_destroy(struct kfi_rust_reserve *reserve);

int kfi_rust_helper_kfi_close(struct kfid *fid);
int kfi_rust_helper_kfi_control(struct kfid *fid, int command, void *arg);
int kfi_rust_helper_kfi_domain(struct kfid_fabric *fabric, struct kfi_info *info,
			       struct kfid_domain **domain, void *context);
int kfi_rust_helper_kfi_cntr_open(struct kfid_domain *domain, struct kfi_cntr_attr *attr,
				  struct kfid_cntr **cntr, void *context);
u64 kfi_rust_helper_kfi_cntr_read(struct kfid_cntr *cntr);
u64 kfi_rust_helper_kfi_cntr_readerr(struct kfid_cntr *cntr);
int kfi_rust_helper_kfi_cntr_add(struct kfid_cntr *cntr, u64 value);
int kfi_rust_helper_kfi_cntr_adderr(struct kfid_cntr *cntr, u64 value);
int kfi_rust_helper_kfi_cntr_set(struct kfid_cntr *cntr, u64 value);
int kfi_rust_helper_kfi_cntr_seterr(struct kfid_cntr *cntr, u64 value);
int kfi_rust_helper_kfi_cntr_wait(struct kfid_cntr *cntr, u64 threshold, int timeout);

int kfi_rust_helper_kfi_wait_open(struct kfid_fabric *fabric, struct kfi_wait_attr *attr,
				  struct kfid_wait **waitset);
int kfi_rust_helper_kfi_wait(struct kfid_wait *waitset, int timeout);
int kfi_rust_helper_kfi_trywait(struct kfid_fabric *fabric, struct kfid **fids, int count);
int kfi_rust_helper_kfi_poll_open(struct kfid_domain *domain, struct kfi_poll_attr *attr,
				  struct kfid_poll **pollset);
int kfi_rust_helper_kfi_poll(struct kfid_poll *pollset, void **context, int count);
int kfi_rust_helper_kfi_poll_add(struct kfid_poll *pollset, struct kfid *event_kfid, u64 flags);
int kfi_rust_helper_kfi_poll_del(struct kfid_poll *pollset, struct kfid *event_kfid, u64 flags);
int kfi_rust_helper_kfi_cq_open(struct kfid_domain *domain, struct kfi_cq_attr *attr,
				struct kfid_cq **cq, kfi_comp_handler comp_handler, void *context);
ssize_t kfi_rust_helper_kfi_cq_readfrom(struct kfid_cq *cq, void *buf, size_t count,
					kfi_addr_t *src_addr);
ssize_t kfi_rust_helper_kfi_cq_sreadfrom(struct kfid_cq *cq, void *buf, size_t count,
					 kfi_addr_t *src_addr, const void *cond, int timeout);
ssize_t kfi_rust_helper_kfi_cq_readerr(struct kfid_cq *cq, struct kfi_cq_err_entry *buf,
				       u64 flags);
int kfi_rust_helper_kfi_cq_signal(struct kfid_cq *cq);
int kfi_rust_helper_kfi_eq_open(struct kfid_fabric *fabric, struct kfi_eq_attr *attr,
				struct kfid_eq **eq, kfi_event_handler event_handler,
				void *context);
ssize_t kfi_rust_helper_kfi_eq_read(struct kfid_eq *eq, uint32_t *event, void *buf, size_t len,
				    u64 flags);
ssize_t kfi_rust_helper_kfi_eq_sread(struct kfid_eq *eq, uint32_t *event, void *buf, size_t len,
				     int timeout, u64 flags);
ssize_t kfi_rust_helper_kfi_eq_write(struct kfid_eq *eq, uint32_t event, const void *buf,
				     size_t len, u64 flags);
ssize_t kfi_rust_helper_kfi_eq_readerr(struct kfid_eq *eq, struct kfi_eq_err_entry *buf,
				       u64 flags);
int kfi_rust_helper_kfi_open_ops(struct kfid *fid, const char *name, u64 flags, void **ops,
				 void *context);

void kfi_rust_helper_kfi_ref_provider(struct kfi_provider *provider);
void kfi_rust_helper_kfi_deref_provider(struct kfi_provider *provider);

void *kfi_rust_helper_kzalloc(size_t size);
void *kfi_rust_helper_vmalloc_buffer(size_t size);
unsigned long kfi_rust_helper_memory_pages(void);
struct page *kfi_rust_helper_page_of(const void *addr);
int kfi_rust_helper_map_vmalloc(struct vm_area_struct *vma, void *addr);
int kfi_rust_helper_map_kmalloc(struct vm_area_struct *vma, void *addr);
void kfi_rust_helper_sg_set_page(struct scatterlist *entry, struct page *page, unsigned int len,
				 unsigned int offset);
unsigned long kfi_rust_helper_first_kernel_address(void);
int kfi_rust_helper_raw_smp_processor_id(void);

#define KFI_HELPER(type, name, params, args) type kfi_rust_helper_##name params;
#include "helpers_list.h"
#undef KFI_HELPER

#endif /* _KFI_RUST_HELPERS_H */
