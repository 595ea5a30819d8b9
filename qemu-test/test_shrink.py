#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of shrinking rounds."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import script

shrink = script.load(HERE / "shrink")

# Fails if steps 3 and 7 are there.
COMMAND = """
import re, sys
kept = re.search(r"(?:fuzz-replay 9/10/1|fuzz-sequence new.9)/(\\S*) fuzz/", sys.argv[1])[1]
numbers = set()
for part in filter(None, kept.split(",")):
    first, _, last = part.partition("-")
    numbers |= set(range(int(first), int(last or first) + 1))
bad = {3, 7} <= numbers
print("0 passed, 1 failed, 0 skipped" if bad else "1 passed, 0 failed, 0 skipped")
sys.exit(bad)
"""


class Rounds(unittest.TestCase):
    def test_parse(self) -> None:
        one, two = "fuzz/one-process", "fuzz/two-processes"
        for text, wanted in (
            ("5/4/1", ("--fuzz-replay", "5/4/1", one, [0, 1, 2, 3])),
            ("5/9/2/0-2,7", ("--fuzz-replay", "5/9/2", two, [0, 1, 2, 7])),
            ("new+5", ("--fuzz-sequence", "new+5", "fuzz/learning", list(range(100)))),
            ("new+5/3,7", ("--fuzz-sequence", "new+5", "fuzz/learning", [3, 7])),
        ):
            self.assertEqual(shrink.parse_round(text), wanted)
        name = "0123456789abcdef"
        for text in (name, f"{name}+{name}+77"):
            self.assertEqual(shrink.parse_round(text).name, text)
        for text in ("", "5", "5/4/3", "a/4/1", "new", f"{name}+{name}", f"{name}0"):
            with self.assertRaises(shrink.CannotTry):
                shrink.parse_round(text)

    def test_names(self) -> None:
        self.assertEqual(shrink.name_steps([0, 1, 2, 7, 9, 10]), "0-2,7,9-10")
        self.assertEqual(shrink.name_steps([]), "")

    def test_shrink(self) -> None:
        fails = lambda numbers: {12, 77} <= set(numbers)
        self.assertEqual(shrink.shrink(list(range(200)), 1000, fails), [12, 77])
        self.assertIn(12, shrink.shrink(list(range(200)), 3, fails))


class Whole(unittest.TestCase):
    def run_it(self, text: str, what: str = "9/10/1") -> "tuple[int, str]":
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "command.py"
            script.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = shrink.main([what, "--", sys.executable, str(script)])
        return status, out.getvalue().splitlines()[-1]

    def test_found(self) -> None:
        self.assertEqual(self.run_it(COMMAND), (0, "--fuzz-replay 9/10/1/3,7"))
        self.assertEqual(self.run_it(COMMAND, "new+9"), (0, "--fuzz-sequence new+9/3,7"))

    def test_passes(self) -> None:
        self.assertEqual(self.run_it("print('1 passed, 0 failed')"), (1, "it does not fail"))

    def test_broken(self) -> None:
        with self.assertRaises(shrink.CannotTry):
            self.run_it("print('no such file')")


if __name__ == "__main__":
    unittest.main()
