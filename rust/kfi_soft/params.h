/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parameters of the software provider that are texts.
 */
#ifndef _KFI_SOFT_PARAMS_H
#define _KFI_SOFT_PARAMS_H

/* As many addresses as there may be NICs, and a null. */
#define KFI_SOFT_ADDRESS_SIZE 1024

extern char kfi_soft_address[KFI_SOFT_ADDRESS_SIZE];

#endif /* _KFI_SOFT_PARAMS_H */
