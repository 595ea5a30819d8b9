#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the boot script, without a virtual machine:

    python3 -m unittest discover -s qemu-test
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
import textwrap
import time
import unittest
import unittest.mock
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import kernel_log
import ktap
import script

run = script.load(HERE / "run")


def lines(text: str) -> List[str]:
    return textwrap.dedent(text).strip("\n").splitlines()


def read(text: str) -> List[ktap.Result]:
    parser = ktap.Parser()
    for line in lines(text):
        parser.feed(line)
    return parser.finish()


def total(results: Sequence[ktap.Result]) -> Tuple[int, int, int]:
    """Passed, failed, skipped."""
    counts = [run.count(results, outcome) for outcome in ktap.Outcome]
    return counts[0], counts[1], counts[2]


def names(results: Sequence[ktap.Result]) -> List[str]:
    return [result.name for result in results]


class Ktap(unittest.TestCase):
    def check(self, text: str, passed: int, failed: int, skipped: int) -> List[ktap.Result]:
        results = read(text)
        self.assertEqual(total(results), (passed, failed, skipped), results)
        return results

    def test_flat(self) -> None:
        results = self.check(
            """
            KTAP version 1
            1..3
            ok 1 cntr/case-02-64bit-values # R-CNTR-4
            # expected 5
            # got 4
            not ok 2 cntr/case-07-two-threads # R-CNTR-18
            ok 3
            """,
            2,
            1,
            0,
        )
        self.assertEqual(results[0].name, "cntr/case-02-64bit-values")
        self.assertEqual(results[0].reason, "R-CNTR-4")
        self.assertEqual(results[0].diagnostics, [])
        self.assertEqual(results[1].diagnostics, ["# expected 5", "# got 4"])
        self.assertEqual(results[2].name, "test 3")

    def test_nothing(self) -> None:
        self.check("hello", 0, 0, 0)
        self.check("", 0, 0, 0)

    def test_other_versions(self) -> None:
        self.check("TAP version 13\n1..1\nok 1 - dash", 1, 0, 0)
        self.check("TAP version 14\n1..1\nok 1 x", 1, 0, 0)

    def test_other_lines_do_not_matter(self) -> None:
        self.check(
            """
            ok, here we go
            KTAP version 1
            ok
            1..2
            not okay
            ok 1 a
            random: crng init done
              ok 7 indented, but no list
            ok 2 b
            okay 3 c
            """,
            2,
            0,
            0,
        )

    def test_skip(self) -> None:
        results = self.check(
            """
            KTAP version 1
            1..4
            ok 1 a # SKIP no device
            not ok 2 b # skip
            ok 3 c # R-X-1 # SKIP later
            ok 4 d # skipping is for others
            """,
            1,
            0,
            3,
        )
        self.assertEqual(results[0].reason, "no device")

    def test_todo(self) -> None:
        self.check(
            """
            KTAP version 1
            1..3
            not ok 1 a # TODO write it
            ok 2 b # TODO done by chance
            not ok 3 c # XFAIL known
            """,
            1,
            0,
            2,
        )

    def test_error_directives(self) -> None:
        results = self.check(
            """
            KTAP version 1
            1..2
            ok 1 a # TIMEOUT 30 seconds
            not ok 2 b # ERROR no memory
            """,
            0,
            2,
            0,
        )
        self.assertEqual(results[0].reason, "TIMEOUT 30 seconds")

    def test_nested(self) -> None:
        results = self.check(
            """
            KTAP version 1
            1..1
              KTAP version 1
              1..3
                KTAP version 1
                1..1
                # test_1: initializing test_1
                ok 1 test_1
              ok 1 example_test_1
                KTAP version 1
                1..2
                ok 1 test_1 # SKIP test_1 skipped
                ok 2 test_2
              ok 2 example_test_2
                KTAP version 1
                1..3
                ok 1 test_1
                # test_2: FAIL
                not ok 2 test_2
                ok 3 test_3 # SKIP test_3 skipped
              not ok 3 example_test_3
            not ok 1 main_test
            """,
            3,
            1,
            2,
        )
        self.assertIn("main_test.example_test_3.test_2", names(results))
        failed = [r for r in results if r.outcome is ktap.Outcome.FAILED]
        self.assertEqual(failed[0].diagnostics, ["    # test_2: FAIL"])

    def test_kunit(self) -> None:
        # Suites of several modules: the number goes on from one to the next.
        results = self.check(
            """
            KTAP version 1
            1..1
                KTAP version 1
                # Subtest: kfi_hold
                # module: kfabric
                1..2
                ok 1 counts
                # refuses: ASSERTION FAILED at rust/kfi/hold.rs:10
                Expected a == b to be true, but is false
                not ok 2 refuses
            # kfi_hold: pass:1 fail:1 skip:0 total:2
            # Totals: pass:1 fail:1 skip:0 total:2
            not ok 1 kfi_hold
            kfi_soft: loaded
            KTAP version 1
            1..1
                KTAP version 1
                # Subtest: kfi_soft_info
                # module: kfi_soft
                1..1
                ok 1 names
            ok 2 kfi_soft_info
            """,
            2,
            1,
            0,
        )
        self.assertEqual(
            names(results), ["kfi_hold.counts", "kfi_hold.refuses", "kfi_soft_info.names"]
        )
        self.assertEqual(len(results[1].diagnostics), 2)

    def test_kunit_parameters_without_plan(self) -> None:
        self.check(
            """
            KTAP version 1
            1..1
                KTAP version 1
                # Subtest: suite
                1..1
                    KTAP version 1
                    # Subtest: with_parameters
                    ok 1 first
                    ok 2 second
                ok 1 with_parameters
            ok 1 suite
            """,
            2,
            0,
            0,
        )

    def test_list_fails_on_its_own(self) -> None:
        results = self.check(
            """
            KTAP version 1
            1..1
                KTAP version 1
                1..1
                ok 1 a
            # cleaning up failed
            not ok 1 suite
            """,
            1,
            1,
            0,
        )
        self.assertEqual(results[1].name, "suite")
        self.assertEqual(results[1].diagnostics, ["# cleaning up failed"])

    def test_list_passes_though_a_test_failed(self) -> None:
        self.check(
            """
            KTAP version 1
            1..1
                KTAP version 1
                1..1
                not ok 1 a
            ok 1 suite
            """,
            0,
            1,
            0,
        )

    def test_skipped_suite(self) -> None:
        self.check("KTAP version 1\n1..1\nok 1 suite # SKIP not here", 0, 0, 1)
        self.check(
            """
            KTAP version 1
            1..1
                KTAP version 1
                1..0 # SKIP nothing to do
            ok 1 suite # SKIP nothing to do
            """,
            0,
            0,
            1,
        )

    def test_missing_plan(self) -> None:
        results = self.check("KTAP version 1\nok 1 a\nok 2 b", 2, 1, 0)
        self.assertEqual(results[2].reason, "no plan")
        self.check("KTAP version 1", 0, 1, 0)
        self.check("ok 1 not even a version", 1, 1, 0)

    def test_plan_at_the_end(self) -> None:
        self.check("KTAP version 1\nok 1 a\nok 2 b\n1..2", 2, 0, 0)

    def test_second_plan(self) -> None:
        self.check("KTAP version 1\n1..1\nok 1 a\n1..2\nok 2 b", 2, 1, 0)

    def test_truncated(self) -> None:
        results = self.check("KTAP version 1\n1..3\nok 1 a\n# about to crash", 1, 1, 0)
        self.assertEqual(results[1].reason, "2 of 3 results missing")
        self.assertEqual(results[1].diagnostics, ["# about to crash"])

    def test_truncated_nested(self) -> None:
        results = self.check(
            """
            KTAP version 1
            1..1
                KTAP version 1
                # Subtest: suite
                1..3
                ok 1 a
                not ok 2 b
            """,
            1,
            2,
            0,
        )
        self.assertEqual(names(results), ["suite.a", "suite.b", "suite"])

    def test_truncated_nested_and_more_missing(self) -> None:
        self.check(
            """
            KTAP version 1
            1..3
                KTAP version 1
                # Subtest: first
                1..2
                ok 1 a
            """,
            1,
            2,
            0,
        )

    def test_next_document_after_truncated_one(self) -> None:
        results = self.check(
            """
            KTAP version 1
            1..2
            ok 1 a
            KTAP version 1
            1..1
            ok 1 b
            """,
            2,
            1,
            0,
        )
        self.assertEqual(results[1].reason, "1 of 2 results missing")

    def test_missing_result(self) -> None:
        results = self.check("KTAP version 1\n1..3\nok 1 a\nok 3 c", 2, 2, 0)
        self.assertEqual(results[1].reason, "result 3 follows result 1")

    def test_same_result_twice(self) -> None:
        self.check("KTAP version 1\n1..2\nok 1 a\nok 1 a", 2, 1, 0)

    def test_more_than_planned(self) -> None:
        results = self.check("KTAP version 1\n1..1\nok 1 a\nok 2 b", 2, 1, 0)
        self.assertEqual(results[2].reason, "2 results, but 1 were planned")

    def test_bail_out(self) -> None:
        results = self.check(
            "KTAP version 1\n1..3\nok 1 a\n# no device\nBail out! cannot go on", 1, 1, 0
        )
        self.assertEqual(results[1].reason, "bail out: cannot go on")
        self.assertEqual(results[1].diagnostics, ["# no device"])
        self.check(
            """
            KTAP version 1
            1..2
              KTAP version 1
              1..2
              ok 1 a
              Bail out!
            """,
            1,
            1,
            0,
        )

    def test_kinds_of_lines(self) -> None:
        parser = ktap.Parser()
        kinds = [
            parser.feed(line)
            for line in lines(
                """
                KTAP version 1
                1..3
                ok 1 a
                not ok 2 b
                ok 3 c # SKIP
                hello
                """
            )
        ]
        line = ktap.Line
        self.assertEqual(
            kinds,
            [line.STRUCTURE, line.STRUCTURE, line.PASSED, line.FAILED, line.SKIPPED, line.OTHER],
        )


