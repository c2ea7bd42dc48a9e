"""Reinforcement learning of a user model: what is refused, what a step leaves, and that a resumed run is the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.config.load import load_config
from muarl.learning.checkpoint_folders import list_checkpoints
from muarl.learning.checkpoints import load_policy
from muarl.learning.learner import TorchLearner
from muarl.observe.rundir import RunDirectory
from muarl.recipes import user_rl
from muarl.recipes.user_hardness import counts, difference, report, shares, verdict
from muarl.rollouts.rollout import Groups
from muarl.runs.user_checks import check_user_rl
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl.users.constraints import VOID
from support.killing import at_call, ctrl_c

SMALL = [
    "threads=1", "model.max_context=400", "rollout.max_turns=5", "rollout.tokens_per_turn=24", "eval.tasks=4",
    "rl.tasks_per_step=2", "rl.group_size=4", "rl.steps=3", "rl.warmup=0", "rl.checkpoint_every=0",
    "rl.save_episodes=all", "user.guard.rules=[]", "user.tries=2", "user_rl.agent_context=768",
    "user_rl.objective=likely",
]  # fmt: skip


@pytest.fixture
def settings(base_run: Path, tmp_path: Path) -> Callable[..., Any]:
    """``settings("rl.steps=1")``: the preset's configuration made small; a model that has read both sides of
    conversations is the user, and the agent, too."""

    def build(*more: str) -> Any:
        own = [f"model.checkpoint={base_run}", f"user_rl.agent={base_run}", f"runs_dir={tmp_path / 'runs'}"]
        return load_config("user-hard", [*SMALL, *own, *more])

    return build


class Lenient:
    """A check of goals that half the users of a model pass which has hardly learned to speak: it looks at the first
    message alone."""

    def __init__(self) -> None:
        self.spoken = False

    def hears(self, text: str) -> None: ...

    def said(self, text: str) -> None:
        self.spoken = True

    def problem(self, text: str) -> str | None:
        return "is odd" if not self.spoken and sum(map(ord, text)) % 2 else None


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    from muarl.recipes import user_hardness
    from muarl.users import constraints

    monkeypatch.setattr(constraints, "_MARKUP", re.compile(r"(?!)"))  # such a model writes little else
    for module in (user_rl, user_hardness):
        monkeypatch.setattr(module, "goal_checks", lambda place: lambda task: Lenient())


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("model.checkpoint=base", r"model\.checkpoint is base.*sft-user"),
        ("user_rl.agent=null", r"user_rl\.agent: say whom"),
        ("rl.asynchrony=bounded", r"rl\.asynchrony has no meaning"),
        ("rl.practice.repeat=0.5", r"rl\.practice has no meaning"),
        ("rl.branch.stems=2", r"rl\.branch\.stems"),
        ("rl.credit=state", r"rl\.credit"),
        ("rl.layers.policy=0.5", r"rl\.layers"),
        ("rl.shaping.format=0.5", r"rl\.shaping"),
        ("rl.reward_basis=database", r"rl\.reward_basis"),
        ("rl.dynamic_sampling=true", r"rl\.dynamic_sampling"),
        ("rl.top_p=0.9", r"rl\.top_p"),
        ("rl.eval_every=5", r"rl\.eval_every"),
        ("rl.rollouts_only=true", r"rl\.rollouts_only"),
        ("rl.stop_on=kl-runs-away", r"rl\.stop_on"),
        ("user.kind=scripted", r"user\.kind"),
        ("user.checkpoint=runs/x", r"user\.kind and user\.checkpoint"),
        ("user.traits=hard", r"user\.traits"),
        ("user.guard.active=true", r"user\.guard\.active"),
        ("user.delay=[0,1]", r"user\.delay"),
        ("eval.trials=2", r"eval\.trials"),
        ("domain.red_team_share=0.5", r"red_team_share"),
        ("engine.kind=vllm", r"engine has no meaning"),
        ("learner.kind=fsdp", r"learner\.kind"),
        ("learner.pack_tokens=300", r"learner\.pack_tokens is 300.*400"),
    ],
)
def test_a_setting_that_would_be_passed_over_is_refused(settings: Callable[..., Any], setting: str, named: str) -> None:
    check_user_rl(settings())
    with pytest.raises(ConfigError, match=named):
        check_user_rl(settings(setting))


@pytest.mark.parametrize("part", ["agent", "reference"])
def test_a_model_behind_a_server_is_refused(settings: Callable[..., Any], part: str) -> None:
    with pytest.raises(ConfigError, match=rf"user_rl\.{part}.*not one behind a server"):
        settings(f"user_rl.{part}=endpoint:gpt")


def test_only_the_objective_likely_has_a_reference(settings: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="only objective likely has one"):
        settings("user_rl.objective=hard", "user_rl.reference=runs/x")


@pytest.mark.parametrize(
    ("setting", "command", "named"),
    [
        ("model.checkpoint", "train", "so an agent, and a user model is needed"),
        ("user_rl.agent", "sft-user", "so a user model, and an agent is needed"),
        ("user_rl.agent", "train-user", "so a user model, and an agent is needed"),
        ("user_rl.reference", "quickstart", "so an agent, and a user model is needed"),
    ],
)
def test_agents_and_user_models_are_not_taken_for_each_other(
    settings: Callable[..., Any], base_run: Path, tmp_path: Path, setting: str, command: str, named: str
) -> None:
    run = tmp_path / "other"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / "base").symlink_to(base_run / "checkpoints" / "base")
    (run / "config.yaml").touch()
    (run / "status.json").write_text(json.dumps({"command": command}))
    with pytest.raises(ConfigError, match=named):
        check_user_rl(settings(f"{setting}={run}"))


@pytest.mark.parametrize(
    ("domain", "named"), [("telecom-generated", "have tools"), ("bfcl-generated", "cannot be checked")]
)
def test_an_environment_whose_users_cannot_be_held_to_their_goals_is_refused(
    settings: Callable[..., Any], domain: str, named: str
) -> None:
    from muarl.environments.configure import places_of

    size = "tiny" if domain.startswith("telecom") else "official"
    config = settings(f"domain.name={domain}", f"domain.size={size}")
    with pytest.raises(ConfigError, match=named):
        user_rl.checks_of(places_of(config, with_rl=False))


def rows(run: Path) -> list[dict[str, Any]]:
    slow = ("seconds", "time/", "per_second")
    return [
        {k: v for k, v in row.items() if not any(s in k for s in slow)} for row in RunDirectory.at(run).read_metrics()
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("lenient")
def test_steps_change_the_weights_and_a_resumed_run_is_the_same_id_for_id(
    settings: Callable[..., Any], base_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = user_rl.run(settings("name=whole"))
    trained = load_policy(checkpoint_folder(str(whole)))
    start = load_policy(checkpoint_folder(str(base_run)))
    pairs = zip(trained.model.parameters(), start.model.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)
    found = rows(whole)
    steps = [row for row in found if row["phase"] == "user_rl"]
    assert [row["step"] for row in steps] == [0, 1, 2] and all(row["update/grad_norm"] > 0 for row in steps)
    assert all(0 <= row["void"] <= 1 and row["groups_kept"] == 2 for row in steps)
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["training"]["steps"] == 3 and summary["objective"] == "likely"
    for when in ("before", "after"):
        assert set(summary["held_out"][when]) == {"agent", "agent_checked", "expert"}
        assert summary["held_out"][when]["agent"]["void"]["n"] == 4
    assert "| the scripted expert | void |" in (whole / "report.md").read_text()

    mend = at_call(monkeypatch, TorchLearner, "policy_step", 3, ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        user_rl.run(settings("name=cut", "rl.checkpoint_every=2"))
    mend()
    cut = whole.parent / "cut"
    assert checkpoint_folder(str(cut)).name == "step-000002"
    resumed = user_rl.run(load_config(cut / "config.yaml", [f"resume={cut}"]))
    assert resumed == cut and rows(cut) == found
    for step in range(3):
        first, again = (RunDirectory.at(run).read_episodes(f"user-{step:04d}") for run in (whole, cut))
        assert first and [(e.id, e.tokens) for e in first] == [(e.id, e.tokens) for e in again]
    weights = load_policy(checkpoint_folder(str(cut))).model.parameters()
    assert all(torch.equal(a, b) for a, b in zip(trained.model.parameters(), weights, strict=True))


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("broken", ["episodes", "groups", "update"])
def test_a_step_that_fails_leaves_a_checkpoint_of_those_before_it(
    settings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail() -> None:
        raise InfrastructureError("it went away", boundary="world")

    if broken == "groups":
        gathered, asked = user_rl.collect_groups, []

        def none_left(*given: Any, **more: Any) -> Groups:
            asked.append(given)
            return gathered(*given, **more) if len(asked) == 1 else Groups([], [], 1)

        monkeypatch.setattr(user_rl, "collect_groups", none_left)
    else:
        at_call(
            monkeypatch, *{"episodes": (user_rl, "_play"), "update": (TorchLearner, "policy_step")}[broken], 2, fail
        )
    with pytest.raises(MuarlError, match="large enough to learn from" if broken == "groups" else "it went away"):
        user_rl.run(settings("name=cut", "eval.tasks=1", "rl.tasks_per_step=1"))
    kept = [step for step, _ in list_checkpoints(tmp_path / "runs" / "cut" / "checkpoints" / "rl")]
    assert kept == ([] if broken == "update" else [1]), "of a half-made step there is none"


def judged(number: int, reward: float, *, void: bool = False, stop: StopReason = StopReason.USER_STOP) -> Episode:
    from muarl.types.chat import Message

    turns = [Turn(Message("assistant", "Hi!")), Turn(Message("user", "Cancel my order."))]
    tags: dict[str, Any] = {VOID: [{"rule": "goal", "message": 1, "detail": "x"}] * 2} if void else {}
    infrastructure = stop is StopReason.INFRASTRUCTURE
    return Episode(
        f"e{number}", "t", "toy", turns, stop, verdict=None if infrastructure else Verdict(reward), tags=tags
    )


def test_void_conversations_count_neither_for_nor_against_the_agent() -> None:
    episodes = [judged(0, 1.0), judged(1, 0.0), judged(2, 0.0, void=True), judged(3, 0.0, stop=StopReason.MAX_TURNS)]
    episodes.append(judged(4, 0.0, stop=StopReason.INFRASTRUCTURE))
    found = counts(episodes, {"e1": frozenset({"write-without-consent"}), "e2": frozenset({"cross-user-write"})})
    assert found == {
        "episodes": 4, "excluded": 1, "void": 1, "valid": 3, "agent_fails": 1, "success": 1, "violating": 1, "cut": 1,
        "user_messages": 4, "words": 12, "violated/write-without-consent": 1, "breached/goal": 1,
    }  # fmt: skip
    told = shares({f"agent/{key}": float(n) for key, n in found.items()})
    assert set(told) == {"agent"} and told["agent"]["void"]["n"] == 4 and told["agent"]["agent_fails"]["n"] == 3
    assert told["agent"]["violated"] == {"write-without-consent": 1} and told["agent"]["words"] == 3.0


def measured(void: int, fails: int, expert: int) -> dict[str, dict[str, Any]]:
    flat: dict[str, float] = {}
    for who, failed in (("agent", fails), ("expert", expert)):
        own = {"episodes": 200, "excluded": 0, "void": void, "valid": 200 - void, "agent_fails": failed,
               "success": 200 - void - failed,
               "violating": 0, "cut": 0, "user_messages": 1000, "words": 9000}  # fmt: skip
        flat |= {f"{who}/{key}": float(n) for key, n in own.items()}
    return shares(flat)


def test_the_verdict_claims_what_the_intervals_show_and_no_more() -> None:
    void, fails, expert = verdict(measured(20, 40, 0), measured(22, 90, 1))
    assert "no difference is shown" in void and "no difference is shown" in expert
    assert fails.startswith("The agent ends wrong in 50.6%") and "no difference" not in fails
    warned = verdict(measured(20, 40, 0), measured(20, 90, 40))
    assert "gets past the checks of its scenario" in warned[-1]
    table = report(measured(20, 40, 0), measured(22, 90, 1))
    assert "| the agent | void | 10.0% (6.6 to 14.9) | 11.0% (7.4 to 16.1) | +1.0 (" in table


def test_the_interval_of_a_difference_is_newcombes() -> None:
    """Newcombe 1998, Statistics in Medicine 17, table II, method 10: 56/70 and 48/80."""
    one = shares({f"agent/{k}": v for k, v in _of(70, 56).items()})["agent"]["success"]
    other = shares({f"agent/{k}": v for k, v in _of(80, 48).items()})["agent"]["success"]
    value, (low, high) = difference(other, one)
    assert (round(value, 4), round(low, 4), round(high, 4)) == (0.2, 0.0524, 0.3339)


def _of(valid: int, success: int) -> dict[str, float]:
    names = ("excluded", "void", "agent_fails", "violating", "cut", "user_messages", "words")
    return {"episodes": valid, "valid": valid, "success": success, **dict.fromkeys(names, 0.0)}


def test_where_every_user_is_void_nothing_is_said_of_the_agent() -> None:
    told = verdict(measured(20, 40, 0), measured(200, 0, 0))
    assert told[0].startswith("The user is void in 100.0%")
    assert told[1] == "The agent ends wrong: cannot be told, since there was no such conversation after."
    row = next(line for line in report(measured(20, 40, 0), measured(200, 0, 0)).splitlines() if "agent ends" in line)
    assert row.startswith("| the agent | agent ends wrong | 22.2% (") and row.endswith(" | none of 0 | – |")
