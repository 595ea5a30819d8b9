#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Says which lines of the modules in Rust a run has reached.

    qemu-test/line_coverage.py --output FOLDER --build MODULES LOG... [--build MODULES LOG...]

The modules, in the folder MODULES, were built with a call in each block of machine code (make coverage),
and qemu-test/coverage has printed to the kernel's log which of these calls were
made. A block of code is what runs as a whole: all of its instructions were
reached, or none. The debug information tells the line of each, and, if that is
of a function that was inlined, also the line where that was called. A line is

    reachable   if an instruction of a block that has a call belongs to it
    reached     if one of a block whose call was made does

Functions that no module can call are left out: code that is compiled into one but
that nothing in it refers to.

Several logs of the same modules are added up, and so are those of other builds, for
another kernel: the lines that can be reached are those of the first build, as others
have unit tests and checks in them. To the folder come report.txt, with the lines that
were not reached, and lcov.info, which other programs read.

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
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("kfabric", "kfi_soft", "kfi_shim")
CALLED = "__sanitizer_cov_trace_pc"

# As qemu-test/coverage/coverage.c has them.
GRAIN = 4
PAGE = 4096
ROW = re.compile(r"kfi_coverage: (\w+) (text|init) ([0-9a-f]+) ([0-9a-f]+)$")
END = re.compile(r"kfi_coverage: (\w+) (text|init) has (\d+) bytes, (\d+) rows$")

# Of an ELF file.
SHT_SYMTAB, SHT_RELA = 2, 4
SHF_ALLOC, SHF_EXECINSTR = 2, 4
R_X86_64_PC32, R_X86_64_PLT32 = 2, 4
SECTION = struct.Struct("<IIQQQQIIQQ")
SECTION_FLAGS = 8
SYMBOL = struct.Struct("<IBBHQQ")
STT_FUNC, STT_SECTION = 2, 3
RELA = struct.Struct("<QQq")

# A line of llvm-objdump: an address, an instruction, and where it jumps to.
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+(\S+)(?:\s+(?:0x)?([0-9a-f]+)(?: <.*)?)?")
FUNCTION = re.compile(r"([0-9a-f]+) <.+>:$")
# What it says of an address that an instruction names.
NAMED = re.compile(r"# 0x([0-9a-f]+) <")
# Sections that tell of code where something about it is, for the kernel, and call nothing.
ABOUT_CODE = re.compile(
    r"\.(eh_frame|orc_|smp_locks|alt|para|return_sites|retpoline_sites|call_sites|cfi_sites|ibt_|kcfi|"
    r"static_call|debug|discard|note)|__(mcount_loc|patchable_function|bug_table|ex_table|jump_table)"
)
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


class Function(NamedTuple):
    """A function in a section with code."""

    section: int
    begin: int
    end: int


class Reference(NamedTuple):
    """Something that names a place in a section with code."""

    # What names it: a section, and where in it.
    source: Tuple[int, int]
    target: Tuple[int, int]


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

    def _name(self, index: int) -> str:
        at = self.headers[index][0]
        return self._names[at : self._names.index(b"\0", at)].decode()

    def functions(self) -> List[Function]:
        """All that have a length, in order."""
        found = set()
        for header in self.headers:
            if header[1] == SHT_SYMTAB:
                offset, size = header[4:6]
                for symbol in SYMBOL.iter_unpack(self.content[offset : offset + size]):
                    if symbol[1] & 15 == STT_FUNC and symbol[5]:
                        found.add(Function(symbol[3], symbol[4], symbol[4] + symbol[5]))
        return sorted(found)

    def references(self) -> Iterator[Reference]:
        """Of relocations, from what is in the kernel's memory to places in the module."""
        for at, header in enumerate(self.headers):
            link, of_section = header[6], header[7]
            if header[1] != SHT_RELA or not self.headers[of_section][2] & SHF_ALLOC:
                continue
            if ABOUT_CODE.match(self._name(of_section)):
                continue
            symbols = self._content_of(link)
            for offset, what, addend in RELA.iter_unpack(self._content_of(at)):
                symbol = SYMBOL.unpack_from(symbols, SYMBOL.size * (what >> 32))
                target = symbol[4]
                if symbol[1] & 15 == STT_SECTION:
                    relative = what & 0xFFFFFFFF in (R_X86_64_PC32, R_X86_64_PLT32)
                    in_code = self.headers[of_section][2] & SHF_EXECINSTR
                    # An instruction counts from its end.
                    target = addend + (4 if relative and in_code else 0)
                yield Reference((of_section, offset), (symbol[3], target))

    def code(self) -> Iterator[Tuple[str, Section]]:
        """The sections with code and the part of the module that they belong to, as the kernel lays
        them out: one after the other, those of its init by themselves."""
        ends = {"text": 0, "init": 0}
        for index, header in enumerate(self.headers):
            flags, size, alignment = header[2], header[5], header[8]
            if flags & (SHF_ALLOC | SHF_EXECINSTR) != SHF_ALLOC | SHF_EXECINSTR:
                continue
            name = self._name(index)
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


