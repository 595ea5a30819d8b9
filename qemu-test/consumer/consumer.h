/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tests of kfi_consumer.
 */
#ifndef KFI_CONSUMER_H
#define KFI_CONSUMER_H

#include "objects.h"

/* Each ends with an entry that is all 0. */
extern const struct test_case info_tests[];
extern const struct test_case tostr_tests[];
extern const struct test_case cntr_tests[];
extern const struct test_case wait_tests[];
extern const struct test_case control_tests[];
extern const struct test_case close_tests[];
extern const struct test_case cq_tests[];
extern const struct test_case eq_tests[];
extern const struct test_case handler_tests[];
extern const struct test_case wait_set_tests[];
extern const struct test_case poll_set_tests[];
extern const struct test_case trywait_tests[];
extern const struct test_case deferred_tests[];
extern const struct test_case deferred_end_tests[];
extern const struct test_case deferred_context_tests[];
extern const struct test_case av_tests[];

#endif
