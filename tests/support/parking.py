"""The environment of docs/domains.md as a file, as a reader of that page has it."""

from __future__ import annotations

import re
from pathlib import Path


def write_parking(page: Path, folder: Path, name: str = "parking.py") -> Path:
    """Write the page's first block of code to a file of that name; returns its path."""
    first = re.search(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert first is not None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(first[1])
    return path
