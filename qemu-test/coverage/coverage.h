/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KFI_COVERAGE_H
#define KFI_COVERAGE_H

/* Called by code that is watched; the compiler has its name. */
void __sanitizer_cov_trace_pc(void);

#endif /* KFI_COVERAGE_H */
