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
import unittest.mock
from pathlib import Path
from typing import Any, Callable, List, Tuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import script

machines = script.load(HERE / "machines")
run = machines.run
FAILED = machines.ktap.Outcome.FAILED

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


class FakeGuest(contextlib.AbstractContextManager):  # type: ignore[type-arg]
    """A machine that prints what it is given, and then has ended so."""

    def __init__(self, log: bytes, ending: Any) -> None:
        self._log = log
        self._ending = ending

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, _limit: float, _on_output: Callable[..., None], on_log: Callable[..., None]) -> Any:
        on_log(self._log)
        return self._ending


class EmulatorTest(unittest.TestCase):
    DIED = b"""\
[    1.000000] Oops: int3: 0000 [#1] SMP
[    1.000000] Code: 41 57 66 <90> e8
"""

    def run_member(self, *boots: Tuple[bytes, Any]) -> Tuple[List[str], int, bytes]:
        """The failures of the second machine, how often it was booted, and its log."""
        guests = iter([FakeGuest(log, ending) for log, ending in boots])
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
            for stream in (contextlib.redirect_stdout, contextlib.redirect_stderr):
                stack.enter_context(stream(io.StringIO()))
            boot = stack.enter_context(
                unittest.mock.patch.object(run, "boot", side_effect=lambda *_, **__: next(guests))
            )
            machine = run.Machine("qemu", Path("kernel"), "kernel", 64, 2, "")
            machine.number = 2
            options = argparse.Namespace(
                transcript=False, timeout=60, machines=2, image=Path("image"), command=["a"]
            )
            log = Path(name) / "log"
            member = machines.Member(machine, options, log)
            member._run()
            self.assertIsNone(member.error)
            failed = [one.name for one in member.results() if one.outcome == FAILED]
            return failed, boot.call_count, log.read_bytes()

    def test_boots_again(self) -> None:
        died = self.DIED, run.Ending(why="it died")
        well = b"[    1.000000] guest: up\n", run.Ending(started=True, status=0)
        self.assertEqual(self.run_member(died, died, well), ([], 3, well[0]))

    def test_gives_up(self) -> None:
        failed, boots, _ = self.run_member(*3 * [(self.DIED, run.Ending(why="it died"))])
        self.assertTrue(failed)
        self.assertEqual(boots, 3)

    def test_after_a_reset(self) -> None:
        boot = b"[    0.000000] Linux version 7.3.4\n"
        log = boot + b"[    1.000000] guest: up\n" + boot + self.DIED
        failed, boots, _ = self.run_member((log, run.Ending(why="it died")))
        self.assertTrue(failed)
        self.assertEqual(boots, 1)


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
