#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what says which lines a run has reached."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import contextlib
import io
import re
import struct
import tempfile
import textwrap
import unittest
import unittest.mock
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import kernel_log
import line_coverage
from line_coverage import CALLED, Block, CannotTell, Elf, Lines

ROOT = Path(__file__).resolve().parent.parent

ROWS = """
    [    9.000000] guest: status 0
    [    9.100000] kfi_coverage: kfi_soft text 0 0340
    [    9.100000] kfi_coverage: kfi_soft text 1000 01
    [    9.100000] kfi_coverage: kfi_soft text has 8192 bytes, 2 rows
    [    9.100000] kfi_coverage: kfi_soft init has 0 bytes, 0 rows
"""

# Of a function with a branch, with a jump to another function at its end, and of one that follows.
CODE = """
    Disassembly of section .text:

    0000000000000000 <first>:
           0:      \tpushq\t%rbx
           1:      \tcallq\t0x6 <first+0x6>
           6:      \ttestq\t%rbx, %rbx
           9:      \tje\t0x18 <first+0x18>
           b:      \tcallq\t0x10 <first+0x10>
          10:      \tmovl\t$0x9, %edi
          16:      \tjmp\t0x1d <first+0x1d>
          18:      \tcallq\t0x1d <first+0x1d>
          1d:      \tpopq\t%rbx
          1e:      \tjmp\t0x23 <first+0x23>
          23:      \tnop

    0000000000000030 <second>:
          30:      \tcallq\t0x35 <second+0x5>
          35:      \tretq
"""
# The second block of the first one has two: one of its own, one that was moved there.
CALLS = (0x6, 0x10, 0x1D, 0x35)


def elf(
    sections: Sequence[Tuple[str, int, bytes, Sequence[int]]],
    functions: Sequence[Tuple[int, int]] = (),
    data: Sequence[int] = (),
) -> bytes:
    """A file with sections of code (name, alignment, content) and calls at these places, with functions
    in the first one, from and to these, and data with the addresses of some of them, by their numbers."""
    names, symbol_names = b"\0", b"\0other\0" + CALLED.encode() + b"\0"
    symbols = b"".join(
        line_coverage.SYMBOL.pack(name, 0x10, 0, 0, 0, 0) for name in (0, 1, 7)
    )
    symbols += b"".join(
        line_coverage.SYMBOL.pack(0, 0x02, 0, 1, begin, end - begin) for begin, end in functions
    )
    headers: List[List[int]] = [[0] * 10]
    contents = [b""]
    last = 2 * len(sections) + 1 + 2 * bool(data)

    def add(name: str, kind: int, flags: int, content: bytes, link: int, info: int, align: int) -> None:
        nonlocal names
        headers.append([len(names), kind, flags, 0, 0, len(content), link, info, align, 0])
        names += name.encode() + b"\0"
        contents.append(content)

    for name, align, content, calls in sections:
        add(name, 1, 6, content, 0, 0, align)
        # Each behind one of something else.
        rela = b"".join(
            line_coverage.RELA.pack(call - 4, symbol << 32 | 4, -4) for call in calls for symbol in (1, 2)
        )
        add(f".rela{name}", 4, 0, rela, last, len(headers) - 1, 8)
    if data:
        add(".data", 1, 3, bytes(8 * len(data)), 0, 0, 8)
        rela = b"".join(
            line_coverage.RELA.pack(8 * at, (3 + number) << 32 | 1, 0) for at, number in enumerate(data)
        )
        add(".rela.data", 4, 0, rela, last, len(headers) - 1, 8)
    add(".symtab", 2, 0, symbols, last + 1, 0, 8)
    add(".strtab", 3, 0, symbol_names, 0, 0, 1)
    add(".shstrtab", 3, 0, names + b".shstrtab\0", 0, 0, 1)
    at = 64
    for header, content in zip(headers, contents):
        header[4] = at
        at += len(content)
    count = len(headers)
    numbers = (1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, count, count - 1)
    start = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", *numbers)
    return start + b"".join(contents) + b"".join(line_coverage.SECTION.pack(*h) for h in headers)


