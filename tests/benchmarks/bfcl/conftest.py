"""BFCL's data, installed once for all tests here that need them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muarl_worlds import install


@pytest.fixture(scope="module")
def official_bfcl(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Both revisions, installed in a folder of their own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("MUARL_DATA", str(tmp_path_factory.mktemp("data")))
    yield install.add("bfcl", shared_data / "bfcl")
    patch.undo()
