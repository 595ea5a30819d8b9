#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Says which lines of the modules in Rust a run has reached.

    qemu-test/line_coverage.py --modules FOLDER --output FOLDER LOG...

The modules were built with a call in each block of machine code (make coverage),
and qemu-test/coverage has printed to the kernel's log which of these calls were
made. A block of code is what runs as a whole: all of its instructions were
reached, or none. The debug information tells the line of each, and, if that is
of a function that was inlined, also the line where that was called. A line is

    reachable   if an instruction of a block that has a call belongs to it
    reached     if one of a block whose call was made does

Several logs of the same modules are added up. To the folder come report.txt, with
the lines that were not reached, and lcov.info, which other programs read.

The exit status is 2 if there is nothing to tell.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import re
import struct
import subprocess
import tempfile
from bisect import bisect_right
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, NamedTuple, Sequence, Set, Tuple

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("kfabric", "kfi_soft", "kfi_shim")
CALLED = "__sanitizer_cov_trace_pc"

# As qemu-test/coverage/coverage.c has them.
GRAIN = 4
PAGE = 4096
ROW = re.compile(r"kfi_coverage: (\w+) (text|init) ([0-9a-f]+) ([0-9a-f]+)$")
END = re.compile(r"kfi_coverage: (\w+) (text|init) has (\d+) bytes, (\d+) rows$")

# Of an ELF file.
SHT_RELA = 4
SHF_ALLOC, SHF_EXECINSTR = 2, 4
R_X86_64_PC32, R_X86_64_PLT32 = 2, 4
SECTION = struct.Struct("<IIQQQQIIQQ")
SECTION_FLAGS = 8
SYMBOL = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")

# A line of llvm-objdump: an address, an instruction, and where it jumps to.
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+(\S+)(?:\s+(?:0x)?([0-9a-f]+)(?: <.*)?)?")
FUNCTION = re.compile(r"([0-9a-f]+) <.+>:$")
# Instructions that end a block of machine code.
JUMP = re.compile(r"(j\w+|loop\w*|ret\w*|ud2|int3|hlt)$")
# A line of llvm-symbolizer.
PLACE = re.compile(r"(.+):(\d+):\d+$")
# A file of this project, wherever it was built. Bindings are made.
OURS = re.compile(r"(?:^|/)(rust/(?:kfabric|kfi_soft|kfi_shim|kfi)/(?!.*bindings_generated).+\.rs)$")

Line = Tuple[str, int]


class CannotTell(Exception):
    """The logs or the modules are not what they should be."""


# --- the log ------------------------------------------------------------------


@dataclass
class Marks:
    """The marks of one part of a module: where calls returned to, in units of GRAIN."""

    size: int = 0
    set: Set[int] = field(default_factory=set)


def read_log(text: str) -> Dict[Tuple[str, str], Marks]:
    """Of each part of each module."""
    found: Dict[Tuple[str, str], Marks] = {}
    rows: Dict[Tuple[str, str], int] = {}
    ended = set()
    for line in text.splitlines():
        if match := ROW.search(line):
            part = (match[1], match[2])
            marks = found.setdefault(part, Marks())
            rows[part] = rows.get(part, 0) + 1
            first = int(match[3], 16) // GRAIN
            for at, byte in enumerate(bytes.fromhex(match[4])):
                marks.set.update(first + 8 * at + bit for bit in range(8) if byte >> bit & 1)
        elif match := END.search(line):
            part = (match[1], match[2])
            found.setdefault(part, Marks()).size = int(match[3])
            if int(match[4]) != rows.get(part, 0):
                raise CannotTell(f"{match[1]}: lines of the log were lost")
            ended.add(part)
    if not ended or set(found) - ended:
        raise CannotTell("a log has no coverage: did the run get to its end?")
    return found


# --- a module -----------------------------------------------------------------


class Section(NamedTuple):
    """A section with code."""

    index: int
    name: str
    size: int
    # Where it is in the memory that the kernel loads it into.
    offset: int
    # Where calls of CALLED return to.
    calls: Tuple[int, ...]


