"""Logged conversations as training tasks: the world that they show, the goal, and that nobody trains unconfirmed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.agents.base import AgentTurn
from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.domains.authoring import AuthoringWarning
from muarl.environments.configure import place_of
from muarl.environments.log_tasks import CHANGED_NOTHING, DroppedLog, snapshot, task_of
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.environments.task_files import FiledTask, TaskFile, read_tasks, split_of, write_tasks
from muarl.runs.roles import Cast, check_fits
from muarl.types.chat import Message, ToolCall, ToolSpec, to_openai
from muarl.types.episode import Episode
from muarl.users.scripted import ScriptedUserFactory
from support.command_lines import check

NAMES = ("retail-generated", "airline-generated")


class Again:
    """An agent that does what the agent of a log did. Its calls get new ids, as a model's would."""

    tokens = None
    name = "again"

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = [m for m in messages if m.role == "assistant"]
        self._next = 0

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> Again:
        return Again(self._messages)

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        self._next += 1
        if self._next > len(self._messages):
            return AgentTurn(Message("assistant", "Goodbye."))
        return AgentTurn(self._messages[self._next - 1])

    def close(self) -> None:
        """Nothing is held."""


@lru_cache
def played(name: str, count: int = 12) -> tuple[Place, list[Any], list[Episode]]:
    """A setting at full size, tasks, and how the expert served them."""
    config = load_config("quickstart", [f"domain.name={name}", "domain.size=official"])
    place = place_of(config)
    tasks = list(place.draw("train", count, 0, 0))
    agent = ExpertAgent(make=find(name).expert)
    return (
        place,
        tasks,
        asyncio.run(
            play_in(Places([place]), agent, make_users(config.eval_user, Places([place])), tasks, 1, seed=0)
        ).episodes,
    )


def made_of(episode: Episode, place: Place, name: str, **options: Any) -> FiledTask:
    own = "retail" if name.startswith("retail") else "airline"
    found = task_of(episode.messages, place.domain, own, observer=find(name).observer, **options)
    assert isinstance(found, FiledTask), found
    return found


def after(place: Place, task: Any, actions: Sequence[Any]) -> str:
    world = place.domain.world(task)
    for n, action in enumerate(actions):
        assert not world.call(action.requestor, ToolCall(f"c{n}", action.name, dict(action.arguments))).error
    return world.digest()


def log_line(episode: Episode) -> str:
    """A conversation as live agents' logs hold it."""
    return json.dumps({"messages": [to_openai(m) for m in episode.messages]}) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_goal_and_world_of_a_good_conversation(name: str) -> None:
    place, tasks, episodes = played(name)
    by_id = {t.id: t for t in tasks}
    reproduced = 0
    for episode in episodes:
        original = by_id[episode.task_id]
        filed = made_of(episode, place, name)
        assert not filed.confirmed
        assert after(place, original, filed.task.actions or ()) == after(place, original, original.actions or ())
        reproduced += not any("in this task's world" in note for note in filed.notes)
    assert reproduced >= len(episodes) - 2, "what tools answered is enough to put nearly every world together"


@pytest.mark.parametrize("name", NAMES)
def test_the_agent_of_the_log_earns_the_reward_and_doing_nothing_does_not(name: str) -> None:
    place, _, episodes = played(name)
    users = ScriptedUserFactory()
    tried = 0
    for episode in episodes:
        filed = made_of(episode, place, name)
        if filed.notes or not filed.task.actions:
            continue
        tried += 1
        good = asyncio.run(play_in(Places([place]), Again(episode.messages), users, [filed.task], 1, seed=0)).episodes[
            0
        ]
        idle = asyncio.run(play_in(Places([place]), IdleAgent(), users, [filed.task], 1, seed=0)).episodes[0]
        assert (good.reward, idle.reward) == (1.0, 0.0), filed.task.id
    assert tried >= 4


@pytest.mark.slow
def test_a_snapshot_fills_in_what_the_log_does_not_show() -> None:
    place, tasks, episodes = played("retail-generated")
    by_id = {t.id: t for t in tasks}
    for episode in episodes:
        tables = by_id[episode.task_id].database.to_tables()
        whole = snapshot(json.loads(json.dumps(tables)), find("retail-generated").observer, "db.json")
        filed = made_of(episode, place, "retail-generated", database=whole)
        assert not any("in this task's world" in note for note in filed.notes)
        assert filed.task.database is not None
        assert filed.task.database.digest() == by_id[episode.task_id].database.digest()


