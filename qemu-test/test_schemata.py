#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of faults that are built together."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import tempfile
import unittest
from pathlib import Path
from typing import Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))

import mutants
import schemata
from schemata import Fault, Line

ON = "crate::fault_switch::is_on(7)"


def said(rule: str, code: str, which: int = 0, after: str = "}") -> Optional[str]:
    """What becomes of a line by the first, or another, fault of a rule."""
    faults = [one for one in mutants.mutants_of("x.rs", code + "\n") if one.rule == rule]
    fault = faults[which]
    return schemata.switched(rule, Line(code, "{", after), fault.before, fault.after, 7)


class Lines(unittest.TestCase):
    def test_comparison(self) -> None:
        self.assertEqual(said("comparison", "if a < b {"), f"if ({ON} != (a < b)) {{")
        self.assertEqual(
            said("comparison", "let x = f(a && b.c(d, e) >= 2) || g;"),
            f"let x = f(a && ({ON} != (b.c(d, e) >= 2))) || g;",
        )
        self.assertEqual(
            said("comparison", "&& a & !(B | C) != 0"), f"&& ({ON} != (a & !(B | C) != 0))"
        )
        self.assertEqual(
            said("comparison", "Some(x) if x == y => z,"), f"Some(x) if ({ON} != (x == y)) => z,"
        )
        self.assertEqual(
            said("comparison", "all.find(|one| one.a != b)"),
            f"all.find(|one| ({ON} != (one.a != b)))",
        )

    def test_what_is_on_other_lines_is_not_guessed(self) -> None:
        self.assertIsNone(said("comparison", "    .filter(|n| *n == 2) == Some(n)", 1))
        self.assertIsNone(said("comparison", "    a == b", after="        .c()\n"))
        self.assertIsNone(said("comparison", '    a == f("x")'))

    def test_number(self) -> None:
        self.assertEqual(said("number", "f(a1, 41);"), f"f(a1, (if {ON} {{ 42 }} else {{ 41 }}));")
        self.assertEqual(
            said("number", "(0, 0)", 1), f"(0, (if {ON} {{ 1 }} else {{ 0 }}))"
        )

    def test_statement(self) -> None:
        self.assertEqual(said("statement", "    self.f(a)?;"), f"if !{ON} {{ self.f(a)?; }}")

    def test_early(self) -> None:
        self.assertEqual(
            said("early", "fn f() -> bool {", 1), f"fn f() -> bool {{ if {ON} {{ return true; }}"
        )

    def test_branch(self) -> None:
        self.assertEqual(said("branch", "if a {"), f"if (a) && !{ON} {{")
        self.assertEqual(said("branch", "} else if a {", 1), f"}} else if (a) || {ON} {{")

    def test_negation(self) -> None:
        self.assertEqual(said("negation", "a && !b"), f"a && {ON} ^ !b")

    def test_flag(self) -> None:
        either = f"(if {ON} {{ B::C ^ B::C }} else {{ B::C }})"
        self.assertEqual(said("flag", "let x = A | B::C;"), f"let x = A | {either};")
        self.assertEqual(said("flag", "f(B::C | D);", 1), f"f({either} | D);")
        self.assertIsNone(said("flag", "let x = a::B | C;", 1))

    def test_other(self) -> None:
        self.assertEqual(said("other", "if a.is_none() {"), f"if a.is_none().ne(&{ON}) {{")
        self.assertIsNone(said("other", "a.min(b)"))

    def test_every_rule_is_one_of_the_others(self) -> None:
        self.assertEqual(set(mutants.RULES) - set(schemata.RULES), {"order"})


class Files(unittest.TestCase):
    CODE = "fn f() {\n    if a < b { // Why.\n    }\n    if c == d {\n"

    def test_of_each_line_one(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.rs"
            path.write_text(self.CODE)
            found = [one for one in mutants.mutants_of("x.rs", self.CODE) if one.rule != "early"]
            faults = {n: Fault(*one[:5]) for n, one in enumerate(found, 1)}
            there = schemata.put_all(Path(folder), faults)
            self.assertEqual({faults[number].line for number in there}, {2, 4})
            self.assertEqual(len(there), 2)
            lines = path.read_text().splitlines()
            self.assertEqual(len(lines), 4)
            self.assertIn(" // Why.", lines[1])
            for number in there:
                self.assertIn(f"is_on({number})", lines[faults[number].line - 1])

    def test_refused(self) -> None:
        log = "error[E0308]: mismatched types\n   --> ../../rust/a/x.rs:12:5\n    |\n"
        faults = {
            1: Fault("rust/a/x.rs", 11, "number", "", ""),
            2: Fault("rust/a/x.rs", 30, "number", "", ""),
            3: Fault("rust/b/x.rs", 12, "number", "", ""),
        }
        self.assertEqual(schemata.refused(log, faults, Path("/t")), {1})
        self.assertEqual(schemata.refused("error: no\n", faults, Path("/t")), set())

    def test_choose(self) -> None:
        module = b"\x7fELF" + schemata.MARK + bytes(4) + b"rest"
        chosen = schemata.choose(module, 258)
        self.assertEqual(chosen, b"\x7fELF" + schemata.MARK + b"\x02\x01\0\0rest")
        self.assertEqual(schemata.choose(b"other", 1), b"other")


if __name__ == "__main__":
    unittest.main()
