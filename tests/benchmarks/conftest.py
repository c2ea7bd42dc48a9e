"""Official data, installed once for all tests here that need them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl_worlds import data, install

BANK = "banking_knowledge"
Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def official_tau2(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """TAU2's data, installed in a folder of their own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("MUARL_DATA", str(tmp_path_factory.mktemp("data")))
    yield install.add("tau2", shared_data / "tau2")
    patch.undo()


@pytest.fixture(scope="module")
def installed(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """TAU2's data with banking_knowledge: from the shared data, else those installed on this machine."""
    if (shared_data / "tau2" / "domains" / BANK).is_dir():
        patch = pytest.MonkeyPatch()
        patch.setenv("MUARL_DATA", str(tmp_path_factory.mktemp("data")))
        yield install.add("tau2", shared_data / "tau2")
        patch.undo()
    elif (data.home() / "tau2" / "domains" / BANK).is_dir():
        yield data.path("tau2")
    else:
        pytest.skip(f"no data of {BANK}: neither {shared_data} nor {data.home()} holds them")


@pytest.fixture(scope="session")
def oracle(shared_data: Path) -> Lines:
    """The rows of one of the files that the original code wrote."""

    def read(name: str) -> list[dict[str, Any]]:
        with open(shared_data / "oracle" / name, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    return read
