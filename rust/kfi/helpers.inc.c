// SPDX-License-Identifier: GPL-2.0
/*
 * Out-of-line copies of inline functions and macros for Rust.
 *
 * Every module compiles its own copy through a helpers.c of its own: an object that is listed in
 * two modules has no unambiguous module name.
 */
#include <linux/rcupdate.h>

#include <kfi_domain.h>

#include "helpers.h"

void kfi_rust_helper_synchronize_rcu_expedited(void)
{
	synchronize_rcu_expedited();
}

void kfi_rust_helper_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

void kfi_rust_helper_set_current_state(unsigned int state)
{
	set_current_state(state);
}

bool kfi_rust_helper_within_module(unsigned long addr, const struct module *module)
{
	return within_module(addr, module);
}

void kfi_rust_helper_init_waitqueue_func_entry(struct wait_queue_entry *entry,
					       wait_queue_func_t func)
{
	init_waitqueue_func_entry(entry, func);
}

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

void kfi_rust_helper_kfi_ref_provider(struct kfi_provider *provider)
{
	kfi_ref_provider(provider);
}

void kfi_rust_helper_kfi_deref_provider(struct kfi_provider *provider)
{
	kfi_deref_provider(provider);
}
