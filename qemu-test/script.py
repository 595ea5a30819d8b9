# SPDX-License-Identifier: GPL-2.0
"""Scripts in Python, whose names do not end in .py, as modules."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(path: Path) -> ModuleType:
    """A script as a module of its name. It is loaded anew each time."""
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    spec = importlib.util.spec_from_loader(path.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for it.
    sys.modules[path.name] = module
    loader.exec_module(module)
    return module
