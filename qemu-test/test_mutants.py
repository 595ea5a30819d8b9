#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the faults that are made by rules."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import contextlib
import io
import json
import tempfile
import textwrap
import threading
import time
import unittest
import unittest.mock
from dataclasses import asdict
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parent))

import coverage_map
import mutants
import mutations
import schemata
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

    def test_a_choice_does_not_hang_on_other_lines(self) -> None:
        of_one_rule = [mutants.Mutant("f", n, "number", f"{n}", f"{n + 1}") for n in range(60)]
        chosen = mutants.choose(of_one_rule, 3, 20)
        moved = [one._replace(line=one.line + 7) for one in of_one_rule if one != chosen[4]]
        left = [one.id for one in chosen if one != chosen[4]]
        self.assertEqual([one.id for one in mutants.choose(moved, 3, 19)], left)

    def test_results_are_kept_with_their_lines_of_now(self) -> None:
        one = mutants.Mutant("f", 3, "number", "1", "2")
        found = {one.id: mutants.Found(one.id, *one, outcome="caught")}
        other = mutants.Mutant("f", 1, "number", "4", "5")
        lines = [*mutants.KEPT_HEAD, *mutants.kept([one._replace(line=9), other], found)]
        self.assertEqual([kept.line for kept in mutants.read_found("\n".join(lines)).values()], [9])

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


