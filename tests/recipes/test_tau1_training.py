"""Training on TAU1's tasks, as MUA-RL does: which ones, how they are played, what is rewarded and said first."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loop_kit import Puppet
from muarl.accounts.metrics import DOMAIN
from muarl.agents.idle import IdleAgent
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.domains.tasks import Task
from muarl.environments.configure import place_of, places_of
from muarl.environments.place import Place
from muarl.environments.play import play_in
from muarl.environments.task_draws import by_database
from muarl.observe.rundir import RunDirectory
from muarl.rollouts.conversation import run_episode
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason
from support.fake_openai import FakeOpenAI, text
from support.toy_shop import Lines

LLM = ["{}.kind=llm", "{}.endpoint.model=m", "{}.endpoint.base_url=http://127.0.0.1:9/v1"]
BOTH = [line.format(role) for role in ("user", "eval_user") for line in LLM]
ON_TEST = ["train_on_benchmark=true", *BOTH]


@pytest.fixture(scope="module")
def installed(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from muarl_worlds import install

    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUARL_DATA", str(folder))
        install.add("tau1", shared_data / "tau1")
    return folder


@pytest.fixture
def tau1(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUARL_DATA", str(installed))


def environment_of(domain: str, *overrides: str) -> Place:
    return place_of(load_config("cpu", [f"domain.name={domain}", *ON_TEST, *overrides]))


def ids(place: Place, split: str, count: int = 1000) -> set[str]:
    return {task.id for task in place.draw(split, count, 7, 0)}


@pytest.mark.data
@pytest.mark.usefixtures("tau1")
def test_retail_trains_on_its_training_split_and_validates_on_dev() -> None:
    place = environment_of("tau1-retail", "rl.eval_every=5")
    assert {i.partition("/")[0] for i in ids(place, "train")} == {"train"}
    assert {i.partition("/")[0] for i in ids(place, "validation")} == {"dev"}
    assert len(ids(place, "train")) == 500 and len(ids(place, "validation")) == 20


@pytest.mark.data
@pytest.mark.usefixtures("tau1")
def test_the_airline_holds_out_a_fifth_of_its_only_split_where_training_validates() -> None:
    place = environment_of("tau1-airline", "rl.eval_every=5")
    train, validation = ids(place, "train"), ids(place, "validation")
    assert (len(train), len(validation)) == (40, 10) and not train & validation
    assert validation == ids(environment_of("tau1-airline", "rl.eval_every=1", "seed=3"), "validation"), "in every run"
    alone = environment_of("tau1-airline", "rl.eval_every=0")
    assert len(ids(alone, "train")) == 50
    with pytest.raises(ConfigError, match="rl.eval_every=0"):
        alone.draw("validation", 1, 0, 0)


@pytest.mark.data
@pytest.mark.usefixtures("tau1")
def test_episodes_are_played_as_the_paper_plays_them() -> None:
    place = environment_of("tau1-retail", "rollout.max_turns=30")
    assert place.limits.turns == 30 and environment_of("tau1-retail", "rollout.max_turns=12").limits.turns == 12
    task = place.example_task("train")

    def play(agent: Puppet, *lines: str) -> Any:
        world = place.domain.world(task)
        return asyncio.run(run_episode(task, world, agent, Lines(*lines), place.limits, rules=place.rules))

    agent = Puppet("How may I help?", "Goodbye.")
    episode = play(agent, "I want to return a lamp.", "Thanks. ###STOP###")
    assert episode.stop is StopReason.USER_STOP
    assert agent.sessions[0].told[0][0].role == "user", "the greeting is the user's alone"
    # TAU2's other stop words are ordinary text here.
    assert play(Puppet("Hello.", "Fine."), "Hi.", "###TRANSFER###", "###STOP###").stop is StopReason.USER_STOP
    transfer = Message("assistant", tool_calls=(ToolCall("1", "transfer_to_human_agents", {"summary": "x"}),))
    handed_over = play(Puppet(transfer, "Never said."), "I want to return a lamp.", "No.")
    assert handed_over.stop.chosen and handed_over.messages[-1].role == "tool"
    cut = replace(place.limits, turns=3)
    endless = asyncio.run(
        run_episode(task, place.domain.world(task), Puppet(*"abcdef"), Lines(*"uvwxyz"), cut, rules=place.rules)
    )
    assert endless.stop is StopReason.MAX_TURNS


@pytest.mark.data
@pytest.mark.usefixtures("tau1")
def test_users_are_prompted_as_tau1_prompts_them() -> None:
    config = load_config("cpu", ["domain.name=tau1-retail", *ON_TEST])
    with FakeOpenAI(text("I need help.")) as server:
        section = config.user.model_copy(
            update={"endpoint": config.user.endpoint.model_copy(update={"base_url": server.url})}  # type: ignore[union-attr]
        )
        (place,) = places = places_of(config)
        task = place.example_task("train")
        user = make_users(section, places).at(place)(task, seed=1)
        asyncio.run(user.reply([Message("assistant", "Hi! How can I help you today?")]))
    prompt = server.bodies[0]["messages"][0]["content"]
    assert prompt.startswith("You are a user interacting with an agent.") and task.scenario in prompt


def test_rewarding_the_database_alone_leaves_out_what_tasks_demand_of_words() -> None:
    spoken = Task("a", "retail", "s", (), reward_basis=("DB", "COMMUNICATE"), communicate_info=("10",))
    trap = Task("b", "retail", "s", (), reward_basis=("DB", "SAFE", "ACTION"))
    words_only = Task("c", "retail", "s", (), reward_basis=("COMMUNICATE",), communicate_info=("10",))
    tasks = {"train": [spoken, trap], "validation": [spoken], "words": [words_only]}
    draw = by_database(lambda split, count, seed, start: tasks[split])
    assert [t.reward_basis for t in draw("train", 2, 0, 0)] == [("DB",), ("DB", "SAFE")]
    assert draw("validation", 1, 0, 0)[0].reward_basis == ("DB", "COMMUNICATE"), "only training goes without"
    tasks["train"] = [words_only]
    with pytest.raises(ConfigError, match=r"task c is rewarded by COMMUNICATE alone: set rl.reward_basis=task"):
        draw("train", 1, 0, 0)


@pytest.mark.slow
def test_the_reward_basis_of_a_run_reaches_its_tasks() -> None:
    for basis, wanted in (("database", {("DB",)}), ("task", {("DB",), ("DB", "COMMUNICATE"), ("DB", "ACTION")})):
        places = places_of(load_config("cpu", ["domain.size=official", f"rl.reward_basis={basis}"]))
        found = {t.reward_basis for t in places.draw("train", 60, 0, 0)}
        assert found <= wanted and (basis == "task") == (len(found) > 1)


@pytest.mark.data
def test_a_benchmark_with_rules_of_its_own_has_no_basis_to_choose(install_data: Any) -> None:

    install_data("acebench")
    with pytest.raises(ConfigError, match="acebench-en is scored by its own rules.*rl.reward_basis=task"):
        environment_of("acebench-en", "rl.reward_basis=database")
    environment_of("acebench-en")


@pytest.fixture
def long_model(tmp_path: Path) -> Path:
    """A random model of two narrow layers that knows the base's tokens, and reads as many as TAU1's policy takes."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from muarl.backends.checkpoint_names import checkpoint_folder
    from muarl.learning.checkpoints import load_tokenizer, save_policy

    tokenizer = load_tokenizer(checkpoint_folder("base"))
    described = json.loads((checkpoint_folder("base") / "config.json").read_text())
    torch.manual_seed(0)
    small = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=8)
    sizes = dict(intermediate_size=16, max_position_embeddings=16384, tie_word_embeddings=True)
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=described["vocab_size"], **small, **sizes))
    return save_policy(tmp_path / "long", model, tokenizer)


