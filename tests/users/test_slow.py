"""Slow users: the same words, later; the same waits for the same seed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muarl.backends.users import make_users
from muarl.config.load import load_config
from muarl.config.section import UserConfig
from muarl.environments.configure import places_of
from muarl.types.chat import Message
from muarl.users.scripted import ScriptedUserFactory
from muarl.users.slow import SlowUserFactory
from support.toy_shop import Lines, toy_task


class Makes:
    """Makes users that say two lines, and notes that it is closed."""

    name = "lines"
    closed = 0

    def __init__(self) -> None:
        self.made: list[Any] = []

    async def aclose(self) -> None:
        self.closed += 1

    def __call__(self, task: Any, *, seed: int) -> Lines:
        self.made.append(Lines("a", "b"))
        return self.made[-1]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was slept, instead of sleeping."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return slept


async def test_they_wait_before_each_reply_by_their_seed(waits: list[float]) -> None:
    users = SlowUserFactory(Makes(), 0.5, 3.0)
    assert users.name == "lines"
    said = []
    for seed in (1, 1, 2):
        user = users(toy_task(), seed=seed)
        said.append([(await user.reply([Message("assistant", "Hi")])).message.content for _ in range(3)])
    assert said == [["a", "b", "###STOP###"]] * 3
    assert all(0.5 <= w <= 3.0 for w in waits)
    assert waits[:3] == waits[3:6] != waits[6:]
    assert len(set(waits[:3])) == 3


def test_what_a_user_holds_is_freed() -> None:
    closed = []

    class Holding(Lines):
        """A user with something to close."""

        def close(self) -> None:
            closed.append(1)

    class MakesHolding(Makes):
        """Makes them."""

        def __call__(self, task: Any, *, seed: int) -> Lines:
            return Holding("a")

    SlowUserFactory(MakesHolding(), 0, 1)(toy_task(), seed=0).close()  # type: ignore[attr-defined]
    SlowUserFactory(Makes(), 0, 1)(toy_task(), seed=0).close()  # type: ignore[attr-defined]
    assert closed == [1]


def test_any_kind_of_user_may_be_slow() -> None:
    (place,) = shop = places_of(load_config("quickstart"))
    made = make_users(UserConfig(kind="agenda", delay=(0.5, 3.0)), shop).at(place)
    assert isinstance(made, SlowUserFactory)
    assert made.name == make_users(UserConfig(kind="agenda"), shop).name
    with pytest.raises(ValueError, match="low, high"):
        UserConfig(delay=(3.0, 0.5))


async def test_closing_them_closes_the_users_that_they_slow_down() -> None:
    inner = Makes()
    await SlowUserFactory(inner, 0.0, 0.0).aclose()
    assert inner.closed == 1
    await SlowUserFactory(ScriptedUserFactory(), 0.0, 0.0).aclose()