class Elf:
    """The parts of a module's file that are needed."""

    def __init__(self, content: bytes) -> None:
        if content[:6] != b"\x7fELF\x02\x01":
            raise CannotTell("no ELF file of 64 bits")
        self.content = content
        self.headers_at = struct.unpack_from("<Q", content, 0x28)[0]
        count, names = struct.unpack_from("<HH", content, 0x3C)
        self.headers = [
            SECTION.unpack_from(content, self.headers_at + SECTION.size * at) for at in range(count)
        ]
        self._names = self._content_of(names)

    def _content_of(self, index: int) -> bytes:
        offset, size = self.headers[index][4:6]
        return self.content[offset : offset + size]

    def _calls(self, index: int) -> List[int]:
        """The relocations of a section that are calls of CALLED."""
        calls: List[int] = []
        for at, header in enumerate(self.headers):
            kind, link, of_section = header[1], header[6], header[7]
            if kind != SHT_RELA or of_section != index:
                continue
            symbols, names = self._content_of(link), self._content_of(self.headers[link][6])
            for offset, what, _ in RELA.iter_unpack(self._content_of(at)):
                if what & 0xFFFFFFFF in (R_X86_64_PC32, R_X86_64_PLT32):
                    name = SYMBOL.unpack_from(symbols, SYMBOL.size * (what >> 32))[0]
                    if names[name : names.index(b"\0", name)] == CALLED.encode():
                        calls.append(offset + 4)
        return sorted(calls)

    def code(self) -> Iterator[Tuple[str, Section]]:
        """The sections with code and the part of the module that they belong to, as the kernel lays
        them out: one after the other, those of its init by themselves."""
        ends = {"text": 0, "init": 0}
        for index, header in enumerate(self.headers):
            flags, size, alignment = header[2], header[5], header[8]
            if flags & (SHF_ALLOC | SHF_EXECINSTR) != SHF_ALLOC | SHF_EXECINSTR:
                continue
            name = self._names[header[0] : self._names.index(b"\0", header[0])].decode()
            part = "init" if name.startswith(".init") else "text"
            offset = -(-ends[part] // (alignment or 1)) * (alignment or 1)
            ends[part] = offset + size
            yield part, Section(index, name, size, offset, tuple(self._calls(index)))

    def sizes(self) -> Dict[str, int]:
        """Of both parts, as the kernel allocates them."""
        sizes = {"text": 0, "init": 0}
        for part, section in self.code():
            sizes[part] = -(-(section.offset + section.size) // PAGE) * PAGE
        return sizes

    def with_code_only_in(self, index: int) -> bytes:
        """The same, with one section of code: all begin at 0, and whoever looks for an address takes
        the first."""
        content = bytearray(self.content)
        for at, header in enumerate(self.headers):
            if at != index:
                where = self.headers_at + SECTION.size * at + SECTION_FLAGS
                struct.pack_into("<Q", content, where, header[2] & ~SHF_EXECINSTR)
        return bytes(content)


# --- blocks -------------------------------------------------------------------


def read_instructions(text: str) -> Tuple[List[int], Set[int]]:
    """The addresses of all instructions, and those that blocks begin at."""
    addresses: List[int] = []
    begins: Set[int] = set()
    jumped = True
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            begins.add(int(match[1], 16))
        elif match := INSTRUCTION.match(line):
            at = int(match[1], 16)
            addresses.append(at)
            if jumped:
                begins.add(at)
            jumped = bool(JUMP.match(match[2]))
            if jumped and match[3]:
                begins.add(int(match[3], 16))
    return addresses, begins


class Block(NamedTuple):
    """Code that runs as a whole, and has calls."""

    instructions: Tuple[int, ...]
    # Where they return to.
    calls: Tuple[int, ...]


def blocks_of(text: str, calls: Iterable[int]) -> List[Block]:
    """Of a section."""
    addresses, begins = read_instructions(text)
    edges = sorted(begins)
    instructions: Dict[int, List[int]] = {}
    for at in addresses:
        instructions.setdefault(bisect_right(edges, at), []).append(at)
    in_block: Dict[int, List[int]] = {}
    for call in calls:
        # The address is that of what follows, which may be another block.
        in_block.setdefault(bisect_right(edges, call - 1), []).append(call)
    return [
        Block(tuple(instructions.get(number, ())), tuple(in_block[number]))
        for number in sorted(in_block)
    ]


def read_places(text: str) -> Iterator[List[Line]]:
    """Of what llvm-symbolizer prints: for each address the line and those that it was inlined at."""
    lines: List[Line] = []
    for said in text.splitlines():
        if not said:
            yield lines
            lines = []
        elif match := PLACE.match(said):
            ours = OURS.search(normpath(match[1]))
            if ours and int(match[2]):
                lines.append((ours[1], int(match[2])))


def run(command: Sequence[str], given: str = "") -> str:
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or error
        raise CannotTell(f"{command[0]}: {said}") from error
    return done.stdout


def tool(name: str, llvm: str) -> str:
    """A program of LLVM, which is said as to the kernel's build: 1, -19 or a folder/."""
    if llvm.endswith("/"):
        return f"{llvm}{name}"
    return name if llvm == "1" else f"{name}{llvm}"


def places(file: Path, addresses: Sequence[int], llvm: str) -> Dict[int, List[Line]]:
    """The lines of addresses."""
    command = [tool("llvm-symbolizer", llvm), f"--obj={file}", "--functions=none", "--inlines"]
    command += ["--output-style=LLVM", "--no-demangle"]
    given = "".join(f"{at:#x}\n" for at in addresses)
    found = list(read_places(run(command, given)))
    if len(found) != len(addresses):
        raise CannotTell(f"llvm-symbolizer: {len(found)} answers to {len(addresses)} questions")
    return dict(zip(addresses, found))


@dataclass
class Lines:
    """Those that can be reached, and whether they were."""

    reached: Dict[Line, bool] = field(default_factory=dict)
    blocks: int = 0
    blocks_reached: int = 0

    def add(self, blocks: Sequence[Block], marks: Set[int], at: Dict[int, List[Line]]) -> None:
        """Of a section. Marks are those of its calls."""
        for block in blocks:
            made = any(call in marks for call in block.calls)
            self.blocks += 1
            self.blocks_reached += made
            for instruction in block.instructions:
                for line in at[instruction]:
                    self.reached[line] = self.reached.get(line, False) or made


Noted = Dict[Tuple[str, str], Marks]


def look_at(file: Path, name: str, noted: Sequence[Noted], llvm: str, lines: Lines) -> None:
    """At a module."""
    elf = Elf(file.read_bytes())
    sizes = elf.sizes()
    marks: Dict[str, Set[int]] = {"text": set(), "init": set()}
    for one in noted:
        for part in marks:
            of_part = one.get((name, part), Marks())
            if of_part.size not in (0, sizes[part]):
                raise CannotTell(
                    f"{name} was {of_part.size} bytes of {part}, but {file} has {sizes[part]}"
                )
            marks[part] |= of_part.set
    calls = 0
    for part, section in elf.code():
        if not section.calls:
            continue
        calls += len(section.calls)
        made = {call for call in section.calls if (section.offset + call) // GRAIN in marks[part]}
        marks[part] -= {(section.offset + call) // GRAIN for call in section.calls}
        with tempfile.NamedTemporaryFile(suffix=".ko") as alone:
            alone.write(elf.with_code_only_in(section.index))
            alone.flush()
            command = [tool("llvm-objdump", llvm), "--disassemble", "--no-show-raw-insn"]
            text = run([*command, f"--section={section.name}", alone.name])
            blocks = blocks_of(text, section.calls)
            wanted = [at for block in blocks for at in block.instructions]
            lines.add(blocks, made, places(Path(alone.name), wanted, llvm))
    if not calls:
        raise CannotTell(f"{file} was not built with KFI_COVERAGE=1")
    if any(marks.values()):
        # A call is at each place that was noted, or else the places are not understood.
        left = sum(len(some) for some in marks.values())
        raise CannotTell(f"{name}: {left} marks are no calls' of {file}")


# --- what comes out -----------------------------------------------------------


def ranges(numbers: Iterable[int]) -> str:
    """1-3, 7"""
    found: List[List[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def by_file(reached: Dict[Line, bool]) -> Dict[str, Dict[int, bool]]:
    files: Dict[str, Dict[int, bool]] = {}
    for (path, number), was in sorted(reached.items()):
        files.setdefault(path, {})[number] = was
    return files


def table(lines: Lines) -> Iterator[str]:
    """By file, with sums."""
    files = by_file(lines.reached)
    width = max(len(path) for path in files)
    yield f"{'file':<{width}}  lines reached"

    def row(name: str, count: int, were: int) -> str:
        # Never 100 if one is missing.
        return f"{name:<{width}} {count:>6} {were:>7} {100 * were // count:>3} %"

    for path, numbers in files.items():
        yield row(path, len(numbers), sum(numbers.values()))
    yield row("all", len(lines.reached), sum(lines.reached.values()))
    yield f"blocks of code: {lines.blocks}, reached {lines.blocks_reached}"


def missing(lines: Lines, root: Path) -> Iterator[str]:
    """The lines that were not reached, with what stands there."""
    for path, numbers in by_file(lines.reached).items():
        left = [number for number, was in numbers.items() if not was]
        if not left:
            continue
        yield f"\n{path}: {ranges(left)}"
        source = root / path
        text = source.read_text().splitlines() if source.is_file() else []
        for number in left:
            if number <= len(text):
                yield f"{number:>6}  {text[number - 1]}"


def lcov(lines: Lines, root: Path) -> Iterator[str]:
    for path, numbers in by_file(lines.reached).items():
        yield f"SF:{root / path}"
        for number, was in numbers.items():
            yield f"DA:{number},{int(was)}"
        yield "end_of_record"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Say which lines of the modules in Rust a run has reached.",
    )
    add = parser.add_argument
    add("logs", nargs="+", type=Path, metavar="LOG", help="kernel log of a run")
    add("--modules", type=Path, required=True, metavar="FOLDER", help="those that it ran")
    add("--output", type=Path, required=True, metavar="FOLDER", help="for report.txt and lcov.info")
    add("--llvm", default="1", help="its programs, as the kernel's build takes it: 1, -19 or a folder/")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    noted = [read_log(log.read_text(errors="replace")) for log in options.logs]
    lines = Lines()
    for name in MODULES:
        look_at(options.modules / f"{name}.ko", name, noted, options.llvm, lines)
    if not lines.reached:
        raise CannotTell("the modules have no lines: they were built without debug information")
    said = list(table(lines))
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "report.txt").write_text("\n".join([*said, *missing(lines, ROOT)]) + "\n")
    (options.output / "lcov.info").write_text("\n".join(lcov(lines, ROOT)) + "\n")
    print("\n".join(said))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (CannotTell, OSError) as error:
        print(f"line-coverage: {error}", file=sys.stderr)
        sys.exit(2)
