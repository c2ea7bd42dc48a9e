"""That simulated users can be made is found before anything is played, and costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from muarl.backends import users as backend
from muarl.basics.errors import CheckpointError, ConfigError, MuarlError
from muarl.config.load import load_config
from muarl.domains.tasks import Task
from muarl.environments.configure import place_of, places_of
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.runs.roles import Cast, UserRole
from muarl.runs.users import check_users
from support.fake_openai import FakeOpenAI, text
from support.toy_shop import Lines

BOTH: dict[UserRole, str] = {"user": "train", "eval_user": "validation"}
NO_TRAITS = "domain.name=bfcl-generated"
"""Users by rules who are no service's."""


def check(*overrides: str) -> None:
    config = load_config("cpu", list(overrides))
    check_users(Cast.of(config), places_of(config), BOTH)


@pytest.mark.parametrize("role", ["user", "eval_user"])
@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        (["kind=sampled", "checkpoint=/no/user"], CheckpointError, ["ROLE.checkpoint: /no/user: no such checkpoint"]),
        (["strata=[bogus]"], ConfigError, ["ROLE.strata: there is no stratum 'bogus'"]),
        (["strata={patience: {bogus: 1}}"], ConfigError, ["ROLE.strata.patience: there is no value 'bogus'"]),
        (["strata=[patience]", "traits={impatience: 0.5}"], ConfigError, ["ROLE.strata: patience and ROLE.traits.imp"]),
        (["traits=hard", NO_TRAITS], ConfigError, ["ROLE.traits: ", "Set ROLE.traits=easy", "(ROLE.kind=llm)"]),
        (["strata=[patience]", NO_TRAITS], ConfigError, ["ROLE.strata: ", "Leave ROLE.strata out"]),
        (
            ["kind=sampled", "checkpoint=base", "domain.name=telecom-generated"],
            ConfigError,
            ["users of telecom-generated have tools of their own", "ROLE.kind=sampled"],
        ),
    ],
)
def test_what_users_cannot_have_is_told_with_their_own_section(
    role: str, settings: list[str], error: type[MuarlError], words: list[str]
) -> None:
    given = [setting if setting.startswith("domain.") else f"{role}.{setting}" for setting in settings]
    with pytest.raises(error) as told:
        check(*given)
    for word in words:
        assert word.replace("ROLE", role) in str(told.value)


def test_no_model_is_loaded_and_no_endpoint_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "sampled_users", lambda *_, **__: pytest.fail("a model was loaded"))
    check("user.kind=sampled", "user.checkpoint=base")
    with FakeOpenAI(lambda body: text("ok")) as server:
        asked = ["eval_user.kind=llm", "eval_user.endpoint.model=m", f"eval_user.endpoint.base_url={server.url}"]
        check(*asked, "eval_user.traits=hard", "eval_user.guard.active=true")
        with pytest.raises(ConfigError, match=r"^eval_user.strata: there is no stratum 'bogus'"):
            check(*asked, "eval_user.strata=[bogus]")
    assert not server.bodies


def test_a_split_that_there_is_not_is_told() -> None:
    config = load_config("cpu")
    with pytest.raises(ConfigError, match="no tasks for the split 'bogus'; it has train, validation, test"):
        check_users(Cast.of(config), places_of(config), {"eval_user": "bogus"})


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnUsersPlace(Place):
    """A place with users of its own, as benchmarks have them."""

    made: Any

    def own_users(self, model: Any) -> Any:
        """The ones that were given."""
        return self.made


def with_own_users(made: Any, *overrides: str) -> None:
    config = load_config("cpu", list(overrides))
    plain = place_of(config)
    places = Places([OwnUsersPlace(name="own", domain=plain.domain, draw=plain.draw, rules=plain.rules, made=made)])
    check_users(Cast.of(config), places, {"eval_user": "test"})


def test_users_of_a_place_s_own_are_made_whatever_the_section_says() -> None:
    freed: list[str] = []

    class Holding(Lines):
        def close(self) -> None:
            freed.append("user")

    class Makers:
        name = "own"

        def __call__(self, task: Task, *, seed: int) -> Any:
            return Holding([])

        async def aclose(self) -> None:
            freed.append("makers")

    with_own_users(Makers(), "eval_user.kind=sampled", "eval_user.checkpoint=/no/user")
    assert freed == ["user", "makers"]
    with pytest.raises(ConfigError, match=r"^eval_user.traits: own has users of its own, who have no traits"):
        with_own_users(Makers(), "eval_user.traits=hard")


def test_what_is_told_without_a_setting_names_the_section() -> None:
    class Refusing:
        name = "own"

        def __call__(self, task: Task, *, seed: int) -> Any:
            raise ConfigError("a model must play these")

    with pytest.raises(ConfigError, match=r"^eval_user: a model must play these$"):
        with_own_users(Refusing())
