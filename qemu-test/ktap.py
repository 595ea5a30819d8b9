# SPDX-License-Identifier: GPL-2.0
"""Reads KTAP, the test format of the kernel (Documentation/dev-tools/ktap.rst).

The text may come with other lines in between and may end anywhere: what was
promised and did not come is a failure too.
"""

from __future__ import annotations

import enum
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Deque, List, Optional

# How many lines before a result are kept to explain it.
DIAGNOSTICS_KEPT = 60

VERSION = re.compile(r"( *)(?:KTAP version \d+|TAP version 1[34])$")
SUBTEST = re.compile(r"( *)# Subtest: (.+)$")
PLAN = re.compile(r"( *)1\.\.(\d+)(?: *#.*)?$")
RESULT = re.compile(r"( *)(ok|not ok)\b(?: +(\d+))?(?: +-)?(?: +([^#]*?))? *(?:#(.*))?$")
DIRECTIVE = re.compile(r"(?:^|#) *(SKIP|TODO|XFAIL|TIMEOUT|ERROR)(?=$|[ :])[ :]*(.*)$", re.I)
BAIL_OUT = re.compile(r" *Bail out!(.*)$")


class Outcome(enum.Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Line(enum.Enum):
    """The kind of a line, for those who show it."""

    STRUCTURE = enum.auto()
    PASSED = enum.auto()
    FAILED = enum.auto()
    SKIPPED = enum.auto()
    OTHER = enum.auto()


@dataclass
class Result:
    """The outcome of one test."""

    name: str
    outcome: Outcome
    reason: str = ""
    diagnostics: List[str] = field(default_factory=list)


@dataclass
class Level:
    """A list of tests that is being read."""

    indent: int
    name: str = ""
    plan: Optional[int] = None
    seen: int = 0
    last_number: Optional[int] = None
    results: List[Result] = field(default_factory=list)
    # Results of a nested list whose own result is still to come.
    nested: List[Result] = field(default_factory=list)
    # That list was not complete; whoever ran it will not tell its result.
    nested_broken: bool = False
    lines: Deque[str] = field(default_factory=lambda: deque(maxlen=DIAGNOSTICS_KEPT))

    def complete(self) -> bool:
        return self.plan is not None and self.seen >= self.plan

    def fail(self, what: str) -> None:
        self.results.append(
            Result("", Outcome.FAILED, what, [line for line in self.lines if line.strip()])
        )


def is_result(line: str) -> bool:
    """Whether the line is a numbered result."""
    match = RESULT.match(line.rstrip())
    return match is not None and match[3] is not None


class Parser:
    """Takes lines, gives results. Call finish() at the end of the text."""

    def __init__(self) -> None:
        self.results: List[Result] = []
        self._levels: List[Level] = []
        self._finishing = False

    def feed(self, line: str) -> Line:
        line = line.rstrip()
        if match := VERSION.match(line):
            self._open(len(match[1]))
            return Line.STRUCTURE
        if match := SUBTEST.match(line):
            return self._subtest(len(match[1]), match[2])
        if match := PLAN.match(line):
            return self._plan(line, len(match[1]), int(match[2]))
        if match := BAIL_OUT.match(line):
            return self._bail_out(match[1].strip())
        if (match := RESULT.match(line)) and match[3]:
            return self._result(line, match)
        return self._other(line)

    def finish(self) -> List[Result]:
        """Ends the text: what is still open is incomplete."""
        self._finishing = True
        while self._levels:
            self._close()
        return self.results

    def _other(self, line: str) -> Line:
        if self._levels:
            self._levels[-1].lines.append(line)
        return Line.OTHER

    def _open(self, indent: int, name: str = "") -> None:
        while self._levels and self._levels[-1].indent >= indent:
            self._close()
        self._levels.append(Level(indent, name))

    def _subtest(self, indent: int, name: str) -> Line:
        top = self._levels[-1] if self._levels else None
        if top and top.indent == indent:
            # The name follows the version line; anywhere else it is a remark.
            if top.seen == 0 and not top.name:
                top.name = name
        elif not top or indent > top.indent:
            self._open(indent, name)
        return Line.STRUCTURE

    def _plan(self, line: str, indent: int, count: int) -> Line:
        level = self._at(indent)
        if level is None:
            return self._other(line)
        if level.plan is not None:
            level.fail("a second plan")
        level.plan = count
        return Line.STRUCTURE

    def _bail_out(self, reason: str) -> Line:
        diagnostics = list(self._levels[-1].lines) if self._levels else []
        path = ".".join(level.name for level in self._levels if level.name)
        while self._levels:
            self._drop(self._levels.pop())
        self.results.append(
            Result(path or "test plan", Outcome.FAILED, f"bail out: {reason}", diagnostics)
        )
        return Line.FAILED

    def _result(self, line: str, match: "re.Match[str]") -> Line:
        level = self._at(len(match[1]))
        if level is None:
            return self._other(line)
        number = int(match[3])
        name = match[4] or f"test {number}"
        outcome, reason = judge(match[2] == "ok", match[5] or "")

        level.seen += 1
        if level.last_number is not None and number != level.last_number + 1:
            level.fail(f"result {number} follows result {level.last_number}")
        level.last_number = number

        nested, level.nested, level.nested_broken = level.nested, [], False
        for result in nested:
            result.name = f"{name}.{result.name}" if result.name else name
        level.results.extend(nested)
        # The result of a list is that of its tests, and they have been
        # counted. It says something new only if it fails on its own.
        failed_inside = any(result.outcome is Outcome.FAILED for result in nested)
        if not nested or (outcome is Outcome.FAILED and not failed_inside):
            diagnostics = [text for text in level.lines if text.strip()]
            if outcome is Outcome.PASSED:
                diagnostics = []
            level.results.append(Result(name, outcome, reason, diagnostics))
        level.lines.clear()
        return Line[outcome.name]

    def _at(self, indent: int) -> Optional[Level]:
        """The level a line with this indentation belongs to, if any."""
        if not self._levels:
            # Results without a version line are counted as well, but they
            # need a plan like all others.
            if indent:
                return None
            self._open(indent)
        elif all(level.indent != indent for level in self._levels):
            return None
        while self._levels[-1].indent > indent:
            self._close()
        return self._levels[-1]

    def _close(self) -> None:
        """Ends the innermost level and hands its results to the next one."""
        level = self._levels.pop()
        if level.nested_broken:
            # The broken one was a test of ours; it has its own failure.
            level.seen += 1
        broken = False
        if level.plan is not None:
            if level.seen < level.plan:
                missing = level.plan - level.seen
                level.fail(f"{missing} of {level.plan} results missing")
                broken = True
            elif level.seen > level.plan:
                level.fail(f"{level.seen} results, but {level.plan} were planned")
        elif not self._levels:
            # Nested lists end with their own result, a list without a plan
            # that nothing follows may have been cut off anywhere.
            level.fail("no plan" if level.seen else "no plan and no results")
        elif self._finishing:
            level.fail("the list does not end")
            broken = True
        self._drop(level)
        if self._levels:
            self._levels[-1].nested_broken |= broken or self._finishing

    def _drop(self, level: Level) -> None:
        results = level.results + level.nested
        if not self._levels:
            for result in results:
                if not result.name:
                    result.name = level.name or "test plan"
            self.results.extend(results)
            return
        if self._finishing and level.name:
            # No result will come that could lend its name.
            for result in results:
                result.name = f"{level.name}.{result.name}" if result.name else level.name
        self._levels[-1].nested.extend(results)
        # Lines behind the last result are about the list as a whole.
        self._levels[-1].lines.extend(level.lines)


def judge(ok: bool, remark: str) -> "tuple[Outcome, str]":
    """The outcome of a result with this remark behind its `#`."""
    remark = remark.strip()
    match = DIRECTIVE.search(remark)
    if match is None:
        return (Outcome.PASSED if ok else Outcome.FAILED), remark
    directive, reason = match[1].upper(), match[2].strip()
    if directive == "SKIP":
        return Outcome.SKIPPED, reason
    if directive in ("TODO", "XFAIL"):
        return (Outcome.PASSED if ok else Outcome.SKIPPED), f"{directive} {reason}".strip()
    return Outcome.FAILED, f"{directive} {reason}".strip()
