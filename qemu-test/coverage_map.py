#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints which tests show which requirement.

The requirements are listed in Documentation/requirements.md. Tests name them: those of the
guest suite in the tables of qemu-test/guest/suite/src/tests, those in C in the
tables of qemu-test/consumer, those of KUnit in comments at the test.

A default run (make test) skips some of them, and says so: qemu-test/skipped has
their names. .ci/run runs some of these in the debug kernel. A requirement that
neither shows rests on nothing that is run as a matter of course.

The exit status is 0 if every requirement has a test that is run and every id
that a test names is a requirement, 1 if not, 2 if something cannot be read.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
LIST = "Documentation/requirements.md"
SKIPPED = "qemu-test/skipped"
CI = ".ci/run"

ID = re.compile(r"\bR-[A-Z]+-\d+\b")
# The line of a table. Other lines that begin as one with an id does are wrong.
ROW = re.compile(r"\|\s*R-")
REQUIREMENT = re.compile(r"\| (R-[A-Z]+-\d+) \| (MUST|DECIDE) \| (\S.*) \|")
# tests! { "area" parallel; alone "name" ["R-... R-..."] function; ... }
SUITE_TABLE = re.compile(r"^tests! \{\s*\"([^\"]+)\"(?: parallel)?;(.*?)^\}", re.M | re.S)
SUITE_TEST = re.compile(r"\"([^\"]+)\"\s*\[\s*\"([^\"]*)\"\s*\]")
# { "area/name", "R-... " "R-...", function },
C_TABLE = re.compile(r"struct test_case \w+\[\] = \{(.*?)^\};", re.M | re.S)
C_TEST = re.compile(r"\{\s*\"([^\"]+)\",\s*((?:\"[^\"]*\"\s*)+),")
C_PRINTED = re.compile(r"print_result\([^;]*?\"([\w/-]+)\",\s*\"([^\"]*)\"\s*\)")
KUNIT_MODULE = re.compile(r"^#\[kunit_tests\((\w+)\)\]\n(.*?)^\}", re.M | re.S)
# The comment above a test, and the test up to its end.
KUNIT_TEST = re.compile(
    r"((?:^ +///?[^\n]*\n)*)^( +)#\[test\]\n(?:^ +#\[[^\n]*\n)*^ +fn (\w+)(.*?)^\2\}",
    re.M | re.S,
)
COMMENT = re.compile(r"//[^\n]*")
# PATTERN: why
SKIP = re.compile(r"([^\s:]+): (\S.*)")
IN_DEBUG = re.compile(r"^make test-debug ARGS='([^']*)'", re.M)

KINDS = ("suite", "C", "KUnit")


class BadList(Exception):
    """The list of requirements is not what it should be."""


class Requirement(NamedTuple):
    """A line of the list."""

    id: str
    source: str
    text: str


class Test(NamedTuple):
    """A test and the ids that it names."""

    kind: str
    name: str
    ids: Tuple[str, ...]


def read_list(text: str) -> List[Requirement]:
    """The requirements, in the order of the list."""
    found: List[Requirement] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not ROW.match(line):
            continue
        match = REQUIREMENT.fullmatch(line)
        if not match:
            raise BadList(f"line {number}: {line}")
        if any(other.id == match[1] for other in found):
            raise BadList(f"line {number}: {match[1]} again")
        found.append(Requirement(*match.groups()))
    if not found:
        raise BadList("no requirements")
    return found


def suite_tests(text: str) -> Iterator[Test]:
    """Of a file of the guest suite."""
    for table in SUITE_TABLE.finditer(text):
        for name, ids in SUITE_TEST.findall(table[2]):
            yield Test("suite", f"{table[1]}/{name}", ids_of(ids))


def c_tests(text: str) -> Iterator[Test]:
    """Of a file of the in-kernel tests."""
    for table in C_TABLE.finditer(text):
        for name, ids in C_TEST.findall(table[1]):
            yield Test("C", name, ids_of(ids))
    for name, ids in C_PRINTED.findall(text):
        yield Test("C", name, ids_of(ids))


def kunit_tests(text: str) -> Iterator[Test]:
    """Of a file of a kernel crate."""
    for module in KUNIT_MODULE.finditer(text):
        for above, _, name, body in KUNIT_TEST.findall(module[2]):
            comments = above + "\n".join(COMMENT.findall(body))
            yield Test("KUnit", f"{module[1]}.{name}", ids_of(comments))