MIX = "domain=[{name: tau1-retail, weight: 115}, {name: tau1-airline, weight: 50}]"


@pytest.mark.data
@pytest.mark.usefixtures("tau1")
def test_both_domains_are_trained_on_mixed_as_the_paper_does() -> None:
    places = places_of(load_config("cpu", [MIX, *ON_TEST, "rl.eval_every=5"]))
    tasks = places.draw("train", 33, 7, 0)
    assert Counter(task.tags[DOMAIN] for task in tasks) == {"tau1-retail": 23, "tau1-airline": 10}
    for task in tasks[:4]:
        alone = environment_of(str(task.tags[DOMAIN]), "rl.eval_every=5")
        own = places.own(task)
        assert own.id in ids(alone, "train")
        assert places.of(task).system_prompt(own) == alone.system_prompt(own)


@pytest.mark.data
@pytest.mark.usefixtures("tau1")
def test_both_domains_are_evaluated_at_once_each_by_its_own_protocol() -> None:
    with FakeOpenAI([text("I need help."), text("Thanks. ###STOP###")]) as server:
        given = [option.replace("http://127.0.0.1:9/v1", server.url) for option in ON_TEST]
        config = load_config("cpu", [MIX, *given, "eval.split=test", "eval.tasks=null"])
        places = places_of(config, measuring=True)
        tasks = places.eval_tasks(config.eval.split, config.eval.tasks, seed=config.eval.seed)
        requests = places.requests(tasks, 2, 0, "evaluation")
        assert (len(tasks), len({r.episode_id for r in requests})) == (165, 330), "ids of both domains are numbers"
        few = [next(task for task in tasks if task.tags[DOMAIN] == place.name) for place in places]
        users = make_users(config.eval_user, places)
        episodes = asyncio.run(play_in(places, IdleAgent(), users, few, 1, seed=0)).episodes
    assert [e.task_id for e in episodes] == [task.id for task in few]
    assert all(
        e.verdict is not None and e.system == places.of(t).system_prompt(t) for e, t in zip(episodes, few, strict=True)
    )


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.usefixtures("tau1")
@pytest.mark.parametrize("domain", ["tau1-retail", "tau1-airline"])
def test_two_steps_on_the_papers_tasks(
    muarl: Callable[..., Any], long_model: Path, tmp_path: Path, domain: str
) -> None:
    with FakeOpenAI([text("I want to return a lamp."), text("Yes. ###STOP###")]) as server:
        options = [o.replace("http://127.0.0.1:9/v1", server.url) for o in BOTH]
        options += [f"domain.name={domain}", "train_on_benchmark=true", f"model.checkpoint={long_model}", "--name", "r"]
        options += [
            "model.max_context=16384",
            "learner.pack_tokens=16384",
            "rollout.concurrency=4",
            "rollout.tokens_per_turn=8",
        ]
        options += ["rl.steps=2", "rl.tasks_per_step=2", "rl.group_size=2", "rl.eval_every=1", "eval.tasks=2"]
        options += ["rl.reward_basis=database", "rl.correction=token"]
        dry = muarl("train", *options, "--dry-run")
        result = muarl("train", *options)
    assert dry.exit_code == 0 and result.exit_code == 0, dry.output + result.output
    held_out = "10 of its 50 training tasks are held out"
    assert (domain == "tau1-airline") == (held_out in dry.stderr) == (held_out in result.stderr.replace("\n", " "))
    rows = RunDirectory.at(tmp_path / "runs" / "r").read_metrics()
    assert [r["episodes"] for r in rows if r["phase"] == "rl"] == [4, 4]
    assert [r["step"] for r in rows if r["phase"] == "validation"] == [0]
    assert RunDirectory.at(tmp_path / "runs" / "r").read_json("summary")["trained_on_benchmark"]

    with FakeOpenAI([text("I want to return a lamp."), text("Yes. ###STOP###")]) as server:
        users = [o.replace("http://127.0.0.1:9/v1", server.url) for o in BOTH]
        options = ["--checkpoint", str(tmp_path / "runs" / "r"), f"domain.name={domain}", "eval.tasks=1", *users]
        options += ["model.max_context=16384", "rollout.tokens_per_turn=8", "eval.split=test", "--name", "e"]
        measured = muarl("eval", *options)
    assert measured.exit_code == 0, measured.output
    assert "the agent was trained on the benchmark's own tasks" in measured.output
    assert RunDirectory.at(tmp_path / "runs" / "e").read_json("summary")["trained_on_benchmark"]
    assert "this score means nothing" in (tmp_path / "runs" / "e" / "report.md").read_text()


@pytest.mark.data
@pytest.mark.usefixtures("tau1")
@pytest.mark.parametrize("options", [["rl.eval_every=0"], ["rl.eval_every=5"], ["user.kind=agenda"]])
def test_a_dry_run_passes_what_starts_and_refuses_what_would_not(
    muarl: Callable[..., Any], long_model: Path, options: list[str]
) -> None:
    given = ["domain.name=tau1-airline", "train_on_benchmark=true", f"model.checkpoint={long_model}", *BOTH]
    given += ["model.max_context=16384", "learner.pack_tokens=16384", "rollout.concurrency=4"]
    result = muarl("train", *given, *options, "--dry-run")
    assert result.exit_code == (2 if "user.kind=agenda" in options else 0), result.output
    if result.exit_code:
        assert "tau1-airline has no rule-based user" in result.stderr
