#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes faults by rules, and sees whether the tests notice them.

    qemu-test/mutants.py --count 20 --seed 7     # so many, chosen by that number
    qemu-test/mutants.py --report                # what was found so far

Each rule changes one place of the Rust of kfabric, kfi_soft or kfi_shim, outside
of unit tests: a comparison is turned, a number is one too high, a statement or a
flag is left out, a function returns at once, a branch is always or never taken,
an order is weakened. The tests of the areas that could notice run in user-mode
Linux, and then those in user space of code that is compiled for it, too. A fault is

    caught      if a test fails or finds nothing to test, the kernel complains, or the
                machine hangs
    survived    if nothing of that happens
    unbuilt     if the compiler refuses it
    equivalent  if qemu-test/mutations/equivalent says why it is no fault

The results are written to build/mutants/results.jsonl, and a fault whose line has
not changed is not tried again: a run that was cut off goes on where it was. --keep
puts those that were chosen into qemu-test/mutations/results.jsonl, from which every
run knows them.
To build takes longer than most tests, so as many as can be are built at once (qemu-test/schemata.py), and
the others one by one.

Those of order are seldom noticed, as x86 has most of them anyway: the litmus
tests are there for these.

First the tests run without a fault, as many machines at a time as later: what fails
then does not count. The exit status is 0 if no fault survives, or no more than
--survivors says, 1 if some do, 2 if something could not be tried.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import hashlib
import json
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from queue import Queue
from threading import Lock
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Set, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import coverage_map
import mutations
import schemata

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build/mutants/results.jsonl"
KEPT = ROOT / "qemu-test/mutations/results.jsonl"
KEPT_HEAD = (
    "# SPDX-License-Identifier: GPL-2.0",
    "# What faults of qemu-test/mutants.py have come to: see qemu-test/mutations.md.",
)
EQUIVALENT = ROOT / "qemu-test/mutations/equivalent"
SKIPPED = ROOT / coverage_map.SKIPPED
CRATES = ("rust/kfabric", "rust/kfi_soft", "rust/kfi_shim")
ROOTS = tuple(f"{crate}/{Path(crate).name}.rs" for crate in CRATES)

# For the suite: what is random less often, and how many seconds a test may take.
OPTIONS = "--scale 0.2"
TEST_LIMIT = 240

# The tests that could notice a fault in a file: the first that matches.
EVERYTHING = "cntr/ control/ wait/ waitfd/ waitset/ pollset/ trywait/ queue/ trigger/ deferred/ av/ message/ rma/"
AREAS: Tuple[Tuple[str, str], ...] = (
    (
        r"kfi_soft/(attention|counter|grown|trigger|poll_set|wait_set)",
        "cntr/ wait/ waitset/ pollset/ trywait/ trigger/ deferred/ control-work/ model/ trace/ module/consumer",
    ),
    (r"kfi_soft/queue", "queue/ wait/ waitset/ trywait/ message/ load/endpoints-of module/consumer module/transfer"),
    (
        r"kfi_soft/(wires?\.|wire/(atomics|loopback|remote))",
        "message/ tagged/ rma/ atomic/ faults/ network/ module/transfer",
    ),
    (r"kfi_soft/open_objects", "close/ info/ lifetime/ tool/ network/nics-come network/fabric-opened"),
    (r"kfi_soft/(wire|hotplug|abi_params|owner|share|sum)", "network/"),
    (r"kfi_soft/faults", "faults/ network/"),
    (r"kfi_soft/address", "av/ endpoint/ info/ message/ network/ trace/allocations"),
    (r"kfi_soft/memory_region|kfi_soft/transfer/region", "rma/ atomic/ buffer/ module/transfer"),
    (
        r"kfi_soft/nic",
        "info/ message/ network/ module/nics module/nic-base",
    ),
    (
        r"kfi_soft/(transfer|endpoint|budget|node)",
        "message/ tagged/ rma/ atomic/ endpoint/ trigger/ deferred/ flags/ close/ faults/ network/ "
        "module/transfer",
    ),
    (r"kfi_soft/(info|personality|provider|devices|limits)", "info/ sizes/ module/ tool/"),
    (r"kfi_soft/(debugfs|abi_trace)", "tool/ trace/"),
    (r"kfi_soft", EVERYTHING + " close/ info/ lifetime/"),
    (r"kfabric/(tostr|strerror|abi/text)", "info/ tool/ queue/ module/mock-providers module/consumer"),
    (r"kfabric", "info/ session/ tool/ module/"),
    (
        r"kfi_shim/(endpoint_close|session|object|turns|estimate|queues)",
        "session/ buffer/ users/ attacker/ close/ load/ hostile/ trace/allocations network/session network/killed",
    ),
    (r"kfi_shim/wait_fd", "waitfd/ users/ attacker/"),
    (
        r"kfi_shim",
        EVERYTHING + " session/ buffer/ endpoint/ tagged/ atomic/ hostile/ info/ users/ attacker/ trace/allocations",
    ),
)