def read_named(text: str, section: int, relocated: Set[int]) -> Iterator[Reference]:
    """What instructions name in their own section, for which there is no relocation."""
    sites = sorted(relocated)
    at, named = 0, 0
    wanted = False
    for line in text.splitlines():
        if not (match := INSTRUCTION.match(line)):
            continue
        following = int(match[1], 16)
        # The one before ends here: what is relocated in it says something else.
        if wanted and bisect_left(sites, at) == bisect_left(sites, following):
            yield Reference((section, at), (section, named))
        at, wanted = following, False
        if other := NAMED.search(line):
            named, wanted = int(other[1], 16), True
        elif match[3] and (JUMP.match(match[2]) or match[2].startswith("call")):
            named, wanted = int(match[3], 16), True


def uncalled(functions: Sequence[Function], references: Iterable[Reference]) -> List[Function]:
    """Those that nothing calls, nor has the address of, but what is not called either."""

    def holder(place: Tuple[int, int]) -> Optional[Function]:
        before = bisect_right(functions, (place[0], place[1], sys.maxsize)) - 1
        if before >= 0 and functions[before].section == place[0]:
            if functions[before].begin <= place[1] < functions[before].end:
                return functions[before]
        return None

    code = {one.section for one in functions}
    named_by: Dict[Function, Set[Function]] = {}
    waiting: List[Function] = []
    for source, target in references:
        function = holder(target)
        if not function:
            continue
        by = holder(source)
        if by:
            named_by.setdefault(by, set()).add(function)
        # Data that names a place within a function says where it goes on, not that it is called.
        elif source[0] in code or target[1] == function.begin:
            waiting.append(function)
    called: Set[Function] = set()
    while waiting:
        function = waiting.pop()
        if function not in called:
            called.add(function)
            waiting.extend(named_by.get(function, ()))
    return [function for function in functions if function not in called]


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

    def reach(self, other: Lines) -> None:
        """What another build has reached, of the lines that are here."""
        for line, made in other.reached.items():
            if made and line in self.reached:
                self.reached[line] = True


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
    functions = elf.functions()
    references = list(elf.references())
    sections: List[Tuple[str, Section, bytes, str]] = []
    for part, section in elf.code():
        if not section.calls:
            continue
        content = elf.with_code_only_in(section.index)
        with tempfile.NamedTemporaryFile(suffix=".ko") as alone:
            alone.write(content)
            alone.flush()
            command = [tool("llvm-objdump", llvm), "--disassemble", "--no-show-raw-insn"]
            text = run([*command, f"--section={section.name}", alone.name])
        relocated = {at for (index, at), _ in references if index == section.index}
        references += read_named(text, section.index, relocated)
        sections.append((part, section, content, text))
    left_out = uncalled(functions, references)
    calls = 0
    for part, section, content, text in sections:
        calls += len(section.calls)
        made = {call for call in section.calls if (section.offset + call) // GRAIN in marks[part]}
        marks[part] -= {(section.offset + call) // GRAIN for call in section.calls}
        out = [one for one in left_out if one.section == section.index]
        for call in made:
            if any(one.begin < call <= one.end for one in out):
                raise CannotTell(f"{name}: {section.name}+{call:#x} has run, but nothing calls it")
        blocks = [
            block
            for block in blocks_of(text, section.calls)
            if not any(one.begin < block.calls[0] <= one.end for one in out)
        ]
        wanted = [at for block in blocks for at in block.instructions]
        with tempfile.NamedTemporaryFile(suffix=".ko") as alone:
            alone.write(content)
            alone.flush()
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
    add(
        "--build",
        nargs="+",
        action="append",
        type=Path,
        required=True,
        metavar=("MODULES", "LOG"),
        help="the folder with the modules, and kernel logs of runs with them",
    )
    add("--output", type=Path, required=True, metavar="FOLDER", help="for report.txt and lcov.info")
    add("--llvm", default="1", help="its programs, as the kernel's build takes it: 1, -19 or a folder/")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    lines: Optional[Lines] = None
    for modules, *logs in options.build:
        if not logs:
            raise CannotTell(f"{modules}: of no run")
        noted = [read_log(log.read_text(errors="replace")) for log in logs]
        found = Lines()
        for name in MODULES:
            look_at(modules / f"{name}.ko", name, noted, options.llvm, found)
        if lines:
            lines.reach(found)
        else:
            lines = found
    if not lines or not lines.reached:
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
