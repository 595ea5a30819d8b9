/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: extensions that consumers of the kcxi provider use.
 */

#ifndef _KFI_CXI_EXT_H_
#define _KFI_CXI_EXT_H_

#include <linux/types.h>

#include "kfabric.h"

struct device;

/**
 * DOC: Extensions
 *
 * Tables of operations for kfi_open_ops(), found by name. A provider that does
 * not present itself as kcxi answers -KFI_ENOSYS to the names that it does not
 * have (kfi_soft has that of domains); one that does answers -KFI_EINVAL to
 * others.
 */

/* On a fabric: struct kfi_cxi_fabric_ops */
#define KFI_CXI_FAB_OPS_1	"cxi_fab_ops_v1"

/* On a domain: struct kfi_cxi_domain_ops */
#define KFI_CXI_DOM_OPS_1	"cxi_dom_ops_v1"

/**
 * struct kfi_cxi_fabric_ops - extensions of a fabric
 * @enable_dynamic_rsrc_alloc: let resources of the device be taken when they
 *   are needed instead of in advance, or not; for objects that are opened
 *   later. @fid is the head of the fabric. Process context, may sleep. Returns
 *   0 or a negative error number
 */
struct kfi_cxi_fabric_ops {
	int (*enable_dynamic_rsrc_alloc)(struct kfid *fid, bool enable);
};

/**
 * struct kfi_cxi_domain_ops - extensions of a domain
 * @get_device: tell the device that the domain is on, to map memory for it with
 *   the DMA API. @fid is the head of the domain. The device is valid while the
 *   domain is open; no reference is taken for the caller. Process context, may
 *   sleep. Returns 0 or a negative error number
 */
struct kfi_cxi_domain_ops {
	int (*get_device)(struct kfid *fid, struct device **device);
};

/**
 * struct kcxi_addr - native address of an endpoint (KFI_ADDR_CXI)
 * @pid: port, 0 to 4095
 * @nic: number of the NIC, unique in the fabric
 * @flags: flags, 0 unless the provider says otherwise
 * @qw: all of it as one number; bits above the three fields are 0
 */
struct kcxi_addr {
	union {
		struct {
			uint64_t pid:12;
			uint64_t nic:20;
			uint64_t flags:10;
		};
		uint64_t qw;
	};
};

#endif /* _KFI_CXI_EXT_H_ */
