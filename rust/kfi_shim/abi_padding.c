// SPDX-License-Identifier: GPL-2.0
/*
 * The structures of /dev/kfi have no padding, of which there would be bytes of the kernel's stack to
 * read: see AsBytes in abi.rs. The compiler refuses one that has.
 */
#include <linux/build_bug.h>
#include <linux/ioctl.h>
#include <linux/types.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
#include <uapi/kfi_shim.h>

/* Clang looks at what is used only. */
#define WITHOUT_PADDING(name)	static_assert(sizeof(struct kfi_shim_##name))

WITHOUT_PADDING(version);
WITHOUT_PADDING(tx_attr);
WITHOUT_PADDING(rx_attr);
WITHOUT_PADDING(ep_attr);
WITHOUT_PADDING(domain_attr);
WITHOUT_PADDING(fabric_attr);
WITHOUT_PADDING(info);
WITHOUT_PADDING(getinfo);
WITHOUT_PADDING(read_info);
WITHOUT_PADDING(fabric);
WITHOUT_PADDING(domain);
WITHOUT_PADDING(cntr_open);
WITHOUT_PADDING(cntr);
WITHOUT_PADDING(cntr_wait);
WITHOUT_PADDING(control);
WITHOUT_PADDING(wait_fd);
WITHOUT_PADDING(wait_event);
WITHOUT_PADDING(close);
WITHOUT_PADDING(wait_open);
WITHOUT_PADDING(wait);
WITHOUT_PADDING(poll_open);
WITHOUT_PADDING(poll_member);
WITHOUT_PADDING(poll);
WITHOUT_PADDING(trywait);
WITHOUT_PADDING(cq_open);
WITHOUT_PADDING(cq_entry);
WITHOUT_PADDING(cq_read);
WITHOUT_PADDING(cq_error);
WITHOUT_PADDING(cq_signal);
WITHOUT_PADDING(eq_open);
WITHOUT_PADDING(eq_event);
WITHOUT_PADDING(eq_error);
WITHOUT_PADDING(handled);
WITHOUT_PADDING(strerror);
WITHOUT_PADDING(info_text);
WITHOUT_PADDING(tostr);
WITHOUT_PADDING(buffer);
WITHOUT_PADDING(segment);
WITHOUT_PADDING(rma_segment);
WITHOUT_PADDING(bind);
WITHOUT_PADDING(enable);
WITHOUT_PADDING(av_open);
WITHOUT_PADDING(av_insert);
WITHOUT_PADDING(av_inserted);
WITHOUT_PADDING(av_remove);
WITHOUT_PADDING(av_lookup);
WITHOUT_PADDING(av_straddr);
WITHOUT_PADDING(mr);
WITHOUT_PADDING(mr_key);
WITHOUT_PADDING(mr_refresh);
WITHOUT_PADDING(raw_key);
WITHOUT_PADDING(ep_open);
WITHOUT_PADDING(tx_context);
WITHOUT_PADDING(rx_context);
WITHOUT_PADDING(ep_alias);
WITHOUT_PADDING(cancel);
WITHOUT_PADDING(opt);
WITHOUT_PADDING(name);
WITHOUT_PADDING(cm);
WITHOUT_PADDING(join);
WITHOUT_PADDING(op);
WITHOUT_PADDING(batch);
WITHOUT_PADDING(query_atomic);
WITHOUT_PADDING(atomic_valid);
WITHOUT_PADDING(work);
WITHOUT_PADDING(cancel_work);
WITHOUT_PADDING(flush_work);

#pragma GCC diagnostic pop