class Trying(unittest.TestCase):
    """In a folder where make test does as it is told."""

    def setUp(self) -> None:
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (self.root / "qemu-test").mkdir()
        (self.root / "qemu-test/skipped").write_text("# None.\n\nc/*: now and then\n")
        (self.root / "rust/kfabric").mkdir(parents=True)
        (self.root / "rust/kfabric/info.rs").write_text("    if a < b {\n")
        for name, value in (
            ("ROOT", self.root),
            ("RESULTS", self.root / "build/mutants/results.jsonl"),
            ("EQUIVALENT", self.root / "equivalent"),
            ("SKIPPED", self.root / "qemu-test/skipped"),
        ):
            stack.enter_context(unittest.mock.patch.object(mutants, name, value))
        stack.enter_context(unittest.mock.patch.object(mutations, "copy_tree", self.copy))
        stack.enter_context(unittest.mock.patch.object(mutations, "RUNS", mutations.Runs()))

    def copy(self, tree: Path) -> None:
        (tree / "rust/kfabric").mkdir(parents=True, exist_ok=True)
        path = tree / "rust/kfabric/info.rs"
        path.write_text((self.root / "rust/kfabric/info.rs").read_text())
        script = textwrap.indent(self.script, "\t@")
        (tree / "Makefile").write_text(f".SILENT:\n.ONESHELL:\ntest:\n{script}\n")

    def run_it(self, with_fault: str, *options: str, without: str = "") -> "tuple[int, str]":
        """With what is done where the fault is, and where it is not."""
        good = "echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'; echo ok 1 a/b; echo 1 passed, 0 failed, 0 skipped"
        self.script = f"if grep -q 'a >= b' rust/*/*.rs; then {with_fault}; else {without or good}; fi"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = mutants.main(["--rule", "comparison", "--alone", *options])
        return status, said.getvalue()

    def test_outcomes(self) -> None:
        begin = "echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'; "
        for script, outcome, status in (
            (begin + "echo ok 1 a/b; echo 1 passed, 0 failed, 0 skipped", "survived", 1),
            (begin + "echo not ok 1 a/b; echo 0 passed, 1 failed, 0 skipped", "caught", 0),
            (begin + "echo ok 1 a/b; echo 'ok 2 a/c # SKIP no'; echo 1 passed, 0 failed, 1 skipped", "caught", 0),
            (begin + "echo ok 1 a/b; echo 'ok 2 c/c # SKIP no'; echo 1 passed, 0 failed, 1 skipped", "survived", 1),
            (begin + "exit 1", "caught", 0),
            (begin + "echo 'run: No space left on device'; exit 2", "NOT TRIED", 2),
            ("echo 'run: no kernel: x'; exit 2", "NOT TRIED", 2),
            ("echo 'error[E0308]: mismatched types'; exit 1", "unbuilt", 0),
            ("echo 'ERROR: modpost: rust_build_error undefined!'; exit 1", "unbuilt", 0),
            ("echo 'No space left on device'; exit 1", "NOT TRIED", 2),
            (begin + "echo 0 passed, 0 failed, 0 skipped", "NOT TRIED", 2),
        ):
            with self.subTest(script):
                found, said = self.run_it(script, "--jobs", "2")
                self.assertIn(f"\n{outcome} ", said)
                self.assertEqual(found, status)
                # It is kept, unless nothing came out.
                kept = mutants.read_if_there(mutants.RESULTS)
                self.assertEqual(bool(kept), status != 2)
                mutants.RESULTS.unlink(missing_ok=True)

    def test_late_tests_have_more_time(self) -> None:
        begin = "echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'; "
        late = "echo 'FAILED a/b - x'; echo '    # not done after 9s'; echo 0 passed, 1 failed, 0 skipped"
        good = "echo ok 1 a/c; echo 1 passed, 0 failed, 0 skipped"
        bad = "echo not ok 1 a/c; echo 0 passed, 1 failed, 0 skipped"
        has_time = f"--time-limit {mutants.PATIENCE * mutants.TEST_LIMIT}"
        for alone, others, outcome in (
            # It hangs.
            (late, good, "caught"),
            # It was the machine, whatever the others do then.
            (good, good, "survived"),
            (good, bad, "caught"),
        ):
            script = (
                f"{begin}case '$(ARGS)' in 'a/b '*'{has_time}') {alone};; "
                f"*'-x a/b'*) {others};; *) {late};; esac"
            )
            with self.subTest(outcome, alone=alone, others=others):
                _, said = self.run_it(script)
                self.assertIn(f"\n{outcome} ", said)
                mutants.RESULTS.unlink(missing_ok=True)

    def test_late_runs_have_more_time(self) -> None:
        begin = "echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'; "
        late = "echo 'FAILED guest - did not end'; echo 'kernel log: x   9.5 s'; echo 3 passed, 1 failed, 0 skipped"
        good = "echo ok 1 a/c; echo 1 passed, 0 failed, 0 skipped"
        for then, outcome in ((late, "caught"), (good, "survived")):
            script = f"{begin}if test $(TIMEOUT) -gt 9; then {then}; else {late}; fi"
            with self.subTest(outcome):
                _, said = self.run_it(script, "--no-baseline", "--timeout", "9")
                self.assertRegex(said, f"(?m)^{outcome} ")
                mutants.RESULTS.unlink(missing_ok=True)

    def test_nothing_to_try(self) -> None:
        with self.assertRaises(mutations.CannotTry):
            self.run_it("exit 1", "--only", "no-such-file")

    def test_survivors(self) -> None:
        script = "echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'; echo ok 1 a/b; echo 1 passed, 0 failed, 0 skipped"
        self.assertEqual(self.run_it(script, "--survivors", "1")[0], 0)

    def test_what_fails_anyway(self) -> None:
        failing = "echo ok 1 a/a; echo not ok 2 a/b; echo 'ok 3 a/c # SKIP'; echo 1 passed, 1 failed, 1 skipped"
        status, said = self.run_it(failing, without=failing)
        self.assertIn("\nsurvived ", said)
        self.assertEqual(status, 1)

    def test_without_a_fault_the_machine_ends(self) -> None:
        for script in (
            "echo 'FAILED guest - did not end'; echo 3 passed, 1 failed, 0 skipped",
            "echo 0 passed, 0 failed, 7 skipped",
            "exit 1",
        ):
            with self.subTest(script), self.assertRaises(mutations.CannotTry):
                self.run_it("exit 1", without=script)

    def test_in_user_space(self) -> None:
        good = "echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'; echo ok 1 a/b; echo 1 passed, 0 failed, 0 skipped"
        failing = "printf 'failures:\\n\\n---- a::b\\n\\nfailures:\\n    a::b\\n    a::c\\n'; exit 1"
        copy = self.copy
        for host, last, status in (
            ("true", "survived", 1),
            (failing, "caught", 0),
            ("echo 'error[E0308]: no'; exit 1", "NOT TRIED", 2),
        ):

            def copy_both(tree: Path, host: str = host) -> None:
                copy(tree)
                with open(tree / "Makefile", "a") as out:
                    out.write(f"test-host:\n\t@{host}\n")

            with self.subTest(last), unittest.mock.patch.object(
                mutants, "HOST", (("kfabric", "kfi-x"),)
            ), unittest.mock.patch.object(mutations, "copy_tree", copy_both):
                found, said = self.run_it(good)
                words = [line.split(" ")[0] for line in said.splitlines()]
                self.assertEqual(words.count("survived"), 2 if last == "survived" else 1)
                self.assertIn(f"\n{last} ", said)
                self.assertEqual(found, status)
                if last == "caught":
                    self.assertIn("by kfi-x a::b, kfi-x a::c", said)
                mutants.RESULTS.unlink()

    def run_together(self, build: str, suite: str) -> "tuple[int, str]":
        """Two faults, with what is done to build them and then with each."""
        (self.root / "rust/kfabric/info.rs").write_text("    if a < b {\n    if c == d {\n")
        self.script = "echo ok 1 a/b; echo 1 passed, 0 failed, 0 skipped; exit 1"
        (self.root / "Makefile").write_text(
            f"guest build/example/kfi_user:\n\t@\nsuite-of-modules:\n\t@{suite}\n"
        )
        roots = ("rust/kfabric/info.rs",)

        def copy(tree: Path) -> None:
            self.copy(tree)
            with open(tree / "Makefile", "a") as out:
                out.write(f"only-modules:\n\t@{build}\n")

        with unittest.mock.patch.object(mutants, "ROOTS", roots), unittest.mock.patch.object(
            mutations, "copy_tree", copy
        ), contextlib.redirect_stdout(io.StringIO()) as said:
            status = mutants.main(["--rule", "comparison", "--no-baseline"])
        return status, said.getvalue()

    def test_together(self) -> None:
        mark = schemata.MARK.decode()
        build = f"mkdir -p build/uml/modules && printf '{mark}0000' >build/uml/modules/a.ko"
        begin = "echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'; "
        # One of the two is noticed.
        suite = begin + (
            "if grep -q \"$$(printf 'fault:\\001')\" $(out)/image/modules/a.ko; then "
            "echo not ok 1 a/b; echo 0 passed, 1 failed, 0 skipped; "
            "else echo ok 1 a/b; echo 1 passed, 0 failed, 0 skipped; fi"
        )
        status, said = self.run_together(build, suite)
        self.assertIn("2 of 2 are built together", said)
        self.assertIn("\ncaught ", said)
        self.assertIn("\nsurvived ", said)
        self.assertEqual(status, 1)

    def test_what_cannot_be_built_together_is_built_alone(self) -> None:
        # The second line makes an error until it has no switch any more.
        build = (
            "if sed -n 2p rust/kfabric/info.rs | grep -q is_on; then "
            "printf 'error[E0015]: no\\n  --> rust/kfabric/info.rs:2:4\\n'; exit 1; fi"
        )
        good = "echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'; echo ok 1 a/b; echo 1 passed, 0 failed, 0 skipped"
        status, said = self.run_together(build, good)
        self.assertIn("1 of 2 are built together", said)
        self.assertEqual(said.count("\nsurvived "), 2)
        self.assertEqual(status, 1)

    def test_together_no_error_of_theirs(self) -> None:
        with self.assertRaises(mutations.CannotTry):
            self.run_together("exit 1", "exit 1")

    def test_interrupted(self) -> None:
        def stop() -> None:
            while not (self.root / "build/mutants/0/begun").exists():
                time.sleep(0.01)
            mutations.RUNS.stop()

        stopper = threading.Thread(target=stop)
        stopper.start()
        status, said = self.run_it("touch begun; sleep 100; echo 'run: x (user-mode Linux, 2 CPUs, 64 MiB)'")
        stopper.join()
        self.assertEqual(status, 2)
        self.assertIn("NOT TRIED", said)
        self.assertFalse(mutants.RESULTS.exists())


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