@pytest.mark.slow
def test_a_snapshot_that_has_moved_on_is_put_back() -> None:
    """The operator's database is of today; what the log has seen before its writes counts."""
    place, tasks, episodes = played("retail-generated")
    for episode in episodes:
        task = next(t for t in tasks if t.id == episode.task_id)
        if not task.actions or not made_of(episode, place, "retail-generated").task.actions:
            continue
        world = place.domain.world(task)
        for n, action in enumerate(task.actions):
            world.call("assistant", ToolCall(f"c{n}", action.name, dict(action.arguments)))
        today = snapshot(world.toolkit().db.to_tables(), find("retail-generated").observer, "db.json")
        filed = made_of(episode, place, "retail-generated", database=today)
        if any("in this task's world" in note for note in made_of(episode, place, "retail-generated").notes):
            continue
        assert not any("cannot be reached" in note for note in filed.notes), filed.notes


def test_what_a_person_should_look_at() -> None:
    place, _, episodes = played("retail-generated")
    cancelled = next(
        (e, filed)
        for e in episodes
        for filed in [made_of(e, place, "retail-generated")]
        if filed.task.actions and not filed.notes
    )
    messages = list(cancelled[0].messages)
    # Without the customer's answers nobody has agreed to anything.
    silent = [Message("user", "Hm.") if m.role == "user" and n > 2 else m for n, m in enumerate(messages)]
    filed = task_of(silent, place.domain, "retail", observer=find("retail-generated").observer)
    assert isinstance(filed, FiledTask) and any("did not agree" in note for note in filed.notes)
    # An answer that the new world cannot give.
    wrong = [
        Message("tool", "pending, of course", tool_call_id=m.tool_call_id) if m.role == "tool" else m for m in messages
    ]
    filed = task_of(wrong, place.domain, "retail", observer=find("retail-generated").observer)
    assert isinstance(filed, FiledTask) and any("the goal cannot be reached" in note for note in filed.notes)
    # A conversation in which nothing was changed.
    order = ToolCall("c1", "get_user_details", {"user_id": "a_b_1"})
    idle = (
        Message("user", "Where is my order? ###STOP###"),
        Message("assistant", None, (order,)),
        Message("tool", json.dumps({"user_id": "a_b_1", "orders": []}), tool_call_id="c1"),
        Message("assistant", "On its way."),
    )
    filed = task_of(idle, place.domain, "retail", observer=find("retail-generated").observer)
    assert isinstance(filed, FiledTask) and CHANGED_NOTHING in filed.notes
    assert "Where is my order?" in filed.task.scenario and "STOP" not in filed.task.scenario
    assert isinstance(task_of(idle[1:], place.domain, "retail"), DroppedLog)


def test_a_failed_write_is_noted_and_is_no_goal() -> None:
    place, _, episodes = played("retail-generated")
    call = ToolCall("c9", "cancel_pending_order", {"order_id": "#W0000000", "reason": "no longer needed"})
    messages = (
        *episodes[0].messages,
        Message("assistant", None, (call,)),
        Message("tool", "Error: Order not found", tool_call_id="c9"),
    )
    plain = made_of(episodes[0], place, "retail-generated")
    filed = task_of(messages, place.domain, "retail", observer=find("retail-generated").observer)
    assert isinstance(filed, FiledTask) and filed.task.actions == plain.task.actions
    assert any("cancel_pending_order" in n and "failed" in n for n in filed.notes)


def test_the_same_conversation_is_the_same_task() -> None:
    place, _, episodes = played("retail-generated")
    ids = [made_of(e, place, "retail-generated").task.id for e in episodes]
    assert ids == [made_of(e, place, "retail-generated").task.id for e in episodes] and len(set(ids)) == len(ids)


def test_files_keep_everything(tmp_path: Path) -> None:
    place, _, episodes = played("airline-generated")
    tasks = [made_of(e, place, "airline-generated", source=f"log, line {n}") for n, e in enumerate(episodes)]
    write_tasks(tmp_path / "tasks.jsonl", tasks)
    for old, new in zip(tasks, read_tasks(tmp_path / "tasks.jsonl"), strict=True):
        assert (new.confirmed, new.notes, new.source) == (old.confirmed, old.notes, old.source)
        assert (new.task.id, new.task.scenario, new.task.agenda) == (old.task.id, old.task.scenario, old.task.agenda)
        assert [(a.name, dict(a.arguments)) for a in new.task.actions or ()] == [
            (a.name, dict(a.arguments)) for a in old.task.actions or ()
        ]
        assert new.task.database is not None and old.task.database is not None
        assert new.task.database.digest() == old.task.database.digest()


