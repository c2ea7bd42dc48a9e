"""Official data, installed once for all tests here that need them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.benchmarks import install

Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def official_tau2(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """TAU2's data, installed in a folder of their own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("MUARL_DATA", str(tmp_path_factory.mktemp("data")))
    yield install.add("tau2", shared_data / "tau2")
    patch.undo()


@pytest.fixture(scope="session")
def oracle(shared_data: Path) -> Lines:
    """The rows of one of the files that the original code wrote."""

    def read(name: str) -> list[dict[str, Any]]:
        with open(shared_data / "oracle" / name, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    return read
