"""BFCL's data, installed once for all tests here that need them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def official_bfcl(module_data: Any) -> Path:
    """Both revisions, installed in a folder of their own."""
    return module_data("bfcl") / "bfcl"
