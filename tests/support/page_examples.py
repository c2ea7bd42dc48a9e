"""The Python of a page of the documentation, or of a file beside the packages, as a module."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def example_of(page: Path, folder: Path) -> ModuleType:
    """All Python blocks of a page, imported from a file in a folder."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, page
    script = folder / f"{page.stem}_example.py"
    script.write_text("\n\n".join(blocks))
    return module_of(script)


def module_of(script: Path) -> Any:
    """A file of Python, such as a bench, imported anew."""
    spec = importlib.util.spec_from_file_location(f"script_{script.stem}", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module
