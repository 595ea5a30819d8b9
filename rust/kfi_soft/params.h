/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parameters of the software provider that are texts.
 */
#ifndef _KFI_SOFT_PARAMS_H
#define _KFI_SOFT_PARAMS_H

/* A description of a key, and a null. */
#define KFI_SOFT_SECRET_SIZE 256

/* As many addresses as there may be NICs, and a null. */
#define KFI_SOFT_ADDRESS_SIZE 1024

extern char kfi_soft_address[KFI_SOFT_ADDRESS_SIZE];
extern char kfi_soft_secret[KFI_SOFT_SECRET_SIZE];

#endif /* _KFI_SOFT_PARAMS_H */
