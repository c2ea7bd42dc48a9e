"""The examples on the pages of docs/integrations run, where their packages are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = {"trl.md": ("trl", "datasets"), "openenv.md": ("openenv",)}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run(repository: Path, tmp_path: Path, page: str) -> None:
    for package in PAGES[page]:
        pytest.importorskip(package, reason=f"{package} is not installed")
    text = (repository / "docs" / "integrations" / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    for number, block in enumerate(blocks):
        script = tmp_path / f"example-{number}.py"
        script.write_text(block)
        run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
