#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the coverage map."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import contextlib
import io
import tempfile
import textwrap
import unittest
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import coverage_map
from coverage_map import CI, LIST, SKIPPED, Requirement, Test


class List(unittest.TestCase):
    def test_lines(self) -> None:
        text = "# words\n\n| id |\n| R-A-1 | MUST | One. |\n| R-B-10 | DECIDE | Two words. |\n"
        wanted = [Requirement("R-A-1", "MUST", "One."), Requirement("R-B-10", "DECIDE", "Two words.")]
        self.assertEqual(coverage_map.read_list(text), wanted)

    def test_bad_lines(self) -> None:
        twice = "| R-A-1 | MUST | x |\n| R-A-1 | MUST | y |"
        for text in ("| R-A-1 | One. |", "| R-A | MUST | One. |", "| R-A-1 | MUST |", twice, "words"):
            with self.assertRaises(coverage_map.BadList):
                coverage_map.read_list(text)


class Sources(unittest.TestCase):
    def test_suite(self) -> None:
        text = textwrap.dedent(
            """
            //! R-A-9 in a comment.
            tests! {
                "area";
                "one" ["R-A-1 R-A-2"] one;
                "two" [
                    "R-A-3"
                ] two;
                "three" ["kfi_shim.h"] three;
            }
            const OTHER: [&str; 1] = ["R-A-4"];
            """
        )
        wanted = [
            Test("suite", "area/one", ("R-A-1", "R-A-2")),
            Test("suite", "area/two", ("R-A-3",)),
            Test("suite", "area/three", ()),
        ]
        self.assertEqual(list(coverage_map.suite_tests(text)), wanted)

    def test_c(self) -> None:
        text = textwrap.dedent(
            """
            const struct test_case some_tests[] = {
            	{ "a/one", "R-A-1 R-A-2", one },
            	{ "a/two", "R-A-3 "
            	  "R-A-4", two },
            	{ "a/none", "", none },
            	{ }
            };
            static const char *other = "R-A-5";
            	print_result(t, test->name, test->requirements);
            	print_result(&t, "close/all", "R-A-6");
            """
        )
        wanted = [
            Test("C", "a/one", ("R-A-1", "R-A-2")),
            Test("C", "a/two", ("R-A-3", "R-A-4")),
            Test("C", "a/none", ()),
            Test("C", "close/all", ("R-A-6",)),
        ]
        self.assertEqual(list(coverage_map.c_tests(text)), wanted)

    def test_kunit(self) -> None:
        text = textwrap.dedent(
            """
            /// R-A-9: not a test.
            fn code() {
            }

            #[kunit_tests(kfi_some)]
            mod tests {
                /// R-A-8: a helper.
                fn helper() {
                }

                /// In order (R-A-1,
                /// R-A-2).
                #[test]
                fn order() -> Result {
                    // R-A-3, R-A-1
                    if true {
                        helper("R-A-7");
                    }
                    Ok(())
                }

                #[test]
                fn plain() {
                }
            }

            /// R-A-9
            fn after() {
            }
            """
        )
        wanted = [
            Test("KUnit", "kfi_some.order", ("R-A-1", "R-A-2", "R-A-3")),
            Test("KUnit", "kfi_some.plain", ()),
        ]
        self.assertEqual(list(coverage_map.kunit_tests(text)), wanted)


class Tree(unittest.TestCase):
    """A whole run."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write(LIST, "| R-A-1 | MUST | First. |\n| R-A-2 | DECIDE | Second. |\n")
        self.write("rust/x.rs", "")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def name(self, ids: str) -> None:
        self.write(
            "qemu-test/guest/suite/src/tests/a.rs", f'tests! {{\n    "a";\n    "b" ["{ids}"] b;\n}}\n'
        )

    def run_it(self, *arguments: str) -> Tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = coverage_map.main(["--root", str(self.root), *arguments])
        return status, out.getvalue(), err.getvalue()

    def test_complete(self) -> None:
        self.name("R-A-1 R-A-2")
        status, out, err = self.run_it()
        self.assertEqual((status, err), (0, ""))
        self.assertIn("2 of 2", out)
        self.assertEqual(out.count("a/b"), 2)
        self.assertEqual(self.run_it("--quiet"), (0, "", ""))

    def test_missing(self) -> None:
        self.name("R-A-1")
        status, out, err = self.run_it()
        self.assertEqual((status, err), (1, "no test for R-A-2: Second.\n"))
        self.assertIn("NO TEST", out)

    def test_unknown(self) -> None:
        self.name("R-A-1 R-A-2 R-A-3")
        status, _, err = self.run_it()
        self.assertEqual((status, err), (1, "a/b shows R-A-3, which is no requirement\n"))

    def test_skipped(self) -> None:
        self.name("R-A-1 R-A-2")
        self.write(SKIPPED, "# Words.\n\na/*: there is no such thing\n")
        status, out, err = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("a/b (skipped: there is no such thing)", out)
        self.assertIn("only tests that are skipped for R-A-1: First.", err)
        # The debug kernel has it.
        self.write(CI, "make check\nmake test-debug ARGS='x/ a/b'\n")
        self.assertEqual(self.run_it("--quiet"), (0, "", ""))
        self.write(CI, "make check\nmake test-debug ARGS='x/ [ab]/c'\n")
        self.assertEqual(self.run_it()[0], 1)

    def test_bad_skips(self) -> None:
        self.name("R-A-1 R-A-2")
        self.write(SKIPPED, "a/b\n")
        self.assertEqual(self.run_it()[0], 2)

    def test_bad_list(self) -> None:
        self.write(LIST, "nothing\n")
        self.assertEqual(self.run_it()[0], 2)

    def test_no_list(self) -> None:
        (self.root / LIST).unlink()
        self.assertEqual(self.run_it()[0], 2)


class Here(unittest.TestCase):
    """This tree."""

    def test_it_can_be_read(self) -> None:
        requirements = coverage_map.read_list((coverage_map.ROOT / LIST).read_text())
        tests = coverage_map.all_tests(coverage_map.ROOT)
        for kind in coverage_map.KINDS:
            self.assertTrue([test for test in tests if test.kind == kind], kind)
        self.assertGreater(len(requirements), 100)
        self.assertEqual(coverage_map.put_together(requirements, tests).unknown, [])

    def test_what_is_skipped_is_there(self) -> None:
        names = [test.name for test in coverage_map.all_tests(coverage_map.ROOT)]
        for pattern in coverage_map.read_skipped((coverage_map.ROOT / SKIPPED).read_text()):
            self.assertTrue([name for name in names if fnmatchcase(name, pattern)], pattern)

    def test_nothing_rests_on_what_is_skipped(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            status = coverage_map.main(["--quiet"])
        self.assertEqual((status, said.getvalue()), (0, ""))


if __name__ == "__main__":
    unittest.main()
