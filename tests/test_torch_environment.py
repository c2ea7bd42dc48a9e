"""What is set for PyTorch before it is imported."""

from __future__ import annotations

import os

import pytest

from muarl.basics.torch_environment import DEFAULTS, set_torch_environment


def test_what_a_person_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DEFAULTS:
        monkeypatch.setenv(name, "")  # so that it is put back as it was
        monkeypatch.delenv(name)
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    set_torch_environment()
    assert {name: os.environ[name] for name in DEFAULTS} == DEFAULTS | {"LRU_CACHE_CAPACITY": "7"}
