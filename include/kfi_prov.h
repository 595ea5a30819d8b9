/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: the interface between the core and its providers.
 */

#ifndef _KFI_PROV_H_
#define _KFI_PROV_H_

#include <linux/types.h>
#include <linux/atomic.h>
#include <linux/completion.h>

#include "kfabric.h"
#include "kfi_errno.h"

/**
 * DOC: Providers
 *
 * A provider is a module that fills a struct kfi_provider, registers it when it
 * is loaded and takes it back when it is unloaded. The core asks every
 * registered provider in kfi_getinfo() and hands kfi_fabric() to the one that
 * is named in the attributes; all further calls go from the consumer to the
 * provider through the ops tables of the objects, without the core.
 *
 * The ABI has no owner field. The core finds the module of a provider by the
 * address of its callbacks and keeps it loaded during each of their calls and
 * while a fabric of it is open; everything else that is open keeps a fabric
 * open. Other cores need not do that: a provider that is to run with them takes
 * a reference on its own module for each open fabric.
 *
 * The core knows the modules that were loaded after it, which are all that link
 * to it. The callbacks kgetinfo and kfabric belong to one such module, and the
 * functions of the fabrics that kfabric opens belong there too. A provider in a
 * module that was loaded earlier and looks up kfi_provider_register() at run
 * time is refused, as nothing could keep it loaded.
 *
 * A module whose init fails is freed whoever uses it. So kfi_fabric() does not
 * open a fabric of a provider before the init of its module has succeeded, not
 * even for the module itself, while kfi_getinfo() asks it from registration on;
 * and an init that fails takes back what it has registered, as an exit does. A
 * provider whose module is being unloaded is treated as not there.
 *
 * Several providers may be registered, by one module too. One of each name
 * answers. A provider that has the name of another one and a newer version
 * replaces it: consumers find the new one from then on, where they found the
 * old one, while fabrics of the old one stay open. The old one stays registered
 * until it is deregistered, and does not come back when the new one leaves.
 *
 * The core holds no lock when it calls a provider. A callback may call the
 * core, with two exceptions: a provider does not deregister itself in its own
 * callbacks, and a provider that asks kfi_getinfo() in its kgetinfo is asked
 * again and has to put an end to that.
 *
 * Inline wrappers call most slots of an ops table without looking, so a
 * provider fills every slot, if need be with a stub of kfi_enosys.h, and sets
 * the size member of each table to the sizeof of its type.
 */

/**
 * struct kfi_provider - a provider as the core knows it
 * @version: version of the provider, its own numbering, made with
 *   KFI_VERSION(); decides between providers of one name
 * @kfi_version: version of the API the provider was built for, normally
 *   KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION)
 * @context: for the core's use; a provider leaves it alone
 * @name: name of the provider, which consumers find in and ask for by
 *   &kfi_fabric_attr.prov_name; the string is the provider's and stays valid
 *   until deregistration
 * @kgetinfo: answer a kfi_getinfo() query; see there for the arguments. @hints
 *   is the caller's or NULL and is not changed. On success @info receives a
 *   list that the core owns from then on and that it or the consumer frees
 *   with kfi_freeinfo(), so everything in it is allocated with the kmalloc
 *   family, the entries by kfi_allocinfo() or kfi_dupinfo(). Each entry has
 *   fabric attributes, or the core drops it; where they have no prov_name, the
 *   core fills in @name and @version, and where they have no api_version, that
 *   of the query. Returns 0, or -KFI_ENODATA with @info NULL if nothing
 *   matches; what it returns hides no answer of another provider. Process
 *   context, may sleep
 * @kfabric: open a fabric, a new one at each call, whose &kfid.ops the call
 *   sets; the core puts its own table there until the fabric is closed. @attr
 *   is the caller's and is copied where needed, @context goes to
 *   &kfid.context of the new object. Returns 0 or a negative error number.
 *   Process context, may sleep
 * @cleanup: called once by kfi_provider_deregister() when the core will not
 *   call the provider again, to release what it holds; may be NULL. Fabrics may
 *   still be open then, if it is not the module's exit that deregisters.
 *   Process context, may sleep
 * @comp: completed when the last reference is dropped; set up by
 *   kfi_provider_register()
 * @ref_cnt: references held by calls of the core in progress, plus one for the
 *   registration; set up by kfi_provider_register()
 *
 * The structure belongs to the provider and must stay in place, unchanged, from
 * registration until deregistration has returned. Then it may be registered
 * again. It is usually static.
 */
