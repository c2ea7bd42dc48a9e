"""The Python of a page of the documentation, as a module."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType


def example_of(page: Path, folder: Path) -> ModuleType:
    """All Python blocks of a page, imported from a file in a folder."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, page
    script = folder / f"{page.stem}_example.py"
    script.write_text("\n\n".join(blocks))
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