def read_skipped(text: str) -> Dict[str, str]:
    """Patterns of names, and why tests of these names are skipped."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("#"):
            match = SKIP.fullmatch(line)
            if not match:
                raise BadList(f"{SKIPPED}: line {number}: {line}")
            found[match[1]] = match[2]
    return found


def is_wanted(name: str, words: Sequence[str]) -> bool:
    """As kfi-suite chooses: parts of the name, or patterns for all of it."""
    return any(
        fnmatchcase(name, word) if any(sign in word for sign in "*?[") else word in name
        for word in words
    )


def why_skipped(test: Test, skipped: Dict[str, str], in_debug: Sequence[str]) -> str:
    """Why it is not run as a matter of course, or nothing."""
    if test.kind == "KUnit" or is_wanted(test.name, in_debug):
        # In the debug kernel, which .ci/run boots.
        return ""
    return next((why for name, why in skipped.items() if fnmatchcase(test.name, name)), "")


def ids_of(text: str) -> Tuple[str, ...]:
    """The ids in a text, each once."""
    return tuple(dict.fromkeys(ID.findall(text)))


def all_tests(root: Path) -> List[Test]:
    """The tests of a tree."""
    sources = (
        ("qemu-test/guest/suite/src/tests", "*.rs", suite_tests),
        ("qemu-test/consumer", "*.c", c_tests),
        ("rust", "*.rs", kunit_tests),
    )
    return [
        test
        for folder, pattern, read in sources
        for path in sorted((root / folder).rglob(pattern))
        for test in read(path.read_text())
    ]


@dataclass
class Map:
    """Requirements and the tests that show them."""

    tests: Dict[Requirement, List[Test]]
    # Tests that name what is no requirement.
    unknown: List[Tuple[str, Test]]
    # Why tests are not run as a matter of course.
    skipped: Dict[Test, str] = field(default_factory=dict)

    @property
    def missing(self) -> List[Requirement]:
        return [requirement for requirement, tests in self.tests.items() if not tests]

    @property
    def resting(self) -> List[Requirement]:
        """Those of which all tests are skipped."""
        return [
            requirement
            for requirement, tests in self.tests.items()
            if tests and all(test in self.skipped for test in tests)
        ]


def put_together(requirements: Sequence[Requirement], tests: Sequence[Test]) -> Map:
    found: Dict[str, List[Test]] = {requirement.id: [] for requirement in requirements}
    unknown = []
    for test in tests:
        for name in test.ids:
            if name in found:
                found[name].append(test)
            else:
                unknown.append((name, test))
    return Map({requirement: found[requirement.id] for requirement in requirements}, unknown)


def table(coverage: Map) -> Iterator[str]:
    """The lines of the table."""
    for requirement, tests in coverage.tests.items():
        yield f"{requirement.id:<12} {requirement.source:<6}  {requirement.text}"
        if not tests:
            yield " " * 21 + "NO TEST"
        for kind in KINDS:
            of_kind = [test for test in tests if test.kind == kind]
            for first, test in enumerate(of_kind):
                why = f" (skipped: {coverage.skipped[test]})" if test in coverage.skipped else ""
                yield f"{'':12} {'' if first else kind:>7} {test.name}{why}"


def read_if_there(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Print which tests show which requirement.",
        epilog="The exit status is 1 if a requirement has no test.",
    )
    add = parser.add_argument
    add("--root", type=Path, default=ROOT, metavar="FOLDER", help="another tree than this one")
    add("-q", "--quiet", action="store_true", help="print what is wrong only")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    try:
        requirements = read_list((options.root / LIST).read_text())
        tests = all_tests(options.root)
        coverage = put_together(requirements, tests)
        skipped = read_skipped(read_if_there(options.root / SKIPPED))
        in_debug = " ".join(IN_DEBUG.findall(read_if_there(options.root / CI))).split()
        reasons = ((test, why_skipped(test, skipped, in_debug)) for test in tests)
        coverage.skipped = {test: why for test, why in reasons if why}
    except (OSError, BadList) as error:
        print(f"coverage-map: {error}", file=sys.stderr)
        return 2
    if not options.quiet:
        for line in table(coverage):
            print(line)
        shown = len(coverage.tests) - len(coverage.missing)
        print(f"\n{shown} of {len(coverage.tests)} requirements have tests", flush=True)
    for requirement in coverage.missing:
        print(f"no test for {requirement.id}: {requirement.text}", file=sys.stderr)
    for requirement in coverage.resting:
        print(f"only tests that are skipped for {requirement.id}: {requirement.text}", file=sys.stderr)
    for name, test in coverage.unknown:
        print(f"{test.name} shows {name}, which is no requirement", file=sys.stderr)
    return 1 if coverage.missing or coverage.resting or coverage.unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
