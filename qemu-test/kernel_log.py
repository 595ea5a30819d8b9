# SPDX-License-Identifier: GPL-2.0
"""Finds what a kernel reports about itself in its log: warnings, oopses, what
the sanitizers and lock checkers say, leaks, hangs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterable, List, Optional, Pattern, Tuple

import ktap

# Before a printk line: level (a raw console), time, and CPU or task if the
# kernel was configured to say them.
PREFIX = re.compile(r"(?:<\d+>)?\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])? ?")

# The guest says this first. Tests that the kernel has run before are its own.
GUEST_UP = "guest: up"

# A kernel says this first: also that of a machine that was reset.
BOOT = "Linux version "

# The guest says this if the leaks that were found are the kernel's own.
NO_LEAKS = "guest: the leaks up to here, if any, are not the modules"

# And this when it is about to run out of time: what it prints from then on is
# the state of all tasks, asked for, with back traces.
OUT_OF_TIME = "guest: out of time, these are the tasks"

# A test that provokes a report says so before, with a part of its title, and
# after. The report has to come.
EXPECTED = re.compile(r"# a report is expected: (.+)")
EXPECTED_END = "# a report was expected"

# As lockdep names one: its class, and how it is used.
LOCK = re.compile(r"\((\S.*)\)\{[^{}]*\}-\{\d+:\d+\}")
LEAKS = re.compile(r"kmemleak: .*suspected memory leaks|\bunreferenced object\b")

REPORTS: Tuple[Pattern[str], ...] = tuple(
    re.compile(pattern)
    for pattern in (
        # Headlines. In capitals, as words: "debugfs" and "x86/bugs" are none.
        r"\bWARNING\b",
        r"\bBUG\b",
        r"\b(?:KASAN|KCSAN|KMSAN|KFENCE|UBSAN)\b",
        r"\bOops\b",
        r"\bKernel panic\b",
        r"cut here",
        r"\bpanicked at\b|Rust panic",
        # Faults.
        r"general protection fault",
        r"[Uu]nable to handle",
        r"\b(?:divide error|invalid opcode|double fault|stack segment):",
        r"stack guard page was hit|stack overflow|stack end detected|stack is corrupted",
        r"\bsegfault at\b|\btrap (?:invalid opcode|divide error|int3)\b",
        # Locks and contexts.
        r"possible (?:circular|recursive|irq lock inversion|unsafe)",
        r"lock inversion|inconsistent .*lock state|Invalid wait context",
        r"suspicious RCU usage|[Ii]llegal context switch in RCU",
        r"held lock freed|bad unlock balance|bad contention|lock held when returning",
        r"DEBUG_LOCKS_WARN_ON|DEADLOCK",
        r"INFO: trying to register non-static key|INFO: lockdep is turned off",
        r"turning off the locking correctness validator",
        r"Disabling lock debugging",
        r"scheduling while atomic|called from invalid context|preemption imbalance",
        r"using (?:smp_processor_id|__this_cpu_\w+)\(\) in preemptible",
        # Hangs.
        r"INFO: task .* blocked",
        r"soft lockup|hard LOCKUP|workqueue lockup|blocked for more than",
        r"detected (?:expedited )?stalls?\b|kthread starved|timer wakeup didn't happen",
        # Memory.
        r"refcount_t:",
        r"list_(?:add|del)(?:_\w+)? (?:corruption|double add)|list_\w+ corruption",
        r"\bODEBUG\b(?!: selftest passed)",
        r"\bdouble[- ]free\b|[Oo]bject already free",
        r"[Ss]lab .*corrupt|(?:Poison|Redzone|Padding|Object) .*overwritten",
        r"still has objects|Objects remaining in",
        r"Bad page (?:state|map)|bad: scheduling|Bad rss-counter",
        r"[Oo]ut of memory|invoked oom-killer|page allocation failure",
        LEAKS.pattern,
        # Devices and the rest.
        r"unregister_netdevice",
        r"refcount (?:overflow|underflow)|leaked (?:reference|IRQ|irq)",
        r"kobject.*(?:does not have a release|tried to init)|sysfs: cannot create duplicate",
        # The lines of every report, whatever its headline.
        r"Call Trace:",
        r"Modules linked in:",
        r"-+\[ end trace",
    )
)

# A report begins with one of these, if it begins properly.
HEADLINE = re.compile(r"^(?:\[ )?(?:WARNING|BUG|UBSAN|INFO): |cut here")

# These go with a headline, they do not start a report if one is near.
CONTINUED = re.compile(
    r"Call Trace:|Modules linked in:|end trace|Disabling lock debugging|DEADLOCK|possible unsafe"
    r"|Kernel panic|Oops|KASAN|double[- ]free|general protection fault"
)

CLEAN: Tuple[Pattern[str], ...] = tuple(
    re.compile(pattern)
    for pattern in (
        # The kernel repeats what it was told.
        r"^(?:Kernel command line|Command line|Unknown kernel command line parameters)\b",
        # Mitigations that the host's CPU needs and the guest does without.
        r"^(?:Spectre V\d|RETBleed|SRSO|MDS|TAA|MMIO|ITS|TSA|GDS|VMSCAPE)\w* ?[\w ]*: ?WARNING:",
        # The kernel's own races at boot and between a timer's interrupt and who is interrupted.
        r"^BUG: KCSAN: data-race in (?:calibrate_APIC_clock|do_nanosleep|hrtimer_wakeup|tick_nohz_)",
        r"^Reported by Kernel Concurrency Sanitizer",
    )
)

# A trap on a breakpoint, and the code around: the instruction in <> is the one behind the breakpoint.
BREAKPOINT = re.compile(r"^Oops: int3\b")
CODE = re.compile(r"^Code: .*\b([0-9a-f]{2}) <[0-9a-f]{2}>")

# A report is shown with some lines before it and the lines up to its end, as
# far as that can be told, but not more than this.
LINES_BEFORE = 4
LINES_AFTER = 40
REPORT_SPAN = 150


def strip_prefix(line: str) -> str:
    """The line as printk got it."""
    return PREFIX.sub("", line, count=1)


def is_report(text: str) -> bool:
    """Whether a line, without its prefix, is one that no clean log has."""
    if not any(pattern.search(text) for pattern in REPORTS):
        return False
    if ktap.is_result(text):
        # The name of a test may be any text.
        return False
    return not any(pattern.search(text) for pattern in CLEAN)


@dataclass
class Report:
    """Lines that belong together, by their numbers from 1."""

    # The first that says what it is about.
    title: str
    first: int
    last: int
    lines: List[int] = field(default_factory=list)


@dataclass(frozen=True)
class Known:
    """A report that is somebody else's fault and has been looked into."""

    name: str
    # They match its title, and a line of it besides, or a line and the one behind it.
    title: Pattern[str]
    line: Pattern[str]
    reason: str
    # Of names of lock classes: if one of those in the report has it, it is another one.
    others: Optional[Pattern[str]] = None


