/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parameters of the software provider that are texts.
 */
#ifndef _KFI_SOFT_PARAMS_H
#define _KFI_SOFT_PARAMS_H

#include <linux/types.h>

/* A description of a key, and a null. */
#define KFI_SOFT_SECRET_SIZE 256

/* As many addresses as there may be NICs, and a null. */
#define KFI_SOFT_ADDRESS_SIZE 1024

/**
 * enum kfi_soft_params_stage - what writing to the parameter address means
 * @KFI_SOFT_PARAMS_EARLY: the text is kept for when the module is initialised
 * @KFI_SOFT_PARAMS_CLOSED: nothing, as that is being done, or the module is going
 * @KFI_SOFT_PARAMS_OPEN: a NIC comes or goes
 */
enum kfi_soft_params_stage {
	KFI_SOFT_PARAMS_EARLY,
	KFI_SOFT_PARAMS_CLOSED,
	KFI_SOFT_PARAMS_OPEN,
};

extern char kfi_soft_address[KFI_SOFT_ADDRESS_SIZE];
extern char kfi_soft_secret[KFI_SOFT_SECRET_SIZE];

void kfi_soft_params_enter(enum kfi_soft_params_stage stage);

/* In Rust; called in the last stage only, with the lock of the module's parameters. */
int kfi_soft_address_change(const char *text);
int kfi_soft_address_list(char *text, size_t size);

#endif /* _KFI_SOFT_PARAMS_H */
