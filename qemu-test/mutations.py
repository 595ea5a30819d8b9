#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sees whether the tests notice deliberate faults.

Each patch in qemu-test/mutations makes one fault. It is applied to a copy of
this tree, that is built, and the tests that should notice run there, in
user-mode Linux, which is the fastest. The lines before the first "diff" of a
patch tell what it does and which tests these are:

    What: the fault, in a sentence
    Shows: the requirement that it breaks
    Tests: filters of kfi-suite
    Options: more for kfi-suite
    Vehicle: qemu, if user-mode Linux does not do

A fault is caught if a test fails, or the kernel complains. First the tests run
without any fault: what fails then does not count.

The exit status is 0 if all faults are caught, 1 if one survives, 2 if something
could not be tried.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Dict, Iterator, List, Optional, Sequence, Set

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "qemu-test/mutations"
COPY = ROOT / "build/mutations"

HEADER = re.compile(r"([A-Z][a-z]+): (.+)")
# Lines that qemu-test/run and the suite print. The name of the suite's test that
# ran the kernel's says less than those.
FAILED = re.compile(r"^(?:FAILED (?:kernel: )?|not ok \d+ )(.+?)(?: (?:-|#) .*)?$", re.M)
TOTAL = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")
GOOD = re.compile(r"^(?:kernel: )?ok \d+ (\S+)( # SKIP)?", re.M)
# A line before the last one.
TIME = re.compile(r"^kernel log: .+ (\d+\.\d) s$", re.M)
SHOWN = 4


class CannotTry(Exception):
    """Neither caught nor survived."""


class OutOfTime(CannotTry):
    """A run has not ended."""


class Hangs(CannotTry):
    """The kernel has said that it does not go on, and was not waited for."""


class NoResult(CannotTry):
    """A run has ended before it had anything to say."""


@dataclass
class Mutation:
    """A patch and what it says of itself."""

    name: str
    patch: Path
    what: str
    shows: str
    tests: str
    options: str
    vehicle: str


def read(name: str, patch: Path, text: str) -> Mutation:
    """Reads a patch and what it says of itself."""
    said: Dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("diff "):
            break
        if match := HEADER.fullmatch(line):
            said[match[1]] = match[2]
    for wanted in ("What", "Shows", "Tests"):
        if wanted not in said:
            raise CannotTry(f"{patch.name}: no line {wanted}:")
    vehicle = said.get("Vehicle", "uml")
    options = said.get("Options", "")
    return Mutation(name, patch, said["What"], said["Shows"], said["Tests"], options, vehicle)


def all_mutations(wanted: Sequence[str]) -> List[Mutation]:
    found = [read(path.stem, path, path.read_text()) for path in sorted(PATCHES.glob("*.patch"))]
    chosen = [m for m in found if not wanted or m.name in wanted]
    unknown = set(wanted) - {m.name for m in chosen}
    if unknown or not chosen:
        raise CannotTry(f"no such mutation: {', '.join(sorted(unknown))}")
    return chosen


def copy_tree(tree: Path = COPY) -> None:
    """Brings a copy up to date. Files that are the same keep their time, so
    that as little as possible is built again."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, tree / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    for path in tree.rglob("*"):
        name = str(path.relative_to(tree))
        if path.is_file() and name not in names and not name.startswith(("build/", ".git/")):
            path.unlink()
    # Some scripts ask git what belongs to the tree.
    if not (tree / ".git").exists():
        subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)


def apply(mutation: Mutation) -> None:
    done = subprocess.run(
        ["patch", "-p1", "--quiet", "--no-backup-if-mismatch", "-i", str(mutation.patch)],
        cwd=COPY,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CannotTry(f"{mutation.name} does not apply: {done.stdout.strip()}")


@dataclass
class Outcome:
    """The outcome of a run."""

    passed: int
    failed: List[str]
    # And not run elsewhere.
    skipped: List[str] = field(default_factory=list)
    # How long the machine ran, if that was told.
    seconds: float = 0.0


def judge(text: str, name: str) -> Outcome:
    """The outcome of a run that has printed this."""
    totals = TOTAL.findall(text)
    if not totals:
        raise NoResult(f"{name}: no result:\n{text[-2000:]}")
    passed, failed, _ = (int(number) for number in totals[-1])
    names = list(dict.fromkeys(FAILED.findall(text)))
    if failed and not names:
        names = ["the run"]
    results = GOOD.findall(text)
    ran = {name for name, skip in results if not skip}
    skipped = dict.fromkeys(name for name, skip in results if skip and name not in ran)
    times = TIME.findall(text)
    seconds = float(times[-1]) if times else 0.0
    return Outcome(passed, names if failed else [], list(skipped), seconds)


class Runs:
    """Those that are going on. Each is a group of processes: what interrupts this script does not
    make them fail as well, which would look like a fault that was noticed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._going: Set["subprocess.Popen[bytes]"] = set()
        self._stopped = False

    @contextlib.contextmanager
    def start(self, command: Sequence[str], **how: object) -> Iterator["subprocess.Popen[bytes]"]:
        with self._lock:
            self.check()
            process = subprocess.Popen(command, start_new_session=True, **how)  # type: ignore
            self._going.add(process)
        try:
            yield process
        finally:
            self._end(process)
            process.wait()
            with self._lock:
                self._going.discard(process)

    def check(self) -> None:
        """Whether what came out says anything."""
        if self._stopped:
            raise CannotTry("stopped")

    def stop(self) -> None:
        """Ends all of them; no others begin."""
        with self._lock:
            self._stopped = True
            for process in self._going:
                self._end(process)

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        # Not one that is gone: its number may be another's.
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


