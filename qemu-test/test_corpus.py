#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what collects sequences."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parent))

import corpus
from corpus import Corpus

ONE = '[{"name":"munmap","action":"Unmap"}]'
TWO = '[{"name":"munmap","action":"Unmap"},{"name":"munmap","action":"Unmap"}]'


def logged(text: str, size: int = 20) -> List[str]:
    """As the suite writes it."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    name = corpus.name_of(text)
    return [
        f"[   12.345678] kfi-suite: sequence {name} {number}/{len(pieces)} {piece}"
        for number, piece in enumerate(pieces, 1)
    ]


class Logs(unittest.TestCase):
    def test_names(self) -> None:
        # As qemu-test/guest/suite/src/fuzz/text.rs has them.
        self.assertEqual(corpus.name_of(""), "cbf29ce484222325")
        self.assertEqual(corpus.name_of("foobar"), "85944171f73967e8")

    def test_pieces(self) -> None:
        # With other lines between them.
        lines = [line for both in zip(logged(TWO), ["usb 1-1: new"] * 9) for line in both]
        run = f"kfi-suite: fuzz sequence {corpus.name_of(ONE)}"
        found = corpus.read_logs(["\r\n".join([run, *logged(ONE), *lines])])
        self.assertEqual(found.sequences, {corpus.name_of(text): text for text in (ONE, TWO)})
        self.assertEqual((found.useless, found.lost), (set(), set()))

    def test_lost(self) -> None:
        lines = logged(TWO)
        for left in range(len(lines)):
            log = "\n".join(lines[:left] + lines[left + 1 :])
            found = corpus.read_logs([log])
            self.assertEqual((found.sequences, found.lost), ({}, {corpus.name_of(TWO)}))
            # Another log has all of it.
            found = corpus.read_logs([log, "\n".join(lines)])
            self.assertEqual((len(found.sequences), found.lost), (1, set()))


class Files(unittest.TestCase):
    def test_text(self) -> None:
        text = f"# words\n# more\n{ONE}\n{TWO}\n"
        self.assertEqual(Corpus(text).text(), text)
        self.assertEqual(Corpus(f"# words\n{TWO}\n\n# more\n{ONE}\n{TWO}").text(), text)

    def test_committed(self) -> None:
        text = corpus.CORPUS.read_text()
        self.assertEqual(Corpus(text).text(), text)
        self.assertLess(len(text), 1 << 20, "more than anybody wants to look at: prune it")

    def test_whole(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log, kept = Path(folder) / "log", Path(folder) / "corpus"
            kept.write_text(f"# words\n{TWO}\n")

            def run(*options: str) -> str:
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    corpus.main([*options, f"--corpus={kept}", str(log)])
                return out.getvalue()

            useless = f"kfi-suite: sequence {corpus.name_of(TWO)} adds nothing"
            log.write_text("\n".join([*logged(ONE), useless]))
            self.assertIn(": 1 new, 0 gone, 1 of no use", run())
            self.assertEqual(kept.read_text(), f"# words\n{ONE}\n{TWO}\n")
            self.assertIn(": 0 new, 1 gone, 0 of no use", run("--prune"))
            self.assertEqual(kept.read_text(), f"# words\n{ONE}\n")


if __name__ == "__main__":
    unittest.main()