# What is compiled for user space, too, and the package with its tests there.
HOST: Tuple[Tuple[str, str], ...] = (
    (r"kfi_soft/(attention|grown|trigger/(due_queue|pending_table|threshold))\b", "kfi-engine"),
    (r"kfi_soft/(share|wire/tcp/(frame|idle|incoming|outgoing|retry|stops|stream))\.rs", "kfi-wire"),
)


class Mutant(NamedTuple):
    """A fault: what stands in a line, and what shall stand there."""

    path: str
    line: int
    rule: str
    before: str
    after: str
    # Of those that say the same of equal lines in this file.
    nth: int = 0

    @property
    def id(self) -> str:
        """Stays as long as the line does."""
        said = "\0".join((self.path, self.rule, self.before, self.after, str(self.nth)))
        return hashlib.sha256(said.encode()).hexdigest()[:10]


# --- rules --------------------------------------------------------------------
# Each takes a line without its comment, and yields lines to put there instead.

Rule = Callable[[str], Iterator[str]]
TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
OTHERS = {
    ".min(": ".max(",
    ".max(": ".min(",
    ".is_none()": ".is_some()",
    ".is_some()": ".is_none()",
    ".is_empty()": ".len() == 1",
    ".wrapping_add(": ".wrapping_sub(",
    ".wrapping_sub(": ".wrapping_add(",
    ".saturating_add(": ".saturating_sub(",
    ".saturating_sub(": ".saturating_add(",
    " + ": " - ",
    " - ": " + ",
    " && ": " || ",
    " || ": " && ",
}


def replaced(line: str, match: "re.Match[str]", text: str) -> str:
    return line[: match.start()] + text + line[match.end() :]


def comparison(line: str) -> Iterator[str]:
    for match in re.finditer(r"(?<= )(<=|>=|==|!=|<|>)(?= )", line):
        yield replaced(line, match, TURNED[match[0]])


def number(line: str) -> Iterator[str]:
    # Not a length in a type, not the size of one, not part of a name.
    for match in re.finditer(r"(?<![\w.\"'])(\d[\d_]*)(?![\w.\"'])", line):
        yield replaced(line, match, str(int(match[1].replace("_", "")) + 1))


def statement(line: str) -> Iterator[str]:
    if re.fullmatch(r"\s+(self|this|[a-z_]+(::|\.))[\w.:]*\(.*\)\??;", line):
        yield re.sub(r"\S.*", ";", line)
    if re.fullmatch(r"\s+[\w.*]+ [-+|&]?= [^;]+;", line):
        yield re.sub(r"\S.*", ";", line)


