"""Tasks as their authors write them."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task


@pytest.mark.parametrize(
    ("basis", "said"),
    [
        (("DBB",), r"task t: reward_basis: there is no component 'DBB'; known: ACTION, .*; did you mean 'DB'\?"),
        (("DB", "communicate"), "there is no component 'communicate'"),
        ("DB", r"must be a tuple of names, such as \('DB',\)"),
    ],
)
def test_a_reward_basis_that_means_nothing_is_refused(basis: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Task("t", "x", "", (), reward_basis=basis)
    assert Task("t", "x", "", (), reward_basis=("END_TO_END",), benchmark=True)
