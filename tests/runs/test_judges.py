"""The judges of a run: each model opened once, what they used, what they cost."""

from __future__ import annotations

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.endpoints.config import Price
from muarl.rewards.judge import FixedJudge, ModelJudge
from muarl.runs.roles import Judges, judge_specs
from muarl.types.episode import Usage
from support.fake_openai import FakeOpenAI, text

TAU2 = (
    "domain.name=tau2-retail",
    *(f"{user}.{setting}" for user in ("user", "eval_user") for setting in ("kind=llm", "endpoint.model=u")),
)
TASK = [{"role": "user", "content": "Well?"}]


def judges(*settings: str) -> Judges:
    config = load_config("cpu", settings)
    return Judges.of(config.eval, config.domains)


def test_one_model_for_several_things_is_opened_once() -> None:
    found = judges(*TAU2, *(f"eval.{n}=endpoint:m" for n in ("judge", "user_judge", "audit_judge")))
    assert isinstance(found.score, ModelJudge) and found.score.model is found.users is found.audit
    assert found.models == (found.users,)
    others = judges(*TAU2, "eval.judge=endpoint:a", "eval.user_judge=endpoint:b")
    assert [m.endpoint.model for m in others.models] == ["a", "b"] and others.audit is None
    again = judges(*TAU2, "eval.judge=endpoint:a")
    assert again.models != others.models[:1], "another run has judges of its own"


def test_those_that_are_no_models_need_nothing() -> None:
    found = judges(*TAU2, "eval.judge=pass")
    assert found == Judges(FixedJudge(True)) and found.used == Usage() and found.unpriced == []


def test_generated_tasks_have_nothing_to_ask_the_judge_of_assertions() -> None:
    config = load_config("cpu", ["eval.judge=endpoint:m", "eval.audit_judge=endpoint:n"])
    assert judge_specs(config.eval, config.domains) == {"eval.audit_judge": "endpoint:n"}
    assert [m.endpoint.model for m in Judges.of(config.eval, config.domains).models] == ["n"]


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="judge"):
        judges("eval.judge=perhaps")


def test_prices_are_those_of_the_run() -> None:
    found = judges(*TAU2, "eval.judge=endpoint:m", "eval.user_judge=endpoint:n", "eval.prices={m: [2, 8]}")
    assert found.unpriced == ["n"]
    assert found.models[0].endpoint.config.price == Price(2, 8)


async def test_what_they_used_is_counted_together_and_survives_closing() -> None:
    with FakeOpenAI([text("a"), text("b"), text("c")]) as server:
        spec = f"endpoint:m@{server.url}"
        found = judges(*TAU2, f"eval.judge={spec}", f"eval.audit_judge={spec}")
        assert found.audit is not None
        await found.audit.complete(TASK)
        await found.audit.complete(TASK)
        await found.aclose()
        assert found.used.requests == 2
        await found.audit.complete(TASK)
        await found.aclose()
    assert found.used.requests == 3