RUNS = Runs()

# Variables of a make that runs this, which are for those below it: these decide for themselves.
OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "KIND", "APPEND")


def run(
    vehicle: str,
    arguments: str,
    name: str,
    limit: float,
    tree: Path = COPY,
    how: Sequence[str] = ("test",),
    hangs: Optional["re.Pattern[str]"] = None,
) -> Outcome:
    command = ["make", *how, f"VEHICLE={vehicle}", f"ARGS={arguments}", f"TIMEOUT={limit:.0f}"]
    log = tree / f"build/{name}.txt"
    # Building comes on top.
    carry_out(command, tree, log, limit + 1800, hangs)
    return judge(log.read_text(errors="replace"), name)


# How often a run is looked at.
LOOK_SECONDS = 5


def wait_for(
    process: "subprocess.Popen[bytes]", log: Path, limit: float, hangs: Optional["re.Pattern[str]"]
) -> int:
    """Waits until it has ended, or has said that it hangs; returns its status."""
    deadline = time.monotonic() + limit
    while True:
        left = deadline - time.monotonic()
        try:
            return process.wait(timeout=min(left, LOOK_SECONDS) if hangs else left)
        except subprocess.TimeoutExpired as error:
            if said := hangs and hangs.search(log.read_text(errors="replace")):
                raise Hangs(said[0]) from error
            if time.monotonic() >= deadline:
                raise OutOfTime(f"{log.stem}: no end") from error


def carry_out(
    command: Sequence[str],
    tree: Path,
    log: Path,
    limit: float,
    hangs: Optional["re.Pattern[str]"] = None,
) -> int:
    """A make, with what it says in a file; returns its status. Ended when that is what `hangs` looks for."""
    environment = {key: value for key, value in os.environ.items() if key not in OF_MAKE}
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as out:
        with RUNS.start(
            command, cwd=tree, env=environment, stdout=out, stderr=subprocess.STDOUT
        ) as process:
            status = wait_for(process, log, limit, hangs)
    RUNS.check()
    return status


def arguments_for(mutations: Sequence[Mutation]) -> str:
    """All tests that are wanted, each once."""
    words = dict.fromkeys(word for m in mutations for word in m.tests.split())
    return " ".join(words)


def names_of(failed: Sequence[str]) -> str:
    """The tests that say most: those of the kernel before the one that ran them."""
    ordered = sorted(failed, key=lambda name: name.startswith("module/"))
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return ", ".join(ordered[:SHOWN]) + more


def say(text: str) -> None:
    print(text, flush=True)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="See whether the tests notice deliberate faults.",
        epilog="The exit status is 0 if all are caught.",
    )
    add = parser.add_argument
    add("wanted", nargs="*", metavar="NAME", help="only these, of qemu-test/mutations")
    add("--list", action="store_true", help="say what there is")
    add("--no-baseline", action="store_true", help="do not run the tests without a fault first")
    add("--ignore", action="append", default=[], metavar="TEST", help="fails anyway")
    add("--timeout", type=float, default=300, metavar="SECONDS", help="of a run: %(default)s")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    mutations = all_mutations(options.wanted)
    if options.list:
        for mutation in mutations:
            say(f"{mutation.name:<24} {mutation.shows:<16} {mutation.what}")
        return 0
    known = set(options.ignore)
    if not options.no_baseline:
        copy_tree()
        baseline = run("uml", arguments_for(mutations), "baseline", options.timeout)
        known |= set(baseline.failed)
        also = f", but not {names_of(baseline.failed)}" if baseline.failed else ""
        say(f"without a fault: {baseline.passed} passed{also}")
    survived: List[str] = []
    untried: List[str] = []
    for mutation in mutations:
        start = time.monotonic()
        outcome: Optional[Outcome] = None
        try:
            copy_tree()
            apply(mutation)
            words = f"{mutation.tests} {mutation.options}"
            outcome = run(mutation.vehicle, words, mutation.name, options.timeout)
        except CannotTry as error:
            say(f"NOT TRIED {error}")
            untried.append(mutation.name)
            continue
        seconds = time.monotonic() - start
        failed = [name for name in outcome.failed if name not in known]
        if failed:
            say(f"caught    {mutation.name} ({seconds:.0f} s) by {names_of(failed)}")
        else:
            say(f"SURVIVED  {mutation.name} ({seconds:.0f} s): {mutation.what}")
            survived.append(mutation.name)
    copy_tree()
    caught = len(mutations) - len(survived) - len(untried)
    say(f"{caught} caught, {len(survived)} survived, {len(untried)} not tried")
    return 2 if untried else int(bool(survived))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except CannotTry as error:
        print(f"mutations: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
