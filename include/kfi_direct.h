/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: build time constants of a direct provider.
 */

#ifndef _KFI_FXR_DIRECT_H_
#define _KFI_FXR_DIRECT_H_

/**
 * enum kfi_fxr_static_limits - limits known when a consumer is built
 * @KFI_FXR_MAX_MSG_SIZE: longest transfer, in bytes
 * @KFI_FXR_INJECT_SIZE: longest injected message, in bytes
 * @KFI_FXR_TOTAL_BUFFERED_RECV: bytes kept for messages without a receive
 * @KFI_FXR_MAX_ORDER_RAW_SIZE: longest ordered read-after-write, in bytes
 * @KFI_FXR_MAX_ORDER_WAR_SIZE: longest ordered write-after-read, in bytes
 * @KFI_FXR_MAX_ORDER_WAW_SIZE: longest ordered write-after-write, in bytes
 * @KFI_FXR_MR_KEY_SIZE: bytes of a memory key
 * @KFI_FXR_CQ_DATA_SIZE: bytes of remote completion data
 *
 * They describe one discontinued device and are kept for source compatibility.
 * For those of a provider at hand ask kfi_getinfo().
 */
enum kfi_fxr_static_limits {
	KFI_FXR_MAX_MSG_SIZE = 0x40000000,
	KFI_FXR_INJECT_SIZE = 8,
	KFI_FXR_TOTAL_BUFFERED_RECV = 0x40000000,
	KFI_FXR_MAX_ORDER_RAW_SIZE = 0x2000,
	KFI_FXR_MAX_ORDER_WAR_SIZE = 0x2000,
	KFI_FXR_MAX_ORDER_WAW_SIZE = 0x2000,
	KFI_FXR_MR_KEY_SIZE = 8,
	KFI_FXR_CQ_DATA_SIZE = 8,
};

#endif /* _KFI_FXR_DIRECT_H_ */
