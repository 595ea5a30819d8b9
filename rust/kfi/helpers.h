/* SPDX-License-Identifier: GPL-2.0 */
/* Prototypes of helpers.inc.c, for -Wmissing-prototypes and for bindgen. */
#ifndef _KFI_RUST_HELPERS_H
#define _KFI_RUST_HELPERS_H

#include <linux/module.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include <kfabric.h>
#include <kfi_eq.h>
#include <kfi_prov.h>

void kfi_rust_helper_synchronize_rcu_expedited(void);
void kfi_rust_helper_synchronize_rcu_tasks(void);
void kfi_rust_helper_set_current_state(unsigned int state);
bool kfi_rust_helper_within_module(unsigned long addr, const struct module *module);
void kfi_rust_helper_init_waitqueue_func_entry(struct wait_queue_entry *entry,
					       wait_queue_func_t func);

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

void kfi_rust_helper_kfi_ref_provider(struct kfi_provider *provider);
void kfi_rust_helper_kfi_deref_provider(struct kfi_provider *provider);

#endif /* _KFI_RUST_HELPERS_H */