def file_of(tmp_path: Path, count: int = 12, confirmed: bool = True) -> Path:
    place, _, episodes = played("retail-generated")
    tasks = [made_of(e, place, "retail-generated") for e in episodes]
    good = [FiledTask(t.task, confirmed) for t in tasks if not any("cannot be reached" in n for n in t.notes)]
    write_tasks(tmp_path / "tasks.jsonl", good[:count])
    return tmp_path / "tasks.jsonl"


def test_each_round_has_every_task_once(tmp_path: Path) -> None:
    file = TaskFile(file_of(tmp_path), played("retail-generated")[0].domain, "retail")
    every = {t.task.id for t in read_tasks(file.path) if split_of(t.task.id) == "train"}
    held = {t.task.id for t in read_tasks(file.path)} - every
    drawn = [file.draw("train", 1, 5, n)[0].id for n in range(2 * len(every))]
    assert set(drawn[: len(every)]) == set(drawn[len(every) :]) == every
    assert drawn[: len(every)] != drawn[len(every) :]
    batch = file.draw("train", len(every), 5, len(every) // 2)
    assert len({t.id for t in batch}) == len(every)
    if held:
        assert {t.id for t in file.draw("test", len(held), 0, 0)} == held
    with pytest.raises(ConfigError, match=r"has \d+ confirmed tasks for train, and 100 are asked for.*tasks_per_step"):
        file.draw("train", 100, 0, 0)


def test_nobody_trains_on_what_is_not_confirmed(tmp_path: Path) -> None:
    path = file_of(tmp_path, confirmed=False)
    with pytest.raises(ConfigError, match=r"none of the \d+ tasks of .* is confirmed.*muarl tasks confirm"):
        TaskFile(path, played("retail-generated")[0].domain, "retail")


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text("\n")
    with pytest.raises(ConfigError, match=r"domain\.tasks: .*tasks\.jsonl holds no task"):
        TaskFile(tmp_path / "tasks.jsonl", played("retail-generated")[0].domain, "retail")


def spoil(path: Path, **changes: Any) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1] |= changes
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"confirmed": "yes"}, "confirmed must be true or false"),
        ({"actions": [{"name": "fly"}]}, r"actions\[0\]: it lacks the field arguments"),
        (
            {"actions": [{"name": "fly", "arguments": {}}]},
            r"actions\[0\], fly\(.*unknown tool: .*no tool .fly.*allow_failing_gold=true",
        ),
        ({"goal": []}, "there is no field 'goal'; known: actions"),
        ({"database": []}, "database must be null, or tables"),
        (
            {
                "database": {"users": {}},
                "actions": [{"name": "cancel_pending_order", "arguments": {"order_id": "#W1", "reason": "other"}}],
            },
            r"actions\[0\], cancel_pending_order\(.*#W1.*\): raises AttributeError: the database has no table .orders",
        ),
        ({"domain": "airline"}, "a task of 'airline', and the run is of 'retail'"),
        ({"lines": [3]}, "lines must be a list of strings"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_line_and_field(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = file_of(tmp_path)
    spoil(path, **changes)
    with pytest.raises(DataError, match=rf"tasks\.jsonl, line 2.*{said}"):
        TaskFile(path, played("retail-generated")[0].domain, "retail")


def test_tasks_with_failing_gold_actions_are_played_where_that_is_asked_for(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    spoil(path, actions=[{"name": "fly", "arguments": {}}])
    settings = [f"domain.tasks={path}", "domain.size=small", "user.kind=scripted", "eval_user.kind=scripted"]
    with pytest.raises(DataError, match="unknown tool"):
        place_of(load_config("quickstart", settings))
    with pytest.warns(AuthoringWarning, match=r"1 of \d+ confirmed tasks .* line 2: task .*: actions\[0\], fly"):
        place = place_of(load_config("quickstart", [*settings, "domain.allow_failing_gold=true"]))
    assert place.domain.allow_failing_gold
    assert not place_of(load_config("quickstart", [])).domain.allow_failing_gold


def test_the_commands(tmp_path: Path) -> None:
    runner = CliRunner()
    log, out = tmp_path / "live.jsonl", tmp_path / "tasks.jsonl"
    _, _, episodes = played("retail-generated")
    no_customer = json.dumps({"messages": [{"role": "assistant", "content": "Hello?"}]}) + "\n"
    log.write_text("".join(map(log_line, episodes)) + no_customer)
    made = runner.invoke(app, ["tasks", "from-log", str(log), "--out", str(out)])
    assert made.exit_code == 0, made.output
    assert f"13 conversations: {len(episodes)} new tasks" in made.output and "1 left out: no customer" in made.output
    (shown, confirmed) = re.findall(r"muarl tasks .*?(?=, then|$)", made.output.partition("Next: ")[2].rstrip())
    assert confirmed.endswith("ID ... --domain retail-generated --size official")
    for line in (shown, confirmed):
        check(line.replace(" ...", ""))
    assert "12 tasks, 0 confirmed" in runner.invoke(app, ["tasks", "show", str(out)]).output
    tasks = read_tasks(out)
    assert not any(t.confirmed for t in tasks)
    clean = [t for t in tasks if not t.notes]
    done = runner.invoke(app, ["tasks", "confirm", str(out), "--clean"])
    assert done.exit_code == 0 and f"{len(clean)} confirmed" in done.output
    shown = runner.invoke(app, ["tasks", "show", str(out), clean[0].task.id]).output
    assert "confirmed  from" in shown and clean[0].task.actions[0].name in shown
    # Again with the same log: nothing new, and what was confirmed stays so.
    again = runner.invoke(app, ["tasks", "from-log", str(log), "--out", str(out)])
    assert "0 new tasks" in again.output and "12 left out: the same conversation" in again.output
    assert sum(t.confirmed for t in read_tasks(out)) == len(clean)
    unknown = runner.invoke(app, ["tasks", "confirm", str(out), "log-nope"])
    assert isinstance(unknown.exception, MuarlError) or unknown.exit_code == 2


def test_a_goal_that_cannot_be_reached_is_not_confirmed(tmp_path: Path) -> None:
    path = file_of(tmp_path, confirmed=False)
    task = read_tasks(path)[1].task
    spoil(path, actions=[{"name": "cancel_pending_order", "arguments": {"order_id": "#W1", "reason": "x"}}])
    before = path.read_bytes()
    failed = CliRunner().invoke(app, ["tasks", "confirm", str(path), task.id])
    assert failed.exit_code != 0 and path.read_bytes() == before


def test_a_run_of_logged_tasks_needs_users_that_can_play_them(tmp_path: Path) -> None:
    file = f"domain.tasks={file_of(tmp_path)}"
    with pytest.raises(ConfigError, match=r"^user.kind is agenda, and tasks of a file \(domain.tasks\) have no agenda"):
        check_fits(Cast.of(load_config("quickstart", [file])), "user")
    check_fits(
        Cast.of(load_config("quickstart", [file, "eval_user.kind=scripted"])), "eval_user"
    )  # who alone plays in an eval
    scripted = ["user.kind=scripted", "eval_user.kind=scripted"]
    with pytest.raises(ConfigError, match="a task file cannot be used with the benchmark tau2-retail"):
        place_of(load_config("quickstart", [file, "domain.name=tau2-retail", *scripted]))
    place = place_of(load_config("quickstart", [file, "domain.size=official", *scripted]))
    assert place.example_task("train").id.startswith("log-")


def test_a_run_trains_on_logged_tasks(tmp_path: Path) -> None:
    """Compact answers show no records, so that the world comes from the snapshot."""
    from muarl.recipes import rl

    config = load_config("quickstart", [])
    place = place_of(config)
    users = make_users(config.eval_user, Places([place]))
    task = next(t for t in place.draw("train", 50, 0, 0) if t.tags["intent"] == "cancel")
    agent = ExpertAgent(make=find("retail-generated").expert)
    episodes = asyncio.run(play_in(Places([place]), agent, users, [task], 8, seed=0)).episodes
    made = [made_of(e, place, "retail-generated", database=task.database) for e in episodes]
    assert all(not f.notes and f.task.actions for f in made)
    path = tmp_path / "tasks.jsonl"
    write_tasks(path, [FiledTask(t.task, True) for t in {f.task.id: f for f in made}.values()])
    config = load_config(
        "quickstart",
        [
            f"domain.tasks={path}", f"runs_dir={tmp_path}", "name=logged", "user.kind=scripted", "threads=1",
            "eval_user.kind=scripted", "rl.steps=1", "rl.tasks_per_step=1", "rl.group_size=2", "rl.eval_every=0",
            "rollout.tokens_per_turn=24", "rollout.max_turns=5", "rl.drop_zero_variance=false", "rl.checkpoint_every=0",
            "model.device=cpu",
        ],
    )  # fmt: skip
    folder = rl.run(config)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [r["episodes"] for r in rows if r["phase"] == "rl"] == [2.0]
