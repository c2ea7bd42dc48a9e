"""Official data, installed once for all tests here that need them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl_worlds import data

BANK = "banking_knowledge"
Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def official_tau2(module_data: Any) -> Path:
    """TAU2's data, installed in a folder of their own."""
    return module_data("tau2") / "tau2"


@pytest.fixture(scope="module")
def installed(shared_data: Path, request: pytest.FixtureRequest) -> Path:
    """TAU2's data with banking_knowledge: from the shared data, else those installed on this machine."""
    if (shared_data / "tau2" / "domains" / BANK).is_dir():
        return request.getfixturevalue("module_data")("tau2") / "tau2"
    if (data.home() / "tau2" / "domains" / BANK).is_dir():
        return data.path("tau2")
    pytest.skip(f"no data of {BANK}: neither {shared_data} nor {data.home()} holds them")


@pytest.fixture(scope="session")
def oracle(shared_data: Path) -> Lines:
    """The rows of one of the files that the original code wrote."""

    def read(name: str) -> list[dict[str, Any]]:
        with open(shared_data / "oracle" / name, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    return read