struct kfi_provider {
	uint32_t version;
	uint32_t kfi_version;
	struct kfi_context context;
	const char *name;
	int (*kgetinfo)(uint32_t version, const char *node, const char *service,
			uint64_t flags, struct kfi_info *hints,
			struct kfi_info **info);
	int (*kfabric)(struct kfi_fabric_attr *attr,
		       struct kfid_fabric **fabric, void *context);
	void (*cleanup)(void);
	struct completion comp;
	atomic_t ref_cnt;
};

/**
 * kfi_provider_register() - make a provider known
 * @provider: provider; the core uses it in place until it is deregistered
 *
 * Calls of the core may reach the provider before this returns. A provider that
 * is refused is left as it was.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @provider, its name or one of the callbacks
 *   kgetinfo and kfabric is missing, or the callbacks are not in one module
 *   that was loaded after the core; -KFI_ENOSYS if it was built for another
 *   major version of the API than the core has, or for a newer one;
 *   -KFI_EEXIST if it is registered or being deregistered, or if there is a
 *   provider of that name that is not older; -KFI_ENOMEM; -KFI_ENODEV while
 *   the core is being unloaded.
 */
int kfi_provider_register(struct kfi_provider *provider);

/**
 * kfi_provider_deregister() - take a provider back
 * @provider: provider that was registered, whether it was replaced or not
 *
 * New calls stop reaching the provider, those in progress are waited for, and
 * then &kfi_provider.cleanup runs. Objects that consumers still have open are
 * not touched, and their module must stay: a provider calls this when its
 * module is unloaded, which open fabrics prevent. Not to be called from a
 * callback of the provider, for which it would wait.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @provider is NULL or not registered, or is being
 *   deregistered by somebody else.
 */
int kfi_provider_deregister(struct kfi_provider *provider);

/**
 * kfi_ref_provider() - take a reference on a provider
 * @provider: provider the caller knows to be registered
 *
 * Deregistration waits until the reference is dropped again.
 *
 * Context: Any; does not sleep.
 */
static inline void kfi_ref_provider(struct kfi_provider *provider)
{
	atomic_inc(&provider->ref_cnt);
}

/**
 * kfi_deref_provider() - drop a reference on a provider
 * @provider: provider; the caller does not touch it afterwards
 *
 * Dropping the last one completes &kfi_provider.comp.
 *
 * Context: Any; does not sleep.
 */
static inline void kfi_deref_provider(struct kfi_provider *provider)
{
	if (atomic_dec_and_test(&provider->ref_cnt))
		complete(&provider->comp);
}

/**
 * DOC: Reference count of an object
 *
 * struct kfid carries a count and a completion for providers that want to let
 * users of an object finish before they free it: kfi_init_id() at creation, a
 * pair of kfi_ref_id() and kfi_deref_id() around each use, kfi_close_id() in
 * the close operation. The count starts at one, the owner's. It offers no way
 * to refuse a close while dependents exist nor to fail a late kfi_ref_id(): a
 * provider that answers -KFI_EBUSY keeps a count of its own and may leave these
 * two members unused. Consumers never touch them.
 */

/**
 * kfi_init_id() - set up the reference count of an object
 * @fid: object that no one else knows yet
 *
 * Sets the count to one. The other members of @fid are left alone.
 *
 * Context: Any; does not sleep.
 */
static inline void kfi_init_id(struct kfid *fid)
{
	init_completion(&fid->comp);
	atomic_set(&fid->ref_cnt, 1);
}

/**
 * kfi_ref_id() - take a reference on an object
 * @fid: object on which the caller knows a reference to be held
 *
 * Context: Any; does not sleep.
 */
static inline void kfi_ref_id(struct kfid *fid)
{
	atomic_inc(&fid->ref_cnt);
}

/**
 * kfi_deref_id() - drop a reference on an object
 * @fid: object; the caller does not touch it afterwards
 *
 * Dropping the last one lets kfi_close_id() return.
 *
 * Context: Any; does not sleep.
 */
static inline void kfi_deref_id(struct kfid *fid)
{
	if (atomic_dec_and_test(&fid->ref_cnt))
		complete(&fid->comp);
}

/**
 * kfi_close_id() - drop the owner's reference and wait for the others
 * @fid: object; on return no one holds a reference and it may be freed
 *
 * To be called once, after the object cannot be found any more. The wait has no
 * timeout and is not interruptible.
 *
 * Context: Process context; may sleep.
 */
static inline void kfi_close_id(struct kfid *fid)
{
	kfi_deref_id(fid);
	wait_for_completion(&fid->comp);
}

#endif /* _KFI_PROV_H_ */
