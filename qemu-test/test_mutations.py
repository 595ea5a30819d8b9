#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what judges mutations."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import coverage_map
import mutations


class Headers(unittest.TestCase):
    def test_read(self) -> None:
        text = "What: a fault\nShows: R-A-1\nTests: a/* b\nOptions: --scale 2\n\ndiff --git a/x b/x\nWhat: x\n"
        mutation = mutations.read("a", Path("a.patch"), text)
        self.assertEqual((mutation.what, mutation.tests), ("a fault", "a/* b"))
        self.assertEqual((mutation.options, mutation.vehicle), ("--scale 2", "uml"))

    def test_incomplete(self) -> None:
        with self.assertRaises(mutations.CannotTry):
            mutations.read("a", Path("a.patch"), "What: a fault\nTests: x\n")

    def test_all_of_this_tree(self) -> None:
        found = mutations.all_mutations([])
        self.assertGreaterEqual(len(found), 10)
        listed = (coverage_map.ROOT / coverage_map.LIST).read_text()
        ids = {requirement.id for requirement in coverage_map.read_list(listed)}
        for mutation in found:
            for word in mutation.shows.split():
                self.assertTrue(word in ids or word.endswith(".h"), f"{mutation.name}: {word}")

    def test_unknown(self) -> None:
        with self.assertRaises(mutations.CannotTry):
            mutations.all_mutations(["no-such"])

    def test_patches_apply(self) -> None:
        for mutation in mutations.all_mutations([]):
            command = ["patch", "-p1", "--dry-run", "--quiet", "-i", str(mutation.patch)]
            done = subprocess.run(command, cwd=mutations.ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{mutation.name}: {done.stdout}")


class Judging(unittest.TestCase):
    def test_survived(self) -> None:
        outcome = mutations.judge("ok 1 a/b\n\n7 passed, 0 failed, 1 skipped\n", "x")
        self.assertEqual((outcome.passed, outcome.failed), (7, []))
        self.assertEqual(outcome.seconds, 0.0)

    def test_how_long_it_took(self) -> None:
        text = "\nkernel log: build/uml/test.log   123.4 s\n7 passed, 0 failed, 0 skipped\n"
        self.assertEqual(mutations.judge(text, "x").seconds, 123.4)

    def test_caught(self) -> None:
        text = "not ok 3 a/b # R-A-1\nFAILED a/b - why\nFAILED kernel: c/d\n\n7 passed, 2 failed, 1 skipped\n"
        self.assertEqual(mutations.judge(text, "x").failed, ["a/b", "c/d"])

    def test_skipped(self) -> None:
        text = (
            "ok 1 a/b # R-A-1\nok 2 a/c # SKIP no\nkernel: ok 3 k/d # SKIP no\nok 4 a/e # SKIP no\n"
            "kernel: ok 1 k/d\n\n2 passed, 0 failed, 3 skipped\n"
        )
        self.assertEqual(mutations.judge(text, "x").skipped, ["a/c", "a/e"])

    def test_nothing_to_judge(self) -> None:
        with self.assertRaises(mutations.CannotTry):
            mutations.judge("make: *** Error 2\n", "x")

    def test_names(self) -> None:
        self.assertEqual(mutations.names_of(["module/c", "a/b"]), "a/b, module/c")
        self.assertEqual(mutations.names_of(list("abcdef")), "a, b, c, d and 2 more")


class Ending(unittest.TestCase):
    """Runs that end by themselves, or do not."""

    def run_it(self, script: str, limit: float, hangs: str) -> int:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            command = ("sh", "-c", script)
            with mock.patch.object(mutations, "LOOK_SECONDS", 0.05):
                return mutations.carry_out(command, Path(folder), log, limit, re.compile(hangs, re.M))

    def test_by_itself(self) -> None:
        self.assertEqual(self.run_it("echo it hangs; exit 3", 60, "^it never$"), 3)

    def test_hanging(self) -> None:
        with self.assertRaisesRegex(mutations.Hangs, "^it hangs$"):
            self.run_it("echo it hangs; echo more; sleep 60", 60, "^it hangs$")

    def test_too_long(self) -> None:
        with self.assertRaises(mutations.OutOfTime):
            self.run_it("sleep 60", 0.2, "^it hangs$")


if __name__ == "__main__":
    unittest.main()
