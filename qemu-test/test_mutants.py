#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the faults that are made by rules."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import json
import tempfile
import textwrap
import unittest
from dataclasses import asdict
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parent))

import coverage_map
import mutants
import mutations
from mutants import Found, Mutant

CODE = """
// SPDX-License-Identifier: GPL-2.0

use kernel::{
    prelude::*, //
};

/// Less < is not turned in words.
const MANY: usize = 16;

fn f(&self, flags: u64) -> Result {
    if flags & !(A | B) != 0 { // 2 of them
        return Err(EINVAL);
    }
    self.lock().note(flags);
    self.count.fetch_add(1, ordering::Release);
    let name = "if a < b {";
    Ok(())
}

#[kunit_tests(x)]
mod tests {
    fn g() {
        if 1 < 2 {}
    }
}
""".lstrip()


def after(rule: str, text: str = CODE) -> List[str]:
    return [one.after for one in mutants.mutants_of("rust/x.rs", text) if one.rule == rule]


class Rules(unittest.TestCase):
    def test_comparison(self) -> None:
        wanted = ["if flags & !(A | B) == 0 {", 'let name = "if a >= b {";']
        self.assertEqual(after("comparison"), wanted)

    def test_number(self) -> None:
        self.assertIn("const MANY: usize = 17;", after("number"))
        self.assertIn("if flags & !(A | B) != 1 {", after("number"))
        self.assertEqual(after("number", "let x: u64 = y.0 + [a1; N];\n"), [])

    def test_statement(self) -> None:
        self.assertEqual(after("statement"), [";", ";"])
        self.assertEqual(after("statement", "    let x = f(1);\n    return f(1);\n"), [])

    def test_early(self) -> None:
        self.assertEqual(after("early"), ["fn f(&self, flags: u64) -> Result { if true { return Ok(()); }"])
        self.assertEqual(len(after("early", "fn f() -> bool {\n")), 2)
        self.assertEqual(after("early", "fn f() -> Arc<Self> {\n"), [])

    def test_flag(self) -> None:
        self.assertEqual(after("flag"), ["if flags & !(A) != 0 {", "if flags & !(B) != 0 {"])
        self.assertEqual(after("flag", "    A | B => c,\n"), [])

    def test_branch(self) -> None:
        condition = "flags & !(A | B) != 0"
        self.assertEqual(
            after("branch"), [f"if ({condition}) && false {{", f"if ({condition}) || true {{"]
        )
        self.assertEqual(after("branch", "    if let Some(x) = y {\n"), [])
        self.assertEqual(after("branch", "    while a {\n"), ["while (a) && false {"])

    def test_others(self) -> None:
        self.assertEqual(after("negation"), ["if flags & (A | B) != 0 {"])
        self.assertEqual(after("order"), ["self.count.fetch_add(1, ordering::Relaxed);"])
        self.assertEqual(after("other", "    a.min(b) + c\n"), ["a.max(b) + c", "a.min(b) - c"])


class Choice(unittest.TestCase):
    def test_longer_begins_with_shorter(self) -> None:
        all_of_them = list(mutants.mutants_of("rust/x.rs", CODE))
        long = mutants.choose(all_of_them, 3, 100)
        self.assertEqual(sorted(long), sorted(all_of_them))
        self.assertEqual(mutants.choose(all_of_them, 3, 5), long[:5])
        self.assertEqual(len({one.rule for one in long[:5]}), 5)

    def test_ids(self) -> None:
        moved = "\n\n" + CODE
        before, later = (list(mutants.mutants_of("rust/x.rs", text)) for text in (CODE, moved))
        self.assertEqual([one.id for one in before], [one.id for one in later])
        twice = list(mutants.mutants_of("rust/x.rs", "    if a < b {\n    if a < b {\n"))
        self.assertEqual(len({one.id for one in twice}), len(twice))


class Files(unittest.TestCase):
    def test_put(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.rs"
            path.write_text(CODE)
            for mutant in mutants.mutants_of("x.rs", CODE):
                path.write_text(CODE)
                mutants.put(Path(folder), mutant)
                lines = path.read_text().splitlines()
                self.assertIn(mutant.after, lines[mutant.line - 1])
                self.assertEqual(len(lines), len(CODE.splitlines()))
                with self.assertRaises(mutations.CannotTry):
                    mutants.put(Path(folder), mutant)

    def test_report(self) -> None:
        def found(number: int, outcome: str) -> Found:
            mutant = Mutant("a.rs", number, "flag", "x", "y", number)
            return Found(mutant.id, *mutant, outcome=outcome)

        some = [found(1, "caught"), found(2, "survived"), found(3, "survived")]
        lines = "".join(json.dumps(asdict(one)) + "\n" for one in some)
        again = mutants.read_found(lines + lines[:20])
        self.assertEqual(list(again.values()), some)
        said = "\n".join(mutants.report(some, {some[1].id: "why"}))
        self.assertIn(f"SURVIVED {some[2].id} a.rs:3 (flag)", said)
        self.assertNotIn(some[1].id, said)

    def test_equivalent(self) -> None:
        text = "# words\n0123456789: because\nwhatever\n"
        self.assertEqual(mutants.read_equivalent(text), {"0123456789": "because"})


class Here(unittest.TestCase):
    """This tree."""

    found: List[Mutant]

    @classmethod
    def setUpClass(cls) -> None:
        cls.found = mutants.all_mutants(mutants.ROOT)

    def test_there_are_enough(self) -> None:
        found = self.found
        self.assertGreater(len(found), 3000)
        self.assertEqual({one.rule for one in found}, set(mutants.RULES))
        self.assertEqual(len({one.id for one in found}), len(found))
        for crate in mutants.CRATES:
            self.assertTrue([one for one in found if one.path.startswith(crate)], crate)

    def test_areas(self) -> None:
        tests = coverage_map.all_tests(mutants.ROOT)
        names = [test.name for test in tests if test.kind == "suite"]
        for path in {one.path for one in self.found}:
            self.assertTrue(mutants.areas_of(path))
        for _, areas in mutants.AREAS:
            for area in areas.split():
                self.assertTrue([name for name in names if name.startswith(area)], area)

    def test_equivalent_ones_are_there(self) -> None:
        ids = {one.id for one in self.found}
        said = mutants.read_equivalent(mutants.read_if_there(mutants.EQUIVALENT))
        self.assertEqual(set(said) - ids, set())


if __name__ == "__main__":
    unittest.main()
