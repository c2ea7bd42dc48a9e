"""The ids of made tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.domains.generated import SeededId, parse_id
from muarl.environments.registry import built_in

MADE = [name for name in built_in() if name.endswith("-generated") or name.startswith("mcp-")]
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
NUMBERS = st.integers(0, 10**15 - 1)


@given(NAMES, st.sampled_from(["tiny", "medium"]), st.sampled_from(["train", "validation", "test"]), NUMBERS, NUMBERS)
def test_an_id_is_read_as_it_was_made(domain: str, size: str, split: str, seed: int, index: int) -> None:
    made = SeededId(domain, size, split, seed, index)
    assert parse_id(str(made)) == made
    assert parse_id(str(made), domain) == made


@given(NAMES, st.sampled_from(["train", "validation", "test"]), NUMBERS, NUMBERS)
def test_an_id_without_a_size_is_read_by_its_domain(domain: str, split: str, seed: int, index: int) -> None:
    made = SeededId(domain, "", split, seed, index)
    assert parse_id(str(made), domain) == made


def test_an_id_of_another_domain_is_read_as_without_one() -> None:
    assert parse_id("retail-tiny-train-0-1", "bank") == SeededId("retail", "tiny", "train", 0, 1)


@pytest.mark.parametrize("text", ["", "retail", "tau2-12", "retail-tiny-dev-0-1", "retail-tiny-train-0-x", "-" * 200])
def test_other_ids_are_not(text: str) -> None:
    assert parse_id(text) is None
