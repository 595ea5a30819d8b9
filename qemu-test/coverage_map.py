#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints which tests show which requirement.

The requirements are listed in Documentation/requirements.md. Tests name them: those of the
guest suite in the tables of qemu-test/guest/suite/src/tests, those in C in the
tables of qemu-test/consumer, those of KUnit in comments at the test.

The exit status is 0 if every requirement has a test and every id that a test
names is a requirement, 1 if not, 2 if something cannot be read.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
LIST = "Documentation/requirements.md"

ID = re.compile(r"\bR-[A-Z]+-\d+\b")
# The line of a table. Whatever else begins as one with an id does is wrong.
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

    @property
    def missing(self) -> List[Requirement]:
        return [requirement for requirement, tests in self.tests.items() if not tests]


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
            names = [test.name for test in tests if test.kind == kind]
            for first, name in enumerate(names):
                yield f"{'':12} {'' if first else kind:>7} {name}"


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
        coverage = put_together(requirements, all_tests(options.root))
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
    for name, test in coverage.unknown:
        print(f"{test.name} shows {name}, which is no requirement", file=sys.stderr)
    return 1 if coverage.missing or coverage.unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