def early(line: str) -> Iterator[str]:
    match = re.fullmatch(r"\s*(pub(\([a-z]+\))? )?(?:extern \"C\" )?fn \w+.*\)( -> (.+))? \{", line)
    if not match:
        return
    values = {None: "", "Result": " Ok(())", "bool": " false", "u64": " 0", "usize": " 0"}
    kind = match[4]
    if kind in values:
        # Not code that cannot be reached, which is a warning and a second fault.
        yield f"{line} if true {{ return{values[kind]}; }}"
    if kind == "bool":
        yield f"{line} if true {{ return true; }}"
    if kind and kind.startswith("Option<"):
        yield f"{line} if true {{ return None; }}"


def flag(line: str) -> Iterator[str]:
    if "=>" in line or line.lstrip().startswith("|") or "matches!" in line:
        return
    for match in re.finditer(r" \| [A-Z][\w:]*", line):
        yield replaced(line, match, "")
    for match in re.finditer(r"\b[A-Z][\w:]* \| ", line):
        yield replaced(line, match, "")


def branch(line: str) -> Iterator[str]:
    match = re.fullmatch(r"(.*\b(?:if|while)) (?!let\b)(.+) \{", line)
    if not match or " let " in match[2] or "=>" in line:
        return
    yield f"{match[1]} ({match[2]}) && false {{"
    if not match[1].endswith("while"):
        yield f"{match[1]} ({match[2]}) || true {{"


def negation(line: str) -> Iterator[str]:
    for match in re.finditer(r"(?<=[ (])!(?=[a-z(])", line):
        yield replaced(line, match, "")


def other(line: str) -> Iterator[str]:
    for before, after in OTHERS.items():
        for match in re.finditer(re.escape(before), line):
            yield replaced(line, match, after)


def order(line: str) -> Iterator[str]:
    if "smp_mb" not in line:
        for match in re.finditer(r"ordering::(Full|Acquire|Release)\b", line):
            yield replaced(line, match, "ordering::Relaxed")


RULES: Dict[str, Rule] = {
    "comparison": comparison,
    "number": number,
    "statement": statement,
    "early": early,
    "flag": flag,
    "branch": branch,
    "negation": negation,
    "other": other,
    "order": order,
}

# Beginnings of code that the tested kernel does not carry out, and of lines without code.
END = re.compile(r"#\[(cfg\(unit_tests|kunit_tests|cfg\(all\(CONFIG_KUNIT)")
NO_CODE = re.compile(r"\s*(//|#!?\[|use |pub use |mod |pub mod |pub\(\w+\) mod |const _|kernel::static_assert|static_lock)")


def lines_of(text: str) -> Iterator[Tuple[int, str]]:
    """The lines with code, with their numbers, without comments, up to the unit tests."""
    imports = False
    for at, line in enumerate(text.splitlines(), 1):
        if END.match(line):
            return
        if re.match(r"(pub )?use .*\{$", line):
            imports = True
        if not imports and line.strip() and not NO_CODE.match(line):
            # A text with two slashes keeps its line from being taken.
            code = line.split(" //", 1)[0]
            if code.count('"') % 2 == 0:
                yield at, code
        imports = imports and not line.startswith("}")


def mutants_of(path: str, text: str) -> Iterator[Mutant]:
    seen: Dict[Tuple[str, str, str], int] = {}
    for at, line in lines_of(text):
        for name, rule in RULES.items():
            # Text in quotes is for people.
            if '"' in line and name in ("number", "other", "flag"):
                continue
            for after in rule(line):
                if after != line:
                    said = (name, line.strip(), after.strip())
                    nth = seen[said] = seen.get(said, -1) + 1
                    yield Mutant(path, at, *said, nth)


def all_mutants(root: Path) -> List[Mutant]:
    paths = sorted(path for crate in CRATES for path in (root / crate).rglob("*.rs"))
    return [
        mutant
        for path in paths
        for mutant in mutants_of(str(path.relative_to(root)), path.read_text())
    ]


