#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Collects the sequences of requests that make fuzz has kept.

    qemu-test/corpus.py LOG...

The test fuzz/learning writes each sequence that is worth keeping to the kernel's
log, in pieces, and begins with those of earlier runs. This puts the pieces
together and adds the sequences to the corpus, a line of JSON each. With --prune
those go that a run has found to lead nowhere where the others do not.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Set

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "qemu-test/corpus/dev_kfi.jsonl"

# As qemu-test/guest/suite/src/fuzz/watched.rs writes them.
PIECE = re.compile(r"kfi-suite: sequence ([0-9a-f]{16}) (\d+)/(\d+) (\S+)\s*$")
USELESS = re.compile(r"kfi-suite: sequence ([0-9a-f]{16}) adds nothing\s*$")


def name_of(text: str) -> str:
    """The name of a sequence (FNV-1a), as qemu-test/guest/suite/src/fuzz/text.rs has it."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{value:016x}"


class Found(NamedTuple):
    """Sequences that logs tell of."""

    # By their names.
    sequences: Dict[str, str]
    useless: Set[str]
    # Of which pieces are missing.
    lost: Set[str]


def read_logs(texts: Sequence[str]) -> Found:
    sequences: Dict[str, str] = {}
    useless: Set[str] = set()
    begun: Set[str] = set()
    for text in texts:
        pieces: Dict[str, List[str]] = {}
        for line in text.splitlines():
            if match := PIECE.search(line):
                name, number, count = match[1], int(match[2]), int(match[3])
                begun.add(name)
                if number == 1:
                    pieces[name] = []
                if name in pieces:
                    pieces[name].append(match[4])
                whole = "".join(pieces.get(name, []))
                # A piece that was lost or is in the wrong place makes another name.
                if number == count and name_of(whole) == name:
                    sequences[name] = whole
            elif match := USELESS.search(line):
                useless.add(match[1])
    return Found(sequences, useless, begun - set(sequences))


class Corpus:
    """A file: remarks, and a sequence on each line."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        self.remarks = [line for line in lines if line.startswith("#")]
        kept = (line for line in lines if line and not line.startswith("#"))
        self.sequences = {name_of(line): line for line in kept}

    def text(self) -> str:
        # The short ones first, so that files that say the same are the same.
        kept = sorted(self.sequences.values(), key=lambda line: (len(line), line))
        return "".join(f"{line}\n" for line in [*self.remarks, *kept])


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Collect the sequences of requests that make fuzz has kept.",
    )
    add = parser.add_argument
    add("logs", nargs="+", type=Path, metavar="LOG", help="kernel log of a run")
    add("--corpus", type=Path, default=CORPUS, metavar="FILE", help="where they go: %(default)s")
    add("--prune", action="store_true", help="leave out what the run has found to add nothing")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    found = read_logs([log.read_text(errors="replace") for log in options.logs])
    was = options.corpus.read_text() if options.corpus.exists() else ""
    corpus = Corpus(was)
    before = set(corpus.sequences)
    corpus.sequences.update(found.sequences)
    if options.prune:
        for name in found.useless:
            corpus.sequences.pop(name, None)
    after = set(corpus.sequences)
    text = corpus.text()
    if text != was:
        options.corpus.parent.mkdir(parents=True, exist_ok=True)
        options.corpus.write_text(text)
    useless = found.useless & after
    print(
        f"corpus: {len(after)} sequences, {len(text)} bytes: {len(after - before)} new, "
        f"{len(before - after)} gone, {len(useless)} of no use"
    )
    if found.lost:
        print(f"corpus: {len(found.lost)} sequences were cut off in the log", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        print(f"corpus: {error}", file=sys.stderr)
        sys.exit(2)
