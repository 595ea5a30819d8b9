#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Builds many faults into one set of modules, each of them off until it is chosen.

To compile a module takes longer than most tests need to notice a fault in it. So qemu-test/mutants.py
puts all faults of which that can be said in Rust behind a switch, compiles once, and chooses one by
writing its number into a copy of each module:

    if a < b {           if crate::fault_switch::is_on(7) != (a < b) {

What cannot be said so, or is no Rust then, such as a call in a constant, is left to be built alone.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import contextlib
import os
import re
from pathlib import Path
from typing import Dict, Iterator, NamedTuple, Optional, Set, Tuple

# In front of the number of the fault that is on.
MARK = b"kfi-test: fault:"

# At the end of the root of each crate.
SWITCH = f"""
mod fault_switch {{
    #![allow(unsafe_code)]

    #[repr(C)]
    struct Switch {{
        mark: [u8; {len(MARK)}],
        number: u32,
    }}

    #[used]
    static SWITCH: Switch = Switch {{
        mark: *b"{MARK.decode()}",
        number: 0,
    }};

    #[inline(always)]
    pub(crate) fn is_on(number: u32) -> bool {{
        // SAFETY: It is a static.
        let on = unsafe {{ core::ptr::read_volatile(&raw const SWITCH.number) }};
        on == number
    }}
}}
"""


class Line(NamedTuple):
    """A line of code without its comment, and what it has around it."""

    code: str
    before: str
    after: str


# --- what a fault is behind a switch ------------------------------------------


def on(number: int) -> str:
    return f"crate::fault_switch::is_on({number})"


def changed(before: str, after: str) -> Tuple[int, int, int]:
    """Where two texts begin to differ, and where each of them ends to."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    most = min(len(before), len(after)) - start
    while end < most and before[len(before) - 1 - end] == after[len(after) - 1 - end]:
        end += 1
    return start, len(before) - end, len(after) - end


# Where an operand of a comparison ends, on its left and on its right.
LEFT = re.compile(r"(?:&&|\|\||[,;{|]|=>|(?<![=!<>])=|\b(?:if|while|return|in)) $")
RIGHT = re.compile(r" (?:&&|\|\||\{|=>)|,|;|\?|\.\.")


def operands(code: str, start: int, end: int) -> Optional[Tuple[int, int]]:
    """From where to where a comparison goes whose operator is there; nothing if that is not clear."""
    depth, left = 0, start
    while left > 0:
        char = code[left - 1]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and LEFT.search(code[:left]):
            break
        left -= 1
    depth, right = 0, end
    while right < len(code):
        char = code[right]
        if depth == 0 and RIGHT.match(code, right):
            break
        if char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                break
            depth -= 1
        right += 1
    # A text in quotes may hold anything.
    return None if '"' in code else (left, right)


def goes_on(line: Line) -> bool:
    """Whether an operand may be on more than this line."""
    begins = re.match(r"[.?+\-*/]|==|!=|<|>", line.code.lstrip())
    ends = re.match(r"\s*([.?+\-*/&|^]|as\b)(?!&|\|)", line.after)
    opened = re.search(r"[(\[{+\-*/=<>!]$", line.code.rstrip())
    return bool(begins or ends) or bool(opened and not line.code.rstrip().endswith("{"))


def comparison(line: Line, before: str, after: str, switch: str) -> Optional[str]:
    start, end, _ = changed(before, after)
    # Of an operator of two characters one may be the same.
    while before[start - 1] != " ":
        start -= 1
    while end < len(before) and before[end] != " ":
        end += 1
    found = operands(before, start, end)
    if not found or goes_on(line):
        return None
    left, right = found
    return f"{before[:left]}({switch} != ({before[left:right]})){before[right:]}"


def number(_line: Line, before: str, after: str, switch: str) -> Optional[str]:
    for match in re.finditer(r"(?<![\w.\"'])(\d[\d_]*)(?![\w.\"'])", before):
        more = str(int(match[1].replace("_", "")) + 1)
        if before[: match.start()] + more + before[match.end() :] == after:
            either = f"(if {switch} {{ {more} }} else {{ {match[1]} }})"
            return before[: match.start()] + either + before[match.end() :]
    return None


def statement(_line: Line, before: str, _after: str, switch: str) -> Optional[str]:
    return f"if !{switch} {{ {before} }}"


def early(_line: Line, _before: str, after: str, switch: str) -> Optional[str]:
    return after.replace("if true {", f"if {switch} {{", 1)


def branch(_line: Line, _before: str, after: str, switch: str) -> Optional[str]:
    if after.endswith(") && false {"):
        return after.removesuffix("false {") + f"!{switch} {{"
    if after.endswith(") || true {"):
        return after.removesuffix("true {") + f"{switch} {{"
    return None


def negation(_line: Line, before: str, after: str, switch: str) -> Optional[str]:
    start, _, _ = changed(before, after)
    return f"{before[:start]}{switch} ^ {before[start:]}" if before[start] == "!" else None


def flag(_line: Line, before: str, after: str, switch: str) -> Optional[str]:
    for pattern in (r"(?<= \| )([A-Z][\w:]*)", r"(?<![\w:])([A-Z][\w:]*)(?= \| )"):
        for match in re.finditer(pattern, before):
            first, last = before[: match.start()], before[match.end() :]
            if after in (first.removesuffix(" | ") + last, first + last.removeprefix(" | ")):
                either = f"(if {switch} {{ {match[1]} ^ {match[1]} }} else {{ {match[1]} }})"
                return first + either + last
    return None


def other(_line: Line, before: str, after: str, switch: str) -> Optional[str]:
    # Only where one is the opposite of the other one.
    start, end, _ = changed(before, after)
    for match in re.finditer(r"\.is_(?:none|some)\(\)", before):
        if match.start() < start and end <= match.end():
            return f"{before[:match.end()]}.ne(&{switch}){before[match.end():]}"
    return None


RULES = {
    "comparison": comparison,
    "number": number,
    "statement": statement,
    "early": early,
    "branch": branch,
    "negation": negation,
    "flag": flag,
    "other": other,
}


def switched(rule: str, line: Line, before: str, after: str, number: int) -> Optional[str]:
    """What stands in the line when the fault has a switch; nothing if it can have none."""
    said = RULES.get(rule)
    return said(line, before, after, on(number)) if said else None


# --- in files -----------------------------------------------------------------


class Fault(NamedTuple):
    """A fault, as mutants.Mutant has it."""

    path: str
    line: int
    rule: str
    before: str
    after: str


def put_all(tree: Path, faults: Dict[int, Fault]) -> Set[int]:
    """Puts faults into a copy, by their numbers, of each line one at most; returns those that are there."""
    there: Set[int] = set()
    for path in sorted({fault.path for fault in faults.values()}):
        lines = (tree / path).read_text().splitlines(keepends=True)
        taken: Set[int] = set()
        for number, fault in sorted(faults.items()):
            if fault.path != path or fault.line in taken:
                continue
            at = fault.line - 1
            whole = lines[at].rstrip("\n")
            code = whole.split(" //", 1)[0]
            if code.strip() != fault.before:
                continue
            following = lines[at + 1] if at + 1 < len(lines) else ""
            line = Line(code, lines[at - 1] if at else "", following)
            said = switched(fault.rule, line, fault.before, fault.after, number)
            if said is None:
                continue
            indent = code[: len(code) - len(code.lstrip())]
            lines[at] = indent + said + whole[len(code) :] + "\n"
            taken.add(fault.line)
            there.add(number)
        (tree / path).write_text("".join(lines))
    return there


@contextlib.contextmanager
def times_kept(tree: Path, paths: Set[str]) -> Iterator[None]:
    """Files that are the same afterwards keep their time."""
    before = {}
    for path in paths:
        if (tree / path).exists():
            before[path] = ((tree / path).read_bytes(), (tree / path).stat().st_mtime_ns)
    yield
    for path, (content, time) in before.items():
        if (tree / path).read_bytes() == content:
            os.utime(tree / path, ns=(time, time))


def put_switch(root: Path) -> None:
    """Puts the switch into a crate, whose root that is."""
    with open(root, "a") as out:
        out.write(SWITCH)


# An error of the compiler, and where it is.
ERROR = re.compile(r"^error(?:\[E\d+\])?: .*\n +--> (\S+\.rs):(\d+):\d+", re.M)
# How many lines an error may be away from what it comes of.
NEAR = 3


def refused(log: str, faults: Dict[int, Fault], tree: Path) -> Set[int]:
    """The faults of which the compiler complains."""
    found: Set[int] = set()
    for path, line in ERROR.findall(log):
        path = path.removeprefix(f"{tree}/")
        while path.startswith("../"):
            path = path[3:]
        here = {n: abs(f.line - int(line)) for n, f in faults.items() if path.endswith(f.path)}
        least = min(here.values(), default=NEAR + 1)
        found |= {number for number, far in here.items() if far == least <= NEAR}
    return found


def choose(module: bytes, number: int) -> bytes:
    """A module in which the fault of that number is on."""
    if (at := module.find(MARK)) < 0:
        return module
    at += len(MARK)
    return module[:at] + number.to_bytes(4, "little") + module[at + 4 :]