class Log(unittest.TestCase):
    def read(self, text: str) -> Dict[Tuple[str, str], line_coverage.Marks]:
        return line_coverage.read_log(textwrap.dedent(text))

    def test_marks(self) -> None:
        found = self.read(ROWS)
        self.assertEqual(found["kfi_soft", "text"].set, {0, 1, 14, 0x1000 // 4})
        self.assertEqual(found["kfi_soft", "text"].size, 8192)
        self.assertEqual(found["kfi_soft", "init"].set, set())

    def test_lost(self) -> None:
        lines = ROWS.splitlines()
        for at in (2, 3, 4):
            with self.subTest(lines[at]), self.assertRaises(CannotTell):
                self.read("\n".join(lines[:at] + lines[at + 1 :]))
        with self.assertRaises(CannotTell):
            self.read("[    9.000000] guest: status 0\n")

    def test_nothing_is_a_report(self) -> None:
        # Anything in a row.
        for row in ("deadbeef" * 16, "bad0" * 32, "00" * 64):
            line = f"kfi_coverage: kfi_soft text 1f800 {row}"
            self.assertFalse(kernel_log.is_report(line))
            self.assertTrue(line_coverage.ROW.search(line))

    def test_module_says_the_same(self) -> None:
        source = (ROOT / "qemu-test/coverage/coverage.c").read_text()
        self.assertIn(f"#define GRAIN {line_coverage.GRAIN}\n", source)
        said = re.findall(r'pr_info\("(.*?)\\n"', source)
        values = {"%s %s": "kfabric text", "%lx": "1f", "%*phN": "00ff", "%lu": "7", "%u": "3"}
        for pattern, text in zip((line_coverage.ROW, line_coverage.END), said):
            for before, after in values.items():
                text = text.replace(before, after)
            self.assertTrue(pattern.search(text), text)
        watched = set(re.findall(r'\{ "(\w+)", "(?:text|init)"', source))
        self.assertEqual(watched, set(line_coverage.MODULES))


class File(unittest.TestCase):
    def test_layout(self) -> None:
        content = elf(
            [
                (".text", 16, bytes(0x36), (6, 0x10)),
                (".init.text", 16, bytes(9), (6,)),
                (".exit.text", 32, bytes(7), (5,)),
            ]
        )
        found = [(part, s.name, s.size, s.offset, s.calls) for part, s in Elf(content).code()]
        self.assertEqual(
            found,
            [
                ("text", ".text", 0x36, 0, (6, 0x10)),
                ("init", ".init.text", 9, 0, (6,)),
                ("text", ".exit.text", 7, 0x40, (5,)),
            ],
        )
        self.assertEqual(Elf(content).sizes(), {"text": 4096, "init": 4096})

    def test_one_section(self) -> None:
        both = Elf(elf([(".text", 16, bytes(9), (6,)), (".init.text", 16, bytes(9), (6,))]))
        for _, section in both.code():
            alone = Elf(both.with_code_only_in(section.index))
            self.assertEqual([one.name for _, one in alone.code()], [section.name])

    def test_no_elf(self) -> None:
        with self.assertRaises(CannotTell):
            Elf(b"#!/bin/sh\n")


class Blocks(unittest.TestCase):
    def test_blocks(self) -> None:
        found = line_coverage.blocks_of(textwrap.dedent(CODE), CALLS)
        self.assertEqual(
            found,
            [
                Block((0x0, 0x1, 0x6, 0x9), (0x6,)),
                Block((0xB, 0x10, 0x16), (0x10,)),
                # The next one is jumped to. The padding is no block with a call.
                Block((0x18,), (0x1D,)),
                Block((0x30, 0x35), (0x35,)),
            ],
        )

    def test_places(self) -> None:
        text = """
            /a/b/rust/kfi_soft/../kfi/hold.rs:12:9
            rust/kfi_soft/counter.rs:7:1

            /linux/rust/kernel/sync.rs:9:9

            ??:0:0

            /a/rust/kfabric/registry.rs:0:0

            /a/rust/kfi_soft/bindings_generated.rs:4:4

        """
        found = list(line_coverage.read_places(textwrap.dedent(text).lstrip("\n")))
        wanted = [("rust/kfi/hold.rs", 12), ("rust/kfi_soft/counter.rs", 7)]
        self.assertEqual(found, [wanted, [], [], [], []])

    def test_programs(self) -> None:
        self.assertEqual(line_coverage.tool("a", "1"), "a")
        self.assertEqual(line_coverage.tool("a", "-19"), "a-19")
        self.assertEqual(line_coverage.tool("a", "/b/"), "/b/a")


class Uncalled(unittest.TestCase):
    """Which functions nothing calls."""

    # Of the section 1.
    FUNCTIONS = [line_coverage.Function(1, at, at + 0x10) for at in (0, 0x10, 0x20, 0x30)]

    def found(self, *references: Tuple[Tuple[int, int], Tuple[int, int]]) -> List[int]:
        given = [line_coverage.Reference(*one) for one in references]
        return [one.begin for one in line_coverage.uncalled(self.FUNCTIONS, given)]

    def test_data_calls(self) -> None:
        self.assertEqual(self.found(((2, 0), (1, 0x10))), [0, 0x20, 0x30])

    def test_who_is_called_calls(self) -> None:
        data, call = ((2, 0), (1, 0)), ((1, 4), (1, 0x20))
        self.assertEqual(self.found(data, call), [0x10, 0x30])
        # Nothing calls who does that.
        self.assertEqual(self.found(data, ((1, 0x14), (1, 0x20))), [0x10, 0x20, 0x30])

    def test_in_a_circle(self) -> None:
        data = ((2, 0), (1, 0))
        self.assertEqual(self.found(data, ((1, 0x14), (1, 0x20)), ((1, 0x24), (1, 0x10))), [0x10, 0x20, 0x30])

    def test_jump_table(self) -> None:
        # Data with where a function goes on, and nobody who calls it.
        self.assertEqual(self.found(((2, 0), (1, 0x18))), [0, 0x10, 0x20, 0x30])

    def test_named_without_relocation(self) -> None:
        text = """
            0000000000000000 <first>:
                   0:      \tcallq\t0x10 <second>
                   5:      \tleaq\t0x14(%rip), %rax         # 0x20 <third>
                   c:      \tcallq\t0x11 <second+0x1>
                  11:      \tleaq\t(%rip), %rax             # 0x18 <second+0x8>
                  18:      \tjmp\t0x30 <fourth>
                  1d:      \tnop
        """
        # The call at c and the address at 11 have some.
        found = line_coverage.read_named(textwrap.dedent(text), 1, {0xD, 0x14})
        self.assertEqual([(s[1], t[1]) for s, t in found], [(0, 0x10), (5, 0x20), (0x18, 0x30)])

    def test_file(self) -> None:
        content = elf([(".text", 16, bytes(0x36), (6,))], ((0, 0x20), (0x30, 0x36)), (1,))
        whole = Elf(content)
        functions = whole.functions()
        self.assertEqual(functions, [(1, 0, 0x20), (1, 0x30, 0x36)])
        self.assertEqual(line_coverage.uncalled(functions, whole.references()), functions[:1])

    def test_about_code(self) -> None:
        for name in (".eh_frame", "__mcount_loc", ".return_sites", ".ibt_endbr_seal", "__ex_table"):
            self.assertTrue(line_coverage.ABOUT_CODE.match(name), name)
        for name in (".data", ".rodata", ".gnu.linkonce.this_module", "__ksymtab", ".text", "__param"):
            self.assertFalse(line_coverage.ABOUT_CODE.match(name), name)


class Whole(unittest.TestCase):
    """From the log to the report, without LLVM."""

    # The lines of instructions.
    LINES = {0x0: 1, 0x6: 2, 0x9: 2, 0x10: 3, 0x18: 4, 0x30: 8, 0x35: 9}

    def run_it(self, *logs: str, functions: bool = False) -> Tuple[str, str]:
        """With a build for each."""
        def fake(command: Sequence[str], given: str = "") -> str:
            if "objdump" in command[0]:
                return textwrap.dedent(CODE)
            self.assertIn("symbolizer", command[0])
            said = ""
            for address in given.split():
                if number := self.LINES.get(int(address, 16)):
                    said += f"/x/rust/kfi/a.rs:{number}:1\n/x/rust/{self.name}/b.rs:20:1\n"
                said += "\n"
            return said

        def look_at(file: Path, name: str, *rest: object) -> None:
            self.name = name
            really(file, name, *rest)  # type: ignore

        really = line_coverage.look_at
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            arguments = ["--output", str(folder / "out")]
            # Data has the address of the first function only.
            some = (((0, 0x24), (0x30, 0x36)), (0,)) if functions else ((), ())
            content = elf([(".text", 16, bytes(0x36), CALLS)], *some)
            for number, log in enumerate(logs):
                build = folder / str(number)
                build.mkdir()
                for name in line_coverage.MODULES:
                    (build / f"{name}.ko").write_bytes(content)
                (build / "log").write_text(textwrap.dedent(log))
                arguments += ["--build", str(build), str(build / "log")]
            stack.enter_context(unittest.mock.patch.object(line_coverage, "run", fake))
            stack.enter_context(unittest.mock.patch.object(line_coverage, "look_at", look_at))
            said = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            out = folder / "out"
            self.assertEqual(line_coverage.main(arguments), 0)
            report = (out / "report.txt").read_text()
            self.assertTrue(report.startswith(said.getvalue()))
            return report, (out / "lcov.info").read_text()

    def log(self, name: str, *calls: int) -> str:
        bits = sum(1 << call // 4 for call in calls).to_bytes(8, "little").hex()
        return (
            f"kfi_coverage: {name} text 0 {bits}\n"
            f"kfi_coverage: {name} text has 4096 bytes, 1 rows\n"
        )

    def test_report(self) -> None:
        report, lcov = self.run_it(self.log("kfi_soft", 0x6, 0x1D) + self.log("kfabric", 0x6))
        words = [line.split() for line in report.splitlines()]
        self.assertIn(["rust/kfi/a.rs", "6", "3", "50", "%"], words)
        self.assertIn(["rust/kfi_soft/b.rs", "1", "1", "100", "%"], words)
        self.assertIn(["rust/kfi_shim/b.rs", "1", "0", "0", "%"], words)
        self.assertIn(["all", "9", "5", "55", "%"], words)
        self.assertIn("blocks of code: 12, reached 3", report)
        self.assertIn("\nrust/kfi/a.rs: 3, 8-9\n", report)
        self.assertIn("DA:2,1\nDA:3,0\nDA:4,1\n", lcov)

    def test_not_called(self) -> None:
        report, _ = self.run_it(self.log("kfi_soft", 0x6), functions=True)
        words = [line.split() for line in report.splitlines()]
        # Without the lines 8 and 9, those of the second function.
        self.assertIn(["rust/kfi/a.rs", "4", "2", "50", "%"], words)
        self.assertIn("blocks of code: 9, reached 1", report)
        with self.assertRaisesRegex(CannotTell, "has run, but nothing calls it"):
            self.run_it(self.log("kfi_soft", 0x6, 0x35), functions=True)

    def test_builds(self) -> None:
        report, _ = self.run_it(self.log("kfi_soft", 0x6), self.log("kfi_soft", 0x1D))
        words = [line.split() for line in report.splitlines()]
        self.assertIn(["rust/kfi/a.rs", "6", "3", "50", "%"], words)

    def test_lines_of_the_first_build(self) -> None:
        first = Lines({("rust/kfi/a.rs", 1): True, ("rust/kfi/a.rs", 2): False})
        second = {("rust/kfi/a.rs", 2): True, ("rust/kfi/a.rs", 7): True, ("rust/kfi/a.rs", 1): False}
        first.reach(Lines(second))
        self.assertEqual(first.reached, {("rust/kfi/a.rs", 1): True, ("rust/kfi/a.rs", 2): True})

    def test_no_run(self) -> None:
        with self.assertRaisesRegex(CannotTell, "of no run"):
            line_coverage.main(["--output", "/nowhere", "--build", "/nowhere"])

    def test_another_module(self) -> None:
        with self.assertRaisesRegex(CannotTell, "was 8192 bytes"):
            self.run_it(self.log("kfi_soft", 0x6).replace("4096", "8192"))

    def test_no_call_is_there(self) -> None:
        with self.assertRaisesRegex(CannotTell, "marks are no calls"):
            self.run_it(self.log("kfi_soft", 0x6, 0x28))


class Words(unittest.TestCase):
    def test_ranges(self) -> None:
        self.assertEqual(line_coverage.ranges([7, 1, 2, 3, 9, 10]), "1-3, 7, 9-10")

    def test_never_all(self) -> None:
        reached = {("rust/kfi/a.rs", number): number != 7 for number in range(1, 1001)}
        said = "\n".join(line_coverage.table(Lines(reached)))
        self.assertIn(" 99 %", said)
        self.assertNotIn("100 %", said)


if __name__ == "__main__":
    unittest.main()