def choose(mutants: Sequence[Mutant], seed: int, count: int) -> List[Mutant]:
    """So many, of each rule as many as of any other as long as there are some; a longer choice begins
    with a shorter one. Those in lines that stay as they are stay chosen when others change."""
    by_rule: Dict[str, List[Mutant]] = {}
    for mutant in dict.fromkeys(mutants):
        by_rule.setdefault(mutant.rule, []).append(mutant)
    for some in by_rule.values():
        some.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.id}".encode()).digest())
    chosen: List[Mutant] = []
    while len(chosen) < count and any(by_rule.values()):
        for some in by_rule.values():
            if some and len(chosen) < count:
                chosen.append(some.pop())
    return chosen


def package_of(path: str) -> str:
    return next((package for pattern, package in HOST if re.search(pattern, path)), "")


def areas_of(path: str) -> str:
    return next(areas for pattern, areas in AREAS if re.search(pattern, path))


# --- trying them --------------------------------------------------------------


@dataclass
class Found:
    """A mutant that was tried, and the outcome."""

    id: str
    path: str
    line: int
    rule: str
    before: str
    after: str
    nth: int
    outcome: str
    by: str = ""
    seconds: int = 0
    # The tests in user space ran as well.
    host: bool = False


def read_found(text: str) -> Dict[str, Found]:
    """The last word of each."""
    found: Dict[str, Found] = {}
    for line in text.splitlines():
        # The last line may have been cut off, and the first ones say what it is.
        try:
            one = Found(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[one.id] = one
    return found


def kept(chosen: Iterable[Mutant], found: Dict[str, Found]) -> Iterator[str]:
    """The results of those that were chosen, as lines: the line numbers are those of now."""
    for mutant in sorted(chosen, key=lambda mutant: (mutant.path, mutant.line, mutant.id)):
        if one := found.get(mutant.id):
            yield json.dumps(asdict(replace(one, line=mutant.line)))


def read_equivalent(text: str) -> Dict[str, str]:
    """Why some are no faults, by their ids."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        if match := re.fullmatch(r"([0-9a-f]{10}): (\S.*)", line):
            found[match[1]] = match[2]
    return found


def put(tree: Path, mutant: Mutant) -> None:
    """Makes the fault in a copy."""
    path = tree / mutant.path
    lines = path.read_text().splitlines(keepends=True)
    line = lines[mutant.line - 1]
    code = line.rstrip("\n").split(" //", 1)[0]
    if code.strip() != mutant.before:
        raise mutations.CannotTry(f"{mutant.path}:{mutant.line} is not as it was")
    indent = code[: len(code) - len(code.lstrip())]
    lines[mutant.line - 1] = indent + mutant.after + line[len(code) :]
    path.write_text("".join(lines))


def words_for(areas: str, patience: int = 1) -> str:
    return f"{areas} {OPTIONS} --time-limit {patience * TEST_LIMIT}"


def words_until_noticed(areas: str, known: Iterable[str]) -> str:
    """The first failure is enough, of tests that do not fail anyway."""
    without = (f"-x {name}" for name in sorted(known) if "/" in name and ":" not in name)
    return " ".join((words_for(areas), "--fail-fast", *without))


# Tests that were not done in time, and a run that was not, have so many times as long to show that this is the
# fault, and not a machine that is busy with others.
PATIENCE = 4
# A test that was not done in time.
LATE = re.compile(r"^FAILED (?:kernel: )?(\S+).*\n    # not done after ", re.M)
# Signs that the machine ended too early, which do not say what test failed.
WHOLE = re.compile(r"guest|command|the run|test plan")
# What qemu-test/run says: first which machine it boots, and then only why it cannot go on.
MACHINE = re.compile(r"run: .+ CPUs, \d+ MiB\)")
# What the kernel says then is all that there will be.
HANGS = re.compile(
    r"^kernel: .*(?:self-detected stall|detected (?:expedited )?stalls|blocked for more than \d+ seconds).*", re.M
)
# Complaints of the compiler, or of the linker about a function that must not be called (build_assert).
REFUSED = re.compile(r"^(error(\[E\d+\])?: |ld\.lld: error: |ERROR: modpost: )", re.M)


def baseline(
    mutants: Sequence[Mutant], limit: float, trees: Sequence[Path]
) -> Tuple[Set[str], float]:
    """The tests that fail anyway, or are skipped, beside as many other machines as later, and how many
    seconds all of them took at most. All that is no fault's is built then."""
    areas = " ".join(dict.fromkeys(word for one in mutants for word in areas_of(one.path).split()))

    def run_in(tree: Path) -> mutations.Outcome:
        mutations.copy_tree(tree)
        return mutations.run("uml", words_for(areas), "baseline", 5 * limit, tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        try:
            runs = list(pool.map(run_in, trees))
        except BaseException:
            mutations.RUNS.stop()
            raise
    failed = list(dict.fromkeys(name for ran in runs for name in ran.failed))
    if any(WHOLE.fullmatch(name) for name in failed) or not all(ran.passed for ran in runs):
        said = mutations.names_of(failed) or "nothing was run"
        raise mutations.CannotTry(f"without a fault: {said}; see build/baseline.txt in {trees[0].parent}/*")
    also = f", but not {mutations.names_of(failed)}" if failed else ""
    mutations.say(f"without a fault: {runs[0].passed} passed{also}")
    known = {*failed, *(name for ran in runs for name in ran.skipped)}
    return known, max(ran.seconds for ran in runs)


def noticed_by(ran: mutations.Outcome, known: Set[str], may_skip: Iterable[str]) -> List[str]:
    """The tests that do not do what they do without the fault."""
    skipped = (
        name
        for name in ran.skipped
        if not any(fnmatchcase(name, pattern) for pattern in may_skip)
    )
    return [name for name in (*ran.failed, *skipped) if name not in known]


class Way(NamedTuple):
    """How the tests run with a fault."""

    # Where make runs, what it makes, and where it says so, below build.
    tree: Path
    how: Sequence[str]
    log: str


def alone(folder: Path, mutant: Mutant) -> Way:
    """Makes the fault in a copy of its own, to be built with the tests."""
    mutations.copy_tree(folder)
    put(folder, mutant)
    return Way(folder, ("test",), mutant.id)


class Together:
    """Modules with many faults, of which one is chosen."""

    def __init__(self, chosen: Sequence[Mutant]) -> None:
        self._tree = ROOT / "build/mutants/together"
        # So that nothing is built again when a run goes on, they are those of all that were chosen, less
        # those that were refused before.
        refused = ROOT / "build/mutants/refused"
        known = set(read_if_there(refused).split())
        self._numbers = {n: one for n, one in enumerate(chosen, 1) if one.id not in known}
        programs = ("make", "guest", "build/example/kfi_user")
        if mutations.carry_out(programs, ROOT, ROOT / "build/mutants/programs.txt", 3600):
            raise mutations.CannotTry("no programs: see build/mutants/programs.txt")
        log = self._tree / "build/together.txt"
        while True:
            faults = {number: schemata.Fault(*mutant[:5]) for number, mutant in self._numbers.items()}
            with schemata.times_kept(self._tree, {*ROOTS, *(one.path for one in faults.values())}):
                mutations.copy_tree(self._tree)
                there = schemata.put_all(self._tree, faults)
                for root in ROOTS:
                    schemata.put_switch(self._tree / root)
            if not mutations.carry_out(("make", "only-modules", "VEHICLE=uml"), self._tree, log, 3600):
                break
            gone = schemata.refused(
                log.read_text(errors="replace"), {number: faults[number] for number in there}, self._tree
            )
            if not gone:
                raise mutations.CannotTry(f"not built: see {log}")
            with open(refused, "a") as out:
                out.writelines(f"{self._numbers[number].id}\n" for number in sorted(gone))
            there -= gone
            self._numbers = {number: self._numbers[number] for number in there}
        self._numbers = {number: self._numbers[number] for number in there}
        mutations.say(f"{len(there)} of {len(chosen)} are built together")

    def mutants(self) -> List[Mutant]:
        return list(self._numbers.values())

    def choose(self, folder: Path, mutant: Mutant) -> Way:
        """Puts modules in which it is on where an image is made of them."""
        number = next(number for number, one in self._numbers.items() if one == mutant)
        modules = folder / "image/modules"
        modules.mkdir(parents=True, exist_ok=True)
        for name in ("modules", "consumer"):
            for module in (self._tree / "build/uml" / name).glob("*.ko"):
                (modules / module.name).write_bytes(schemata.choose(module.read_bytes(), number))
        out = folder.relative_to(ROOT)
        return Way(ROOT, ("suite-of-modules", f"out={out}"), f"mutants/logs/{mutant.id}")


def run_all(
    way: Way, areas: str, known: Set[str], may_skip: Iterable[str], limit: float
) -> Tuple[mutations.Outcome, List[str]]:
    """Runs the tests of these areas with a fault; returns what came out, and which have noticed it."""

    def run(words: str, seconds: float) -> Tuple[mutations.Outcome, List[str]]:
        ran = mutations.run("uml", words, way.log, seconds, way.tree, way.how, HANGS)
        return ran, noticed_by(ran, known, may_skip)

    known = set(known)
    while True:
        words = words_until_noticed(areas, known)
        ran, noticed = run(words, limit)
        failed = {name for name in noticed if not WHOLE.fullmatch(name)}
        if not failed:
            is_late = bool(noticed) and ran.seconds >= limit
            return run(words, PATIENCE * limit) if is_late else (ran, noticed)
        said = (way.tree / f"build/{way.log}.txt").read_text(errors="replace")
        if not failed <= set(LATE.findall(said)):
            return ran, noticed
        only, still = run(words_for(" ".join(sorted(failed)), PATIENCE), PATIENCE * limit)
        if still:
            return only, still
        # It was the machine. The others have yet to run.
        known |= failed


def attempt(
    mutant: Mutant,
    prepare: Callable[[Path, Mutant], Way],
    folder: Path,
    known: Set[str],
    may_skip: Iterable[str],
    limit: float,
) -> Found:
    """Runs the tests with it. Failures that are known do not count."""
    start = time.monotonic()
    way = prepare(folder, mutant)
    outcome, by = "survived", ""
    try:
        ran, noticed = run_all(way, areas_of(mutant.path), known, may_skip, limit)
        if noticed:
            outcome, by = "caught", mutations.names_of(noticed)
        elif not ran.passed:
            raise mutations.CannotTry(f"{mutant.id}: no test was run")
    except mutations.Hangs as error:
        outcome, by = "caught", str(error)
    except (mutations.OutOfTime, mutations.NoResult) as error:
        said = (way.tree / f"build/{way.log}.txt").read_text(errors="replace")
        of_run = re.findall(r"^run: .*", said, re.M)
        if len(of_run) == 1 and MACHINE.fullmatch(of_run[0]):
            # It was built, as the machine was begun.
            late = isinstance(error, mutations.OutOfTime)
            outcome, by = "caught", "the time limit" if late else "the machine"
        elif isinstance(error, mutations.NoResult) and REFUSED.search(said):
            outcome, by = "unbuilt", ""
        else:
            raise
    seconds = round(time.monotonic() - start)
    return Found(mutant.id, *mutant, outcome=outcome, by=by, seconds=seconds)


# Of cargo test: the tests that failed, or that it did not end.
FAILED_ON_HOST = re.compile(r"^failures:\n((?:    \S+\n)+)", re.M)


def ask_host(mutant: Mutant, one: Found, limit: float) -> Found:
    """Runs the tests in user space of one that has survived the others."""
    start = time.monotonic()
    folder = ROOT / "build/mutants/host"
    way = alone(folder, mutant)
    log = folder / f"build/{way.log}.txt"
    package = package_of(mutant.path)
    outcome, by = one.outcome, ""
    try:
        if mutations.carry_out(("make", "test-host", f"PACKAGE={package}"), folder, log, limit):
            failed = FAILED_ON_HOST.search(log.read_text(errors="replace"))
            if not failed:
                raise mutations.CannotTry(f"{mutant.id}: see {log}")
            names = [f"{package} {name}" for name in failed[1].split()]
            outcome, by = "caught", mutations.names_of(names)
    except mutations.OutOfTime:
        outcome, by = "caught", f"{package}, the time limit"
    seconds = one.seconds + round(time.monotonic() - start)
    return replace(one, outcome=outcome, by=by, seconds=seconds, host=True)


def report(found: Iterable[Found], equivalent: Dict[str, str]) -> Iterator[str]:
    """A table by file, and what survived."""
    columns = ("caught", "survived", "equivalent", "unbuilt")
    files: Dict[str, Dict[str, int]] = {}
    left: List[Found] = []
    for one in found:
        outcome = one.outcome
        if outcome == "survived" and one.id in equivalent:
            outcome = "equivalent"
        counts = files.setdefault(one.path, dict.fromkeys(columns, 0))
        counts[outcome] += 1
        if outcome == "survived":
            left.append(one)
    width = max((len(path) for path in files), default=4)
    yield f"{'file':<{width}} " + " ".join(f"{column:>10}" for column in columns)
    for path, counts in sorted(files.items()):
        yield f"{path:<{width}} " + " ".join(f"{counts[column] or '':>10}" for column in columns)
    sums = {column: sum(counts[column] for counts in files.values()) for column in columns}
    yield f"{'all':<{width}} " + " ".join(f"{sums[column]:>10}" for column in columns)
    for one in sorted(left, key=lambda one: (one.path, one.line)):
        yield f"SURVIVED {one.id} {one.path}:{one.line} ({one.rule})"
        yield f"    - {one.before}"
        yield f"    + {one.after}"


def read_if_there(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Make faults by rules, and see whether the tests notice them.",
        epilog="The exit status is 1 if too many survive, and 2 if something could not be tried.",
    )
    add = parser.add_argument
    add("--count", type=int, default=300, metavar="N", help="how many: %(default)s")
    add("--seed", type=int, default=1, metavar="N", help="which: %(default)s")
    add("--rule", action="append", choices=sorted(RULES), help="only of this rule, or these")
    add("--without", action="append", default=[], choices=sorted(RULES), help="none of this rule")
    add("--only", default="", metavar="PART", help="only in files with this in their names")
    add("--list", action="store_true", help="only say which")
    add("--report", action="store_true", help="only say what was found so far")
    add("--keep", action="store_true", help="put what was found into qemu-test/mutations/results.jsonl")
    add("--again", action="store_true", help="try those that have survived once more")
    add("--id", action="append", default=[], metavar="ID", help="only this one, or these, once more")
    add("--no-baseline", action="store_true", help="do not run the tests without a fault first")
    add("--alone", action="store_true", help="build each by itself")
    add("--jobs", type=int, default=1, metavar="N", help="machines at a time: %(default)s")
    add("--ignore", action="append", default=[], metavar="TEST", help="fails anyway")
    add("--survivors", type=int, default=0, metavar="N", help="so many may survive: %(default)s")
    add(
        "--timeout",
        type=float,
        default=600,
        metavar="SECONDS",
        help="of a run: %(default)s, or twice what all tests took without a fault if that is more",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    mutants = [
        mutant
        for mutant in all_mutants(ROOT)
        if options.only in mutant.path
        and (not options.rule or mutant.rule in options.rule)
        and mutant.rule not in options.without
    ]
    chosen = choose(mutants, options.seed, options.count)
    wanted = {mutant for mutant in chosen if mutant.id in options.id or not options.id}
    if not wanted or not {mutant.id for mutant in wanted}.issuperset(options.id):
        raise mutations.CannotTry("there is no such fault to make")
    found = read_found(read_if_there(KEPT) + read_if_there(RESULTS))
    equivalent = read_equivalent(read_if_there(EQUIVALENT))
    if options.list:
        for mutant in chosen:
            print(f"{mutant.id} {mutant.path}:{mutant.line} ({mutant.rule})")
            print(f"    - {mutant.before}\n    + {mutant.after}")
        print(f"{len(chosen)} of {len(mutants)}")
        return 0
    untried = 0
    done = {one.id for one in found.values() if not (options.again and one.outcome == "survived")}
    if not options.report:
        left = [mutant for mutant in chosen if mutant in wanted and (options.id or mutant.id not in done)]
        folders = [ROOT / f"build/mutants/{number_of}" for number_of in range(options.jobs)]
        trees: "Queue[Path]" = Queue()
        for folder in folders:
            trees.put(folder)
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        lock = Lock()
        known, limit = set(options.ignore), options.timeout
        may_skip = list(coverage_map.read_skipped(SKIPPED.read_text()))
        if left and not options.no_baseline:
            also_known, seconds = baseline(left, options.timeout, folders)
            known |= also_known
            # A machine that is slow hangs no more than that of the baseline did.
            limit = max(limit, 2 * seconds)

        def try_one(mutant: Mutant, prepare: Callable[[Path, Mutant], Way]) -> None:
            nonlocal untried
            tree = trees.get()
            try:
                one = attempt(mutant, prepare, tree, known, may_skip, limit)
            except mutations.CannotTry as error:
                mutations.say(f"NOT TRIED {mutant.id} {error}")
                with lock:
                    untried += 1
                return
            finally:
                trees.put(tree)
            note(one)

        def note(one: Found) -> None:
            with lock:
                found[one.id] = one
                with open(RESULTS, "a") as results:
                    results.write(json.dumps(asdict(one)) + "\n")
                by = f" by {one.by}" if one.by else ""
                mutations.say(f"{one.outcome:<9} {one.id} {one.path}:{one.line} ({one.rule}, {one.seconds} s){by}")

        ways: List[Tuple[Mutant, Callable[[Path, Mutant], Way]]] = []
        if left and not options.alone:
            together = Together(chosen)
            built = set(together.mutants())
            ways += ((mutant, together.choose) for mutant in left if mutant in built)
            left = [mutant for mutant in left if mutant not in built]
        ways += ((mutant, alone) for mutant in left)
        with ThreadPoolExecutor(options.jobs) as pool:
            try:
                # Machines of the last ones of those that are built together leave a processor idle.
                for _ in pool.map(lambda way: try_one(*way), ways):
                    pass
            except BaseException:
                mutations.RUNS.stop()
                raise
        for mutant in chosen:
            one = found.get(mutant.id)
            if one and one.outcome == "survived" and not one.host and package_of(mutant.path):
                try:
                    note(ask_host(mutant, one, 3 * limit))
                except mutations.CannotTry as error:
                    mutations.say(f"NOT TRIED {mutant.id} {error}")
                    untried += 1
    if options.keep:
        KEPT.write_text("".join(f"{line}\n" for line in (*KEPT_HEAD, *kept(chosen, found))))
    here = {mutant.id for mutant in chosen}
    of_these = [one for one in found.values() if one.id in here]
    for line in report(of_these, equivalent):
        print(line)
    survived = sum(one.outcome == "survived" and one.id not in equivalent for one in of_these)
    return 2 if untried else int(survived > options.survivors)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except mutations.CannotTry as error:
        print(f"mutants: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