REPORTS: Dict[str, str] = {
    "warning": """
        [    4.018112] ------------[ cut here ]------------
        [    4.018393] WARNING: drivers/x.c:12 at probe+0x13/0x30, CPU#1: insmod/70
        [    4.018812] Modules linked in: kfi_soft(O) kfabric(O)
        [    4.019411] RIP: 0010:probe+0x13/0x30
        [    4.020122] Call Trace:
        [    4.020420]  <TASK>
        [    4.021000] ---[ end trace 0000000000000000 ]---
        """,
    "bug": "[    1.000000] kernel BUG at mm/slub.c:546!",
    "oops": "[    1.000000] Oops: Oops: 0000 [#1] SMP KASAN NOPTI",
    "null pointer": "[    1.0] BUG: kernel NULL pointer dereference, address: 0000000000000000",
    "page fault": "[    1.000000] Unable to handle kernel paging request at virtual address dead",
    "x86 page fault": "[    1.000000] BUG: unable to handle page fault for address: ffffffffc0",
    "general protection": "[    1.0] Oops: general protection fault, probably for address 0x6b6b",
    "divide": "[    1.000000] divide error: 0000 [#1] PREEMPT SMP",
    "panic": "[    2.000000][    T1] Kernel panic - not syncing: Attempted to kill init!",
    "stack": "[    2.000000] BUG: TASK stack guard page was hit at 00000000",
    "stack end": "[    2.0] Kernel panic - not syncing: corrupted stack end detected inside sched",
    "kasan": "[    5.123456] BUG: KASAN: slab-use-after-free in kfi_cntr_add+0x20/0x50",
    "kcsan": "[    5.123456] BUG: KCSAN: data-race in kfi_cntr_add / kfi_cntr_read",
    "ubsan": "[    5.123456] UBSAN: shift-out-of-bounds in lib/x.c:10:20",
    "circular locking": """
        [    3.1] ======================================================
        [    3.1] WARNING: possible circular locking dependency detected
        [    3.1] 7.3.4 #1 Tainted: G           O
        """,
    "recursive locking": "[    3.100000] WARNING: possible recursive locking detected",
    "irq inversion": "[    3.1] WARNING: possible irq lock inversion dependency detected",
    "lock state": "[    3.100000] inconsistent {HARDIRQ-ON-W} -> {IN-HARDIRQ-W} usage.lock state",
    "lock state headline": "[    3.100000] WARNING: inconsistent lock state",
    "rcu usage": "[    3.100000] WARNING: suspicious RCU usage",
    "rcu context": "[    3.1] x.c:1 Illegal context switch in RCU read-side critical section!",
    "wait context": "[    3.100000] [ BUG: Invalid wait context ]",
    "held lock freed": "[    3.100000] WARNING: held lock freed!",
    "unlock balance": "[    3.100000] WARNING: bad unlock balance detected!",
    "lock held": "[    3.100000] WARNING: lock held when returning to user space!",
    "static key": "[    3.100000] INFO: trying to register non-static key.",
    "lockdep off": "[    3.100000] INFO: lockdep is turned off.",
    "lockdep tables": "[    3.100000] turning off the locking correctness validator.",
    "lockdep taint": "[    3.100000] Disabling lock debugging due to kernel taint",
    "atomic": "[    3.100000] BUG: scheduling while atomic: kfi/71/0x00000002",
    "sleeping": "[    3.1] BUG: sleeping function called from invalid context at mm/slab.h:1",
    "preemptible": "[    3.1] BUG: using smp_processor_id() in preemptible [00000000] code: x/1",
    "hung task": "[  124.1] INFO: task kfi:71 blocked for more than 60 seconds.",
    "hung task on": "[  124.1] INFO: task kfi:71 is blocked on a mutex likely owned by task x:72.",
    "soft lockup": "[   60.1] watchdog: BUG: soft lockup - CPU#0 stuck for 61s! [kfi:71]",
    "hard lockup": "[   60.1] watchdog: Watchdog detected hard LOCKUP on cpu 0",
    "workqueue lockup": "[   60.1] BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0",
    "rcu stall": "[   60.1] rcu: INFO: rcu_preempt self-detected stall on CPU",
    "rcu stall elsewhere": "[   60.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "rcu expedited": "[   60.1] rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: {",
    "rcu kthread": "[   60.1] rcu: rcu_preempt kthread starved for 2502 jiffies!",
    "refcount": "[    7.000000] refcount_t: underflow; use-after-free.",
    "list add": "[    7.000000] list_add corruption. prev->next should be next (x), but was y.",
    "list del": "[    7.000000] list_del corruption, x->next is LIST_POISON1 (dead000000000100)",
    "list double add": "[    7.000000] list_add double add: new=x, prev=x, next=y.",
    "debug objects": "[    7.0] ODEBUG: free active (active state 0) object: x object type: work",
    "slub": "[    7.000000] BUG kmalloc-64 (Tainted: G           O): Redzone overwritten",
    "slub detail": "[    7.0] [Right Redzone overwritten] 0x1-0x2 @offset=3. First byte 0x0",
    "slab": "[    7.000000] Slab corruption (Tainted: G): kmalloc-64 start=ffff, len=64",
    "free twice": "[    7.000000] Object already free",
    "double free": "[    7.000000] kernel: double free detected in x",
    "cache left": "[    7.0] kmem_cache_destroy kfi: Slab cache still has objects when called",
    "page state": "[    7.000000] BUG: Bad page state in process kfi  pfn:01234",
    "memory": "[    7.000000] kfi: page allocation failure: order:10, mode:0xcc0(GFP_KERNEL)",
    "oom": "[    7.000000] kfi invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
    "kmemleak": "[    9.0] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "leak itself": "[    9.000000] kmemleak: unreferenced object 0xffff888001234567 (size 64):",
    "netdevice": "[    9.0] unregister_netdevice: waiting for lo to become free. Usage count = 2",
    "rust": "[    9.000000] rust_kernel: panicked at rust/kfi_soft/counter.rs:10:5:",
    "rust panic": "[    9.000000] Rust panic in kfi_soft",
    "segfault": "[    9.000000] kfi[71]: segfault at 0 ip 0000000000401000 sp 00007ffd error 4",
    "trap": "[    9.000000] traps: kfi[71] trap invalid opcode ip:401000 sp:7ffd error:0 in kfi",
    "trace": "[    9.000000] Call Trace:",
    "modules": "[    9.000000] Modules linked in: kfabric(O)",
    "no prefix": "Kernel panic - not syncing: Segfault with no mm",
}

CLEAN = """
    [    0.000000] Linux version 7.3.4 (a@b) (clang 19, LLD 19) #1 SMP PREEMPT DEBUG
    [    0.000000] Command line: console=ttyS0 panic=-1 oops=panic BUG=1 WARNING
    [    0.000000] Kernel command line: console=ttyS0 "KASAN: x" Oops
    [    0.000000] x86/bugs: return thunk changed
    [    0.000000] x86/fpu: x87 FPU will use FXSAVE
    [    0.000000] Unknown kernel command line parameters "BUG=1", will be passed to user space.
    [    0.000000] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on
    [    0.000000] RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable
    [    0.000000] SRSO: WARNING: See the documentation for mitigation options.
    [    0.000000] rcu: \tRCU debug extended QS entry/exit.
    [    0.000000] rcu: \tRCU callback double-/use-after-free debug is enabled.
    [    0.000000] \tRCU CPU stall warnings timeout set to 60 (rcu_cpu_stall_timeout).
    [    0.000000] rcu: RCU calculated value of scheduler-enlistment delay is 100 jiffies.
    [    0.000000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
    [    0.000000] ... MAX_LOCKDEP_SUBCLASSES:  8
    [    0.000000] kasan: KernelAddressSanitizer initialized (generic)
    [    0.000000] kcsan: enabled early
    [    0.000000] kcsan: strict mode configured
    [    0.000000] BUG: KCSAN: data-race in calibrate_APIC_clock / lapic_cal_handler
    [    0.000000] ODEBUG: selftest passed
    [    0.000000] kmemleak: Kernel memory leak detector initialized (mem pool available: 9)
    [    0.000000] NMI watchdog: Perf NMI watchdog permanently disabled
    [    0.100000] APIC timer disabled due to verification failure
    [    0.200000] debugfs: initialized
    [    0.200000] debug: just a remark
    [    0.200000] PCI: Using host bridge; if necessary, use "pci=nocrs" and report a bug
    [    0.200000] workqueue: round-robin CPU selection forced, expect performance impact
    [    0.300000] Warning: unable to open an initial console.
    [    0.400000] clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable
    [    0.500000] random: crng init done
    [    0.600000] Run /init as init process
    [    1.000000] kfabric: loading out-of-tree module taints kernel.
    [    1.000000] kfabric: loading test module taints kernel.
    [    1.100000] guest: running: kfi-test --debug
    [    1.200000] FAULT_INJECTION: forcing a failure.
    [    1.300000] ok 3 close/case-72-double-free-is-refused # BUG: none
    [    1.300000]     ok 4 list_add corruption is found
    [    1.400000] sysrq: HELP : loglevel(0-9) reboot(b)
    [    1.400000] kfi_soft: possible, inconsistent, suspicious words
    [    2.000000] reboot: Power down
    Core dump limits :
    \tsoft - NONE
    Checking that seccomp filters can be installed...OK
    Warning: tempdir /tmp is not on tmpfs
"""


class MaySkip(unittest.TestCase):
    def failed(self, text: str, *allowed: str) -> List[str]:
        return [result.name for result in run.may_skip(read(text), allowed)]

    def test_what_is_skipped(self) -> None:
        text = """
            1..4
            ok 1 a/one
            ok 2 a/two # SKIP no way
            ok 3 b/three # SKIP no way
            not ok 4 b/four
        """
        self.assertEqual(self.failed(text), ["a/two", "b/three"])
        self.assertEqual(self.failed(text, "a/two"), ["b/three"])
        self.assertEqual(self.failed(text, "a/*", "b/*"), [])

    def test_what_is_run_elsewhere(self) -> None:
        text = """
            1..3
            ok 1 a/one # SKIP others are there
            ok 2 a/one
            ok 3 a/two # SKIP
        """
        self.assertEqual(self.failed(text), ["a/two"])

    def test_tests_of_the_kernel(self) -> None:
        skipped = [
            ktap.Result("kernel: a/one", ktap.Outcome.SKIPPED),
            ktap.Result("kernel log: something known", ktap.Outcome.SKIPPED),
        ]
        self.assertEqual(names(run.may_skip(skipped, [])), ["kernel: a/one"])
        self.assertEqual(run.may_skip(skipped, ["a/one"]), [])


class KernelLog(unittest.TestCase):
    def check(self, text: str) -> kernel_log.Checker:
        checker = kernel_log.Checker()
        for line in lines(text):
            checker.feed(line)
        return checker

    def test_reports(self) -> None:
        for name, text in REPORTS.items():
            with self.subTest(name):
                checker = self.check(text)
                self.assertEqual(len(checker.reports), 1, text)

    def test_reports_in_a_clean_log(self) -> None:
        for name, text in REPORTS.items():
            with self.subTest(name):
                both = "\n".join(lines(CLEAN) + lines(text) + lines(CLEAN))
                self.assertEqual(len(self.check(both).reports), 1)

    def test_clean(self) -> None:
        for line in lines(CLEAN):
            with self.subTest(line):
                self.assertEqual(self.check(line).reports, [])

    def test_prefixes(self) -> None:
        for prefix in ("[    0.000000] ", "[12345.678901][  T123] ", "<4>[    1.000000] ", ""):
            self.assertEqual(kernel_log.strip_prefix(f"{prefix}text"), "text")
        self.assertEqual(kernel_log.strip_prefix("[    1.000000]     ok 1 a"), "    ok 1 a")

    def test_two_reports(self) -> None:
        gap = "\n".join(f"[    6.{i:06}] busy" for i in range(5))
        both = textwrap.dedent(REPORTS["warning"]).strip() + f"\n{gap}\n" + REPORTS["kasan"]
        checker = self.check(both)
        self.assertEqual(len(checker.reports), 2)
        self.assertIn("WARNING: drivers/x.c:12", checker.reports[0].title)
        self.assertIn("KASAN", checker.reports[1].title)

    def test_a_report_is_told_when_it_has_a_name(self) -> None:
        checker = kernel_log.Checker()
        told = [checker.feed(line) for line in lines(REPORTS["warning"])]
        self.assertIsNone(told[0])
        assert told[1]
        self.assertIn("WARNING", told[1].title)
        self.assertEqual([report for report in told[2:] if report], [])

    def test_a_long_report_is_one(self) -> None:
        text = "[    3.1] WARNING: possible circular locking dependency detected\n"
        text += "\n".join(f"[    3.1] line {i}" for i in range(80))
        text += "\n[    3.1]  *** DEADLOCK ***\n[    3.1] Call Trace:"
        self.assertEqual(len(self.check(text).reports), 1)

    def test_excerpt(self) -> None:
        text = "\n".join(
            ["before"] * 10 + ["[    1.000000] Oops: Oops: 0000 [#1]"] + ["after"] * 100
        )
        checker = self.check(text)
        excerpt = checker.excerpt(checker.reports[0])
        self.assertEqual(excerpt[kernel_log.LINES_BEFORE], "> [    1.000000] Oops: Oops: 0000 [#1]")
        self.assertEqual(excerpt[0], "  before")
        self.assertLess(len(excerpt), 60)

    def test_leaks_of_the_kernel(self) -> None:
        leak = "[    9.0] kmemleak: 3 new suspected memory leaks (see debugfs)"
        marker = f"[    9.1] {kernel_log.NO_LEAKS}"
        self.assertEqual(self.check(f"{leak}\n{marker}").reports, [])
        self.assertEqual(len(self.check(leak).reports), 1)
        both = f"{REPORTS['kasan']}\nx\nx\nx\nx\n{leak}\n{marker}"
        self.assertEqual(len(self.check(both).reports), 1)

    def test_tasks_are_no_report(self) -> None:
        marker = f"[    9.1] {kernel_log.OUT_OF_TIME}"
        self.assertEqual(self.check(f"{marker}\n[    9.2] Call Trace:").reports, [])

    def test_expected_report(self) -> None:
        start = "[    9.1] module: # a report is expected: BUG: sleeping function"
        report = "[    9.2] BUG: sleeping function called from\n[    9.2] Call Trace:"
        end = f"[    9.3] module: {kernel_log.EXPECTED_END}"
        self.assertEqual(self.check(f"{start}\n{report}\n{end}").reports, [])
        # It has to come, and nothing else.
        self.assertEqual(len(self.check(f"{start}\n{end}").reports), 1)
        both = f"{start}\n{report}\n{REPORTS['kasan']}\n{end}"
        self.assertEqual(len(self.check(both).reports), 1)
        self.assertEqual(len(self.check(f"{start}\n{report}\n{end}\n{report}").reports), 1)
        self.assertEqual(len(self.check(f"{report}\nx\nx\nx\n{start}\n{end}").reports), 2)

    def test_known_reports(self) -> None:
        text = "# remark\nname\n^BUG: KASAN: .* in gone\n\\[theirs\\]\nbecause\n\n\nb\nc\nd\ne\n"
        known = kernel_log.read_known(text)
        self.assertEqual([one.name for one in known], ["name", "b"])
        headline = "[    9.100000] BUG: KASAN: slab-use-after-free in gone+0x1\n[    9.100000] Call Trace:\n"
        both = f"{headline}[    9.100000]  f+0x1 [theirs]\n" + "[    9.200000] x\n" * 50 + headline
        checker = self.check(both + "[    9.300000]  g+0x1 [ours]")
        found = [checker.find(report, known) for report in checker.reports]
        self.assertEqual(found, [known[0], None])
        with self.assertRaises(ValueError):
            kernel_log.read_known("name\ntitle\nline\n")

    def test_known_reports_are_told_apart_by_two_lines(self) -> None:
        known = kernel_log.read_known((HERE / "lustre/known").read_text())
        title = "[    9.100000] BUG: KASAN: slab-use-after-free in queued_spin_lock_slowpath+0x4b/0x8c0\n"

        def found(*frames: str) -> Optional[str]:
            trace = "".join(f"[    9.100000]  {frame}+0x1/0x2\n" for frame in frames)
            trace = trace.replace("handler+0x1/0x2", "handler+0x1/0x2 [kkfilnd]")
            checker = self.check(f"{title}[    9.100000] Call Trace:\n{trace}")
            (report,) = checker.reports
            one = checker.find(report, known)
            return one and one.name

        unlock, handler = "__mutex_unlock_slowpath", "kfilnd_tn_event_handler"
        self.assertEqual(found(unlock, handler), "transaction-use-after-free-in-wait-lock")
        self.assertIsNone(found("kfi_send", unlock, "g", handler))
        self.assertIsNone(found(unlock))
        self.assertIsNone(found(handler, unlock))

    def test_known_reports_have_no_locks_of_others(self) -> None:
        known = kernel_log.read_known((HERE / "lustre/known").read_text())
        wanted = next(one for one in known if one.name == "interface-lock-order")

        def found(*classes: str) -> Optional[kernel_log.Known]:
            chain = "".join(
                f"[    9.200000] -> #{number} ({name}){{+.+.}}-{{4:4}}:\n[    9.200000]        f+0x1 [kkfilnd]\n"
                for number, name in enumerate(classes)
            )
            checker = self.check(
                "[    9.100000] WARNING: possible circular locking dependency detected\n"
                f"[    9.200000] lnetctl/7 is trying to acquire lock:\n"
                f"[    9.200000] ffff8880 ({classes[0]}){{+.+.}}-{{0:0}}, at: f+0x1\n{chain}"
                "[    9.300000] 1 lock held by lnetctl/7:\n"
                "[    9.300000]  #0: ffffffff (the_lnet.ln_api_mutex){+.+.}-{4:4}, at: g+0x1 [lnet]\n"
                "[    9.400000] Call Trace:\n[    9.400000]  h+0x1 [kfi_soft]"
            )
            (report,) = checker.reports
            return checker.find(report, known)

        mutex, queue = "&the_lnet.ln_lnd_mutex", "(wq_completion)kfilnd_wq"
        self.assertEqual(found(queue, mutex), wanted)
        # A lock that is only held is no part of it.
        self.assertIsNone(found("&a->lock", "&b->lock"))
        for ours in "kfi_soft::Association::state", "(wq_completion)kfi_soft", "kfabric::providers":
            self.assertIsNone(found(ours, mutex))
            self.assertIsNone(found(queue, mutex, ours))

    def test_guest_says_the_markers(self) -> None:
        init = (HERE / "init").read_text()
        for marker in (kernel_log.NO_LEAKS, kernel_log.OUT_OF_TIME, kernel_log.GUEST_UP):
            self.assertIn(f"log '{marker.partition(': ')[2]}'", init)


class Settings(unittest.TestCase):
    WORDS = ["printf", "%s\n", "", "two words", "it's", '"', "$HOME", "*", "a\nb", "-n", "ä", "\\"]

    def test_words_survive_the_shell(self) -> None:
        content = run.settings(self.WORDS, token="a b")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "settings").write_bytes(content)
            out = subprocess.run(
                ["sh", "-c", '. ./settings; printf "%s\\0" "$token" "$@"'],
                cwd=folder,
                check=True,
                stdout=subprocess.PIPE,
            ).stdout
        self.assertEqual(out.split(b"\0")[:-1], [os.fsencode(w) for w in ["a b", *self.WORDS]])

    @unittest.skipUnless(shutil.which("cpio"), "cpio is missing")
    def test_archive(self) -> None:
        archive = run.newc(
            [("a", 0o100644, b"hello"), ("bc", 0o100755, b""), ("d", 0o100600, b"x" * 9)]
        )
        self.assertEqual(len(archive) % 4, 0)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["cpio", "-i", "--quiet"], input=archive, cwd=folder, check=True, timeout=30
            )
            self.assertEqual((Path(folder) / "a").read_bytes(), b"hello")
            self.assertEqual((Path(folder) / "bc").stat().st_mode & 0o777, 0o755)
            self.assertEqual((Path(folder) / "d").read_bytes(), b"x" * 9)

    def test_settings_begin_aligned(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for size in range(1, 6):
                (folder / "image").write_bytes(b"i" * size)
                run.write_initrd(folder / "initrd", folder / "image", b"content")
                self.assertEqual((folder / "initrd").read_bytes().index(b"070701") % 4, 0)


class RecordsInOutput(unittest.TestCase):
    def feed(self, *parts: bytes) -> Tuple[bytes, List[str]]:
        records = run.Records("token")
        output, found = b"", []
        for part in parts:
            more, new = records.feed(part)
            output += more
            found += new
        return output, found

    def test_record(self) -> None:
        self.assertEqual(self.feed(b"a\n\x1etoken exit 3\nb"), (b"a\nb", ["exit 3"]))

    def test_in_pieces(self) -> None:
        text = b"no newline\x1etoken fail module x\n\x1etoken exit 0\n"
        pieces = [text[i : i + 1] for i in range(len(text))]
        self.assertEqual(self.feed(*pieces), (b"no newline", ["fail module x", "exit 0"]))

    def test_others_are_output(self) -> None:
        text = b"\x1etok\x1e\x1eother exit 0\n\x1etokenexit\n"
        self.assertEqual(self.feed(text), (text, []))


class CommandOfMachine(unittest.TestCase):
    """How a virtual machine is started on a host with two CPUs."""

    def command(self, vehicle: str = "qemu", cpus: int = 2, **more: object) -> str:
        machine = run.Machine(vehicle, Path("kernel"), "kernel", 64, cpus, "", "qemu", **more)
        with unittest.mock.patch("os.sched_getaffinity", return_value={0, 1}):
            return " ".join(machine.command(Path("initrd"), 3, Path("folder")))

    def test_emulated_cpus_poll(self) -> None:
        self.assertIn("idle=poll", self.command())
        self.assertIn("fsrm=off", self.command())

    def test_more_of_them_than_there_are_do_not(self) -> None:
        self.assertNotIn("idle=poll", self.command(cpus=3))

    def test_at_a_shell_they_do_not(self) -> None:
        self.assertNotIn("idle=poll", self.command(busy=False))

    def test_others_are_as_they_are(self) -> None:
        for command in (self.command(accel="kvm"), self.command("uml")):
            self.assertNotIn("idle=poll", command)
            self.assertNotIn("fsrm", command)

    def test_by_itself_it_has_no_network_and_is_not_reset(self) -> None:
        self.assertIn(" -no-reboot ", self.command())
        self.assertNotIn("-netdev", self.command())

    def test_on_a_network_it_may_be_reset(self) -> None:
        command = self.command(network=Path("port3"), number=3)
        self.assertNotIn("-no-reboot", command)
        self.assertIn("-netdev stream,id=network,addr.type=unix,addr.path=port3 ", command)
        self.assertIn("mac=52:54:00:00:00:03 ", command)

    def test_instructions_are_counted(self) -> None:
        command = self.command(cpus=1, icount=True)
        self.assertIn("-accel tcg,thread=single ", command)
        self.assertIn("-icount shift=0,sleep=off ", command)
        self.assertNotIn("idle=poll", command)
        self.assertNotIn("icount", self.command(cpus=1))


class WithoutMachine(unittest.TestCase):
    """Runs a shell in place of a virtual machine: the log is descriptor $LOG."""

    def guest(
        self,
        script: str,
        limit: float = 20,
        transcript: bool = False,
        allowed: Optional[List[str]] = None,
    ) -> Tuple[int, str]:
        class Shell(run.Machine):
            def command(self, initrd: Path, log: int, folder: Path) -> List[str]:
                content = initrd.read_bytes()
                token = content.split(b"token=")[1].split(b"\n")[0].decode()
                tell = f"tell() {{ printf '\\036{token} %s\\n' \"$*\"; }}\nLOG={log}\n"
                return ["bash", "-c", tell + textwrap.dedent(script)]

        machine = Shell("qemu", Path("kernel"), "kernel", 64, 1, "")
        output, errors = io.StringIO(), io.StringIO()
        with tempfile.TemporaryDirectory() as name:
            image = Path(name) / "image"
            image.write_bytes(b"")
            with contextlib.ExitStack() as stack:
                log = stack.enter_context(open(Path(name) / "log", "wb"))
                stack.enter_context(contextlib.redirect_stdout(output))
                stack.enter_context(contextlib.redirect_stderr(errors))
                status = run.run_command(
                    machine, image, ["command"], log, limit, transcript, allowed=allowed
                )
        self.errors = errors.getvalue()
        return status, output.getvalue()

    def last(self, output: str) -> str:
        return output.rstrip("\n").rpartition("\n")[2]

    def test_good(self) -> None:
        status, output = self.guest(
            """
            tell start
            echo KTAP version 1; echo 1..2; echo ok 1 a; printf 'ok 2 b # SKIP'
            tell exit 0
            echo '[    1.000000] fine' >&$LOG
            """
        )
        self.assertEqual(status, 0, output)
        self.assertEqual(self.last(output), "1 passed, 0 failed, 1 skipped")
        self.assertNotIn("\x1e", output)

    def test_test_is_skipped(self) -> None:
        # One in the log, which passes when it is run again.
        script = """
            log() { printf '[    1.000000] %s\n' "$1" >&$LOG; }
            log 'guest: up'; tell start
            log 'KTAP version 1'; log '1..2'; log 'ok 1 k/a # SKIP no'; log 'ok 2 k/b # SKIP no'
            log 'KTAP version 1'; log '1..1'; log 'ok 1 k/a # R-A-1'
            echo KTAP version 1; echo 1..2; echo ok 1 a/a; echo 'ok 2 a/b # SKIP no'
            tell exit 0
            """
        for allowed, failed in (
            (None, []),
            (["k/*", "a/b"], []),
            (["a/*"], ["kernel: k/b"]),
            ([], ["a/b", "kernel: k/b"]),
        ):
            with self.subTest(allowed):
                status, output = self.guest(script, allowed=allowed)
                self.assertEqual(status, int(bool(failed)), output)
                self.assertEqual(self.last(output), f"2 passed, {len(failed)} failed, 3 skipped")
                for name in failed:
                    self.assertIn(f"FAILED {name} - was skipped, which nobody expects: no", output)

    def test_test_fails(self) -> None:
        status, output = self.guest(
            """
            tell start
            echo KTAP version 1; echo 1..1; echo '# why'; echo not ok 1 a
            tell exit 1
            """
        )
        self.assertEqual(status, 1)
        self.assertIn("FAILED a\n    # why\n", output)
        self.assertEqual(self.last(output), "0 passed, 1 failed, 0 skipped")

    def test_command_fails(self) -> None:
        good = "tell start; echo KTAP version 1; echo 1..1; echo ok 1 a; "
        status, output = self.guest(good + "tell exit 3")
        self.assertEqual(status, 1)
        self.assertIn("ended with status 3", output)
        self.assertEqual(self.last(output), "1 passed, 1 failed, 0 skipped")

    def test_no_results(self) -> None:
        status, output = self.guest("tell start; echo hello; tell exit 0")
        self.assertEqual(status, 1)
        self.assertEqual(self.last(output), "0 passed, 1 failed, 0 skipped")

    def test_transcript(self) -> None:
        status, output = self.guest("tell start; echo hello; tell exit 0", transcript=True)
        self.assertEqual((status, output), (0, "hello\n"))
        status, output = self.guest("tell start; echo hello; tell exit 1", transcript=True)
        self.assertEqual((status, output), (1, "hello\n"))
        self.assertIn("ended with status 1", self.errors)

    def test_kernel_tests(self) -> None:
        status, output = self.guest(
            """
            log() { printf '[    1.000000] %s\n' "$1" >&$LOG; }
            log 'KTAP version 1'; log '1..1'; log 'not ok 1 of_the_kernel'
            log 'guest: up'
            log 'KTAP version 1'; log '1..1'; log 'not ok 1 a'
            log 'Linux version 7.3.4'
            log 'KTAP version 1'; log '1..1'; log 'not ok 1 of_the_kernel'
            log 'guest: up'
            log 'KTAP version 1'; log '1..1'; log 'ok 1 b'
            tell start; tell exit 0
            """
        )
        self.assertEqual(status, 1)
        self.assertEqual(self.last(output), "1 passed, 1 failed, 0 skipped")
        self.assertIn("FAILED kernel: a", output)

    def test_kernel_reports(self) -> None:
        status, output = self.guest(
            """
            tell start
            echo KTAP version 1; echo 1..1; echo ok 1 a
            echo '[    1.000000] BUG: KASAN: x in y' >&$LOG
            tell exit 0
            """
        )
        self.assertEqual(status, 1)
        self.assertIn("    > [    1.000000] BUG: KASAN: x in y", output)
        self.assertEqual(self.last(output), "1 passed, 1 failed, 0 skipped")

    def test_module_does_not_unload(self) -> None:
        status, output = self.guest(
            """
            tell start
            echo KTAP version 1; echo 1..1; echo ok 1 a
            tell fail module kfi_soft does not unload: busy
            tell exit 0
            """
        )
        self.assertEqual(status, 1)
        self.assertIn("module kfi_soft does not unload: busy", output)

    def test_dies_early(self) -> None:
        for before in ("", "tell start; "):
            status, output = self.guest(
                before + "echo last words; echo '[    1.0] last line' >&$LOG; kill -SEGV $$"
            )
            self.assertEqual(status, 1)
            self.assertIn("SIGSEGV", output)
            self.assertIn("last output of programs: last words", output)
            self.assertIn("last line of the kernel: [    1.0] last line", output)

    def test_emulator_fails(self) -> None:
        script = """
            log() {{ printf '[    1.000000] %s\\n' "$1" >&$LOG; }}
            oops() {{ log 'Oops: int3: 0000 [#1] SMP'; log "Code: 41 57 $1 <90> e8"; exit 0; }}
            echo boot >> {boots}
            {died}
            log 'guest: up'
            tell start; echo KTAP version 1; echo 1..1; echo ok 1 a; tell exit 0
            """
        first = "[[ $(wc -l < {boots}) -gt 1 ]] || "
        for died, status, boots in (
            (first + "oops 66", 0, 2),
            # For good.
            ("oops 66", 1, 3),
            # The breakpoint is there.
            (first + "oops cc", 1, 1),
            # Something else is wrong, too.
            (first + "{{ log 'BUG: x'; seq 9 >&$LOG; oops 66; }}", 1, 1),
            # Modules are in it.
            (first + "{{ log 'guest: up'; oops 66; }}", 1, 1),
        ):
            with self.subTest(died), tempfile.TemporaryDirectory() as name:
                file = Path(name) / "boots"
                one = died.format(boots=file)
                found, output = self.guest(script.format(boots=file, died=one))
                self.assertEqual((found, file.read_text().count("\n")), (status, boots), output)
                self.assertIn(f"{1 - status} passed, ", self.last(output))

    def test_cannot_start(self) -> None:
        status, output = self.guest("echo 'no such accelerator' >&2; exit 1")
        self.assertEqual(status, 1)
        self.assertIn("virtual machine: no such accelerator", output)

    def test_time_limit(self) -> None:
        start = time.monotonic()
        status, output = self.guest("tell start; echo thinking; sleep 60 & sleep 61", limit=1)
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(status, 1)
        self.assertIn("did not end within 1 s", output)
        self.assertIn("last output of programs: thinking", output)

    def test_everything_is_killed(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            pids = Path(name) / "pids"
            self.guest(f"sleep 60 & echo $$ $! > {pids}; wait", limit=1)
            for pid in pids.read_text().split():
                for _ in range(50):
                    state = Path(f"/proc/{pid}/stat")
                    if not state.exists() or state.read_text().split()[2] == "Z":
                        break
                    time.sleep(0.1)
                else:
                    self.fail(f"process {pid} lives")

    def test_much_output(self) -> None:
        status, output = self.guest(
            """
            tell start
            echo KTAP version 1; echo 1..1
            seq 100000 &
            seq 100000 >&$LOG
            wait
            echo ok 1 a
            tell exit 0
            """
        )
        self.assertEqual(status, 0)
        self.assertIn("\n100000\n", output)


class CommandLine(unittest.TestCase):
    def test_command(self) -> None:
        options = run.parse(["--kernel", "k", "--image", "i", "--", "a", "--", "--kernel"])
        self.assertEqual(options.command, ["a", "--", "--kernel"])

    def test_wrong(self) -> None:
        kernel = ["--kernel", "k", "--image", "i"]
        wrong = ([], ["--shell", "--", "a"], ["--cpus", "0", "--", "a"], ["--what", "--", "a"])
        for words in wrong:
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                run.parse(kernel + words)

    def test_no_kernel(self) -> None:
        with self.assertRaises(run.CannotRun):
            run.find_kernel(Path("/nonexistent"), None)

    def test_vehicle_by_kernel(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "linux").touch()
            self.assertEqual(run.find_kernel(Path(name), None), ("uml", Path(name) / "linux"))
            with self.assertRaises(run.CannotRun):
                run.find_kernel(Path(name), "qemu")


if __name__ == "__main__":
    unittest.main()
