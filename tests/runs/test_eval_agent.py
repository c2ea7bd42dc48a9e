"""Whether an agent can be evaluated as a configuration asks for it: told without asking it anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.config.load import load_config
from muarl.domains.auditing import UNDECLARED
from muarl.environments.configure import place_of
from muarl.environments.places import Places
from muarl.runs.eval_agent import check_eval_agent
from support.fake_openai import FakeOpenAI, text


def test_a_guard_needs_rules_and_the_endpoint_is_not_asked_for_them() -> None:
    with FakeOpenAI(lambda body: text("ok")) as server:
        agent = ["eval.agent=endpoint", "eval.endpoint.model=m", f"eval.endpoint.base_url={server.url}"]
        config = load_config("cpu", [*agent, "eval.guard=true"])
        place = place_of(config, measuring=True)
        check_eval_agent(config, Places([place]))
        with pytest.raises(ConfigError, match="eval.guard: retail-generated declares no audit rules about calls"):
            check_eval_agent(config, Places([replace(place, declared_audit=UNDECLARED)]))
    assert not server.bodies


@pytest.mark.parametrize("agent", ["expert", "sampled", "idle"])
def test_agents_who_take_no_reply_back_have_no_guard(agent: str) -> None:
    config = load_config("cpu", [f"eval.agent={agent}", "eval.guard=true"])
    with pytest.raises(ConfigError, match=f"eval.guard needs agent endpoint, not {agent}"):
        check_eval_agent(config, Places([place_of(config, measuring=True)]))


def test_an_expert_is_needed_where_one_is_to_serve() -> None:
    config = load_config("cpu", ["eval.agent=expert"])
    place = place_of(config, measuring=True)
    check_eval_agent(config, Places([place]))
    with pytest.raises(ConfigError, match="has no scripted expert"):
        check_eval_agent(config, Places([replace(place, expert=None)]))


def test_of_a_checkpoint_the_room_is_looked_at() -> None:
    config = load_config("cpu")
    check_eval_agent(config, Places([place_of(config, measuring=True)]))
    small = load_config("cpu", ["model.max_context=20"])
    with pytest.raises(ConfigError, match="model.max_context is 20"):
        check_eval_agent(small, Places([place_of(small, measuring=True)]))
    missing = load_config("cpu", ["model.checkpoint=/no/model"])
    with pytest.raises(CheckpointError, match="/no/model"):
        check_eval_agent(missing, Places([place_of(missing, measuring=True)]))
