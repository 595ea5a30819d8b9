#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what is said about several machines, without any."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from typing import List, Tuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import script

machines = script.load(HERE / "machines")
run = machines.run

KNOWN = "somebody-else\n^BUG: KASAN\nelsewhere\nwhy it is\n"
REPORT = b"""\
[    1.000000] guest: up
[    2.000000] BUG: KASAN: slab-use-after-free in elsewhere+0x1/0x2
[    2.000001] Call Trace:
"""


class MemberTest(unittest.TestCase):
    def results(self, number: int, known: str) -> List[Tuple[str, str]]:
        """The results of a machine that has printed a report and ended well."""
        with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
            folder = Path(name)
            (folder / "known").write_text(known)
            reports = run.read_known(folder / "known")
            machine = run.Machine("qemu", Path("kernel"), "kernel", 64, 1, "")
            machine.number = number
            options = argparse.Namespace(transcript=False)
            member = machines.Member(machine, options, folder / "log", reports)
            # As its thread does.
            member.watcher.on_output(b"KTAP version 1\n1..1\nok 1 a\n")
            member.watcher.on_log(REPORT)
            member.watcher.finish()
            member._file.close()
            member.ending = run.Ending(started=True, status=0)
            return [(one.name, one.outcome.value) for one in member.results()]

    def test_unknown_report(self) -> None:
        title = "kernel log: BUG: KASAN: slab-use-after-free in elsewhere+0x1/0x2"
        self.assertEqual(self.results(1, ""), [("a", "passed"), (title, "failed")])
        # Only the first one prints test results.
        self.assertEqual(self.results(2, ""), [(f"machine 2: {title}", "failed")])

    def test_known_report(self) -> None:
        title = "kernel log: somebody-else"
        self.assertEqual(self.results(1, KNOWN), [("a", "passed"), (title, "skipped")])
        self.assertEqual(self.results(2, KNOWN), [(f"machine 2: {title}", "skipped")])


class CommandLine(unittest.TestCase):
    ENOUGH = ["--kernel", "k", "--image", "i", "--log", "l"]

    def test_command(self) -> None:
        options = machines.parse([*self.ENOUGH, "--known", "f", "--", "a", "--machines", "7"])
        self.assertEqual((options.command, options.machines), (["a", "--machines", "7"], 2))
        self.assertEqual(options.known, Path("f"))

    def test_wrong(self) -> None:
        for words in ([], ["--machines", "0", "--", "a"], ["--what", "--", "a"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                machines.parse([*self.ENOUGH, *words])

    def test_bad_list(self) -> None:
        self.assertEqual(run.read_known(None), [])
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "known"
            for text in ("too\nshort\n", "name\n(\nline\nwhy\n"):
                path.write_text(text)
                with self.assertRaises(run.CannotRun):
                    run.read_known(path)
            with self.assertRaises(run.CannotRun):
                run.read_known(Path(name) / "missing")


if __name__ == "__main__":
    unittest.main()
