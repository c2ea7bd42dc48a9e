"""Parameters of tests, some of which are for the slow tests alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def first_of(values: Sequence[Any]) -> list[Any]:
    """All of them as parameters of a test: the first in every run of the tests, the others in the slow ones."""
    return [values[0], *(pytest.param(value, marks=pytest.mark.slow) for value in values[1:])]
