#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the description of /dev/kfi for syzkaller."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import re
import shutil
import subprocess
import textwrap
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "qemu-test"))

import script

syzlang = script.load(ROOT / "scripts/syzlang")

SMALL = """
#define KFI_SHIM_IOC_MAGIC 0xF1
#define KFI_SHIM_ONE (1U << 3)
/**
 * struct kfi_shim_small - words
 * @domain: in: handle of a domain
 * @flags: in: 0 or
 *   %KFI_SHIM_ONE
 * @text: in: address of {what}
 * @cntr: out: handle of the counter
 * @reserved: must be 0
 */
struct kfi_shim_small {
	__u32 domain;
	__u32 flags;
	__u64 text;
	__u32 cntr;
	__u32 reserved;
};
#define KFI_SHIM_SMALL _IOWR(KFI_SHIM_IOC_MAGIC, 0x07, struct kfi_shim_small)
"""


def described(text: str) -> "syzlang.Description":
    header = syzlang.read(textwrap.dedent(text))
    counted, syzlang.COUNTED = syzlang.COUNTED, {}
    try:
        return syzlang.Description(header)
    finally:
        syzlang.COUNTED = counted


class Words(unittest.TestCase):
    def test_members(self) -> None:
        lines = list(described(SMALL.replace("{what}", "a text terminated with 0, or 0")).text())
        for line in (
            "\tdomain\tkfi_domain\t(in)",
            "\tflags\tflags[kfi_shim_small_flags, int32]\t(in)",
            "\ttext\tptr64[in, string, opt]\t(in)",
            "\tcntr\tkfi_cntr\t(out)",
            "\treserved\tconst[0, int32]",
            "kfi_shim_small_flags = KFI_SHIM_ONE",
        ):
            self.assertIn(line, lines)

    def test_number(self) -> None:
        lines = described(SMALL.replace("{what}", "a text terminated with 0")).constants()
        self.assertIn(f"KFI_SHIM_SMALL = {3 << 30 | 24 << 16 | 0xF107}", list(lines))

    def test_what_is_not_known(self) -> None:
        with self.assertRaises(syzlang.Unknown):
            list(described(SMALL.replace("{what}", "something else")).text())
        with self.assertRaises(syzlang.Unknown):
            described(SMALL.replace(" * @flags: in: 0 or\n *   %KFI_SHIM_ONE\n", ""))
        with self.assertRaises(syzlang.Unknown):
            described(SMALL.replace("__u64 text;", "void *text;"))


class Files(unittest.TestCase):
    def test_up_to_date(self) -> None:
        self.assertEqual(syzlang.main(["--check"]), 0)

    def test_names_are_defined_once(self) -> None:
        text = (ROOT / syzlang.OUTPUT).read_text()
        defined = re.findall(r"^resource (\w+)|^(\w+) \{|^(\w+) = ", text, re.M)
        names = [name for names in defined for name in names if name]
        self.assertEqual(sorted(names), sorted(set(names)))
        for name in re.findall(r"\b(?:kfi|fd_kfi)_\w+\b", re.sub(r"#.*|include.*", "", text)):
            if "\t" + name + "\t" not in text and f"${name}" not in text:
                self.assertIn(name, names)

    def test_numbers_are_those_of_the_compiler(self) -> None:
        compiler = next(filter(shutil.which, ("cc", "clang", "gcc")), None)
        if not compiler or not Path("/usr/include/linux/ioctl.h").exists():
            self.skipTest("no compiler, or no headers of the kernel")
        code = "#include <fcntl.h>\n#include <sys/mman.h>\n#include <kfi_shim.h>\n"
        constants = (ROOT / (syzlang.OUTPUT + ".const")).read_text()
        numbers = re.findall(r"^([A-Z]\w+) = (\d+)$", constants, re.M)
        self.assertGreater(len(numbers), 100)
        for name, value in numbers:
            code += f'_Static_assert((unsigned long)({name}) == {value}UL, "{name}");\n'
        subprocess.run(
            [compiler, "-fsyntax-only", "-I", ROOT / "include/uapi", "-x", "c", "-"],
            input=code,
            text=True,
            check=True,
        )


if __name__ == "__main__":
    unittest.main()