def read_known(text: str) -> List[Known]:
    """Four or five lines for each, between empty lines, as the members of Known; # begins a remark."""
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    known = []
    for block in "\n".join(lines).split("\n\n"):
        if not block.strip():
            continue
        parts = block.strip().split("\n")
        if len(parts) not in (4, 5):
            raise ValueError(f"neither four lines nor five: {parts[0]}")
        name, title, line, reason = parts[:4]
        others = re.compile(parts[4]) if parts[4:] else None
        known.append(Known(name, re.compile(title), re.compile(line), reason, others))
    return known


class Checker:
    """Takes the lines of a kernel log; what it found is in reports."""

    def __init__(self) -> None:
        self.lines: List[str] = []
        self.reports: List[Report] = []
        # Number of the line from which on the guest tells what it was doing.
        self.out_of_time = 0
        # The title that is expected, and the number of the line that says so.
        self._expected: Optional[Tuple[str, int]] = None

    def feed(self, line: str) -> Optional[Report]:
        """Takes one line. Gives a report when the line has given it its title."""
        self.lines.append(line)
        text = strip_prefix(line)
        if NO_LEAKS in text:
            self.reports = [r for r in self.reports if not LEAKS.search(r.title)]
        if OUT_OF_TIME in text:
            self.out_of_time = len(self.lines)
        if match := EXPECTED.search(text):
            self._expected = match[1], len(self.lines)
            return None
        if EXPECTED_END in text:
            return self._end_expected()
        if self.out_of_time or not is_report(text):
            return None
        number = len(self.lines)
        last = self.reports[-1] if self.reports else None
        if last and not self._is_unexpected(text) and self._continues(last, number, text):
            last.last = number
            last.lines.append(number)
            if "cut here" not in last.title:
                return None
            last.title = text.strip()
            return last
        report = Report(text.strip(), number, number, [number])
        self.reports.append(report)
        if self._expected and self._expected[0] in text:
            return None
        return None if "cut here" in text else report

    def find(self, report: Report, known: Iterable[Known]) -> Optional[Known]:
        """The first of the known reports that this one is, if any."""
        end = min([r.first - 1 for r in self.reports if r.first > report.first] + [report.last + 30])
        lines = [strip_prefix(line) for line in self.lines[report.first - 1 : end]]
        locks = [match[1] for line in lines if (match := LOCK.search(line))]
        lines += map("\n".join, zip(lines, lines[1:]))
        for one in known:
            if one.others and any(map(one.others.search, locks)):
                continue
            if one.title.search(report.title) and any(map(one.line.search, lines)):
                return one
        return None

    def breakpoint_was_gone(self) -> bool:
        """Whether all there is to report is a trap on a breakpoint that is not in memory."""
        if len(self.reports) != 1 or not BREAKPOINT.search(self.reports[0].title):
            return False
        texts = map(strip_prefix, self.lines[self.reports[0].first - 1 :])
        code = next((match for text in texts if (match := CODE.search(text))), None)
        return code is not None and code[1] != "cc"

    def _is_unexpected(self, text: str) -> bool:
        """Whether another report begins inside of the one that is expected."""
        if not self._expected or self._expected[0] in text:
            return False
        return bool(HEADLINE.search(text))

    def _end_expected(self) -> Optional[Report]:
        """Forgets the report that was expected, or makes one of its absence."""
        if not self._expected:
            return None
        title, start = self._expected
        self._expected = None
        others = [r for r in self.reports if r.first < start or title not in r.title]
        missing = len(others) == len(self.reports)
        self.reports = others
        if not missing:
            return None
        number = len(self.lines)
        report = Report(f"expected and not seen: {title}", start, number, [start, number])
        self.reports.append(report)
        return report

    def excerpt(self, report: Report) -> List[str]:
        """The lines of a report with some context, the matching ones marked."""
        start = max(0, report.first - 1 - LINES_BEFORE)
        end = min(len(self.lines), max(report.last + 5, report.first + LINES_AFTER // 2))
        cut = start + LINES_BEFORE + LINES_AFTER
        marked = set(report.lines)
        shown = [
            f"{'>' if number in marked else ' '} {self.lines[number - 1]}"
            for number in range(start + 1, min(end, cut) + 1)
        ]
        if end > cut:
            shown.append(f"  ... {end - cut} more lines")
        return shown

    @staticmethod
    def _continues(last: Report, number: int, text: str) -> bool:
        if LEAKS.search(text) and LEAKS.search(last.title):
            # One report: kmemleak names the leaks one after the other.
            return True
        if CONTINUED.search(text) and not HEADLINE.search(text):
            return number - last.first <= REPORT_SPAN
        return number - last.last <= 3
