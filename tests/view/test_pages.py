"""The pages: complete, true to the run, and closed to whatever models and users wrote."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from dataclasses import replace
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest

from muarl.domains.tasks import Task
from muarl.environments.audit_rules import RulesOfRuns
from muarl.environments.recorded_episodes import replay_recorded
from muarl.environments.registry import find
from muarl.observe.rundir import RunDirectory
from muarl.observe.status import this_process
from muarl.rewards.state_changes import CannotReplay, ReplayOutcome
from muarl_tools.view.layout import ServerLinks
from muarl_tools.view.routes import page_of
from muarl_tools.view.rows import key_text
from muarl_tools.view.runs import Library
from muarl_tools.view.tokens import pieces, tokenizer_of
from support.viewing import STEPS, indexed, make_run, play, writing_tasks
from support.viewing_pages import EVIL, Page, found, hostile, look


def test_the_overview_shows_what_training_does(library: Library) -> None:
    page = look(library)
    wanted = (
        "Reward", "KL", "Entropy", "agent tokens only", "Outcomes of groups", "all solved", "mixed", "none solved",
        "Turns", "Response length", "Stop reasons", "Tool calls", "General-purpose tools", "calculate",
        "get_order_details", "User errors", "Cost", "$0.12", "Sampler–learner log-prob gap", "Rollout",
        "Where a step’s time goes", "Where a conversation’s time goes", "step 12 of 12", "finished",
        "of tasks solved before reinforcement learning",
    )  # fmt: skip
    for words in wanted:
        assert words in page.shown, words
    general, domain = page.html.index("General-purpose tools</h3>"), page.html.index("The domain’s tools")
    assert general < page.html.index(">calculate<") < domain < page.html.index(">get_order_details<")
    assert "sk-not-shown" not in page.html and "***" in page.html


def test_a_tool_that_hands_over_is_a_general_one_whatever_its_name(finished: RunDirectory, tmp_path: Path) -> None:
    path = tmp_path / "own"
    shutil.copytree(finished.path, path)
    (path / "audit-rules.yaml").write_text("transfer_tools: [get_order_details]\n")
    page = look(indexed(tmp_path, path))
    assert page.html.index(">get_order_details<") < page.html.index("The domain’s tools")


def test_a_killed_run_is_not_shown_as_running(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    status = run.read_json("status")
    here = {"state": "running", "command": "train", **this_process()}
    (run.path / "status.json").write_text(json.dumps({**status, **here}))
    library = indexed(tmp_path, run.path)
    assert library.runs[0].running and "running" in look(library).shown
    (run.path / "status.json").write_text(json.dumps({**status, **here, "process": "another start"}))
    page = look(library)
    assert not library.runs[0].running
    assert "killed" in page.shown and f"muarl train --resume {run.path}" in page.shown


def test_the_overview_shows_when_a_run_was_resumed_and_what_changed(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert "Resumed" not in look(indexed(tmp_path, run.path)).shown
    line = {"at": "2026-01-02T03:04:05+00:00", "after": {"phase": "rl", "step": 7}, "muarl": "0.1.0"}
    lines = [{**line, "changed": {"rl.steps": [12, "<b>20</b>"]}}, {"after": [], "changed": [1]}, 3]
    (run.path / "resumes.jsonl").write_text("".join(json.dumps(found) + "\n" for found in lines))
    page = look(indexed(tmp_path, run.path))
    assert "2 times" in page.shown and "2026-01-02T03:04:05" in page.shown
    assert "reinforcement learning, step 7" in page.shown and "rl.steps: 12 → <b>20</b>" in page.shown
    assert "<b>20" not in page.html
    (run.path / "resumes.jsonl").write_text("[" * 10_000)
    assert "Resumed" not in look(indexed(tmp_path, run.path)).shown


def test_several_runs_share_the_charts(finished: RunDirectory, tmp_path: Path) -> None:
    other = make_run(tmp_path, "other", skill=0.5)
    page = look(indexed(tmp_path, finished.path, other.path))
    assert "2 runs" in page.shown
    legends = re.findall(r'<p class="legend">(.*?)</p>', page.html)
    assert sum("mine" in found and "other" in found for found in legends) >= 10
    assert "/runs/mine/episodes" in page.links and "/runs/other/episodes" in page.links


def test_runs_of_one_name_are_told_apart(finished: RunDirectory, tmp_path: Path) -> None:
    library = indexed(tmp_path, finished.path, finished.path)
    assert [run.slug for run in library.runs] == ["mine", "mine-2"]
    assert "Episodes of mine" in look(library, "runs", "mine-2", "episodes").shown


def test_an_empty_run_and_one_without_episodes_have_pages(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, "young") as run:
        pass
    library = indexed(tmp_path, run.path)
    for parts in ((), ("runs", "young", "episodes"), ("runs", "young", "tasks")):
        assert "young" in look(library, *parts).shown
    run.log({"reward": 0.25, "episodes": 8}, phase="rl", step=0)
    assert "0.25" in look(library).shown
    (run.path / "metrics.jsonl").write_text('{"phase": "rl", "step": 1, "reward": NaN}\n{"broken\n17\n')
    (run.path / "config.yaml").write_text("[}")
    (run.path / "status.json").write_text("{")
    assert "young" in look(library).shown


BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise("abcdefghijklmnopqrstuvwxyz"))


@pytest.mark.parametrize(
    "config",
    [BOMB, "a: &a [*a]", "[" * 100_000, "{[a]: b}", "rl: 2020-13-45", "seed: " + "9" * 5000, "\ud800", "x" * (1 << 20)],
    ids=["bomb", "recursive", "deep", "list-key", "no-date", "digits", "no-text", "huge"],
)
def test_a_hostile_configuration_hides_no_figures(tmp_path: Path, config: str) -> None:
    run = RunDirectory(tmp_path, "young")
    run.log({"reward": 0.25, "episodes": 8}, phase="rl", step=0)
    (run.path / "config.yaml").write_bytes(config.encode("utf-8", "surrogatepass"))
    library = indexed(tmp_path, run.path)
    for parts in ((), ("runs", "young", "episodes"), ("runs", "young", "tasks")):
        assert "young" in look(library, *parts).shown
    assert "0.25" in look(library).shown


def test_the_list_filters_and_pages(library: Library) -> None:
    page = look(library, "runs", "mine", "episodes")
    assert f"{STEPS * 12 + 8:,} episodes" in page.shown and "Older →" in page.shown
    row = next(a for a in page.links if "/episodes/" in a)
    assert look(library, "runs", "mine", "episodes", row.rsplit("/", 1)[1]).shown
    few = look(library, "runs", "mine", "episodes", result="unscored")
    assert "1 episode" in few.shown and "infrastructure failed" in few.shown
    none = look(library, "runs", "mine", "episodes", task="nothing of that name")
    assert "No episode is like that" in none.shown
    second = look(library, "runs", "mine", "episodes", page="1", stage="training")
    assert "stage=training" in "".join(second.links) and "← Newer" in second.shown
    for odd in ("-1", "x", "9" * 30, "٣"):
        assert "152 episodes" in look(library, "runs", "mine", "episodes", page=odd).shown


def test_an_episode_is_read_with_what_it_changed(library: Library) -> None:
    solved = next(e for e in found(library, stage="after", result="solved"))
    page = look(library, "runs", "mine", "episodes", key_text(solved.key))
    told = library.runs[0].told(solved.key)
    assert told is not None and isinstance(told.replay, ReplayOutcome)
    assert told.replay.differing == 0 and told.replay.wrong == () and told.replay.total
    assert page.shown.count("Changed") == len(told.replay.calls) > 0
    for change in told.replay.total:
        assert change.record in page.shown
    for words in (
        "What the user wants",
        "Gold actions",
        "the database is as it should be",
        "✓ solved",
        solved.task,
    ):
        assert words in page.shown
    failed = next(e for e in found(library, stage="after", result="failed"))
    page = look(library, "runs", "mine", "episodes", key_text(failed.key))
    told = library.runs[0].told(failed.key)
    assert told is not None and isinstance(told.replay, ReplayOutcome) and told.replay.wrong
    assert "Expected vs. actual" in page.shown and told.replay.wrong[0].record in page.shown


def test_policy_and_tools_stand_beside_a_conversation(library: Library) -> None:
    page = look(library, "runs", "mine", "episodes", key_text(found(library)[0].key))
    told = page.html.partition("<summary>Policy and tools</summary>")[2].partition("</details>")[0]
    domain = find("retail-generated").make_domain("tiny")
    words = "Identify the customer by name and zip."
    assert words in domain.policy_text and words in told
    for tool in domain.tool_specs():
        assert f"<dt>{tool.name}</dt>" in told


def test_an_episode_is_read_by_token(library: Library) -> None:
    at = next(e for e in found(library, stage="training") if e.advantage == 0.5)
    page = look(library, "runs", "mine", "episodes", key_text(at.key), by="token")
    told = library.runs[0].told(at.key)
    assert told is not None and told.episode.tokens is not None
    trace = told.episode.tokens
    titles = [
        a["title"] or ""
        for n, a in page.tags
        if n == "span" and "tok" in (a.get("class") or "").split() and "title" in a
    ]
    assert len(titles) == trace.sampled_count
    first = trace.loss_mask.index(True)
    assert f"id {trace.ids[first]}, log-probability {trace.logprobs[first]:.4g}, version {at.step}" in titles[0]
    assert "advantage +0.50" in titles[0]
    text = "".join(page.text)
    assert '{"name": "' in text and "I want to change an order." in text
    assert f"{trace.sampled_count:,} of {len(trace):,}" in page.shown and "The least likely choices" in page.shown


def test_contexts_that_were_written_anew_are_told_apart(tmp_path: Path) -> None:
    task = writing_tasks("train", 1)[0]
    episode = play(task, True, "0.0/g")
    trace = episode.tokens
    assert trace is not None
    trace.restart()
    trace.append_given(range(300, 360))
    trace.append_sampled([7, 8], [-0.5, -0.25], 3)
    trace.restart()
    trace.append_given([400, 401])
    trace.append_sampled([9], [-0.125], 3)
    with RunDirectory(tmp_path, "parted") as run:
        run.write_episodes("train-0000", [episode])
    library = indexed(tmp_path, run.path)
    at = found(library)[0]
    assert at.tokens == trace.sampled_count
    page = look(library, "runs", "parted", "episodes", key_text(at.key), by="token")
    assert "60 tokens given anew, without the thoughts of earlier turns" in page.shown
    assert "Contexts3" in page.shown.replace(" ", "").replace("\n", "")
    titles = [a["title"] or "" for n, a in page.tags if n == "span" and "tok" in (a.get("class") or "").split()
              and "title" in a]  # fmt: skip
    assert len(titles) == trace.sampled_count and "log-probability -0.125, version 3" in titles[-1]


def test_where_no_advantage_is_on_file_the_group_tells(library: Library, tmp_path: Path) -> None:
    task = writing_tasks("train", 1)[0]
    with RunDirectory(tmp_path, "old") as run:
        episodes = [play(task, good, "0.0/g") for good in (True, False, False, False)]
        for n, episode in enumerate(episodes):
            episode.id = f"0.0/g#{n}"
        run.write_episodes("train-0000", episodes)
    for rule, wanted in (("group_std", 1.5), ("group_mean", 0.75), ("leave_one_out", 1.0)):
        run.write_config({"rl": {"advantage": rule}})
        old = indexed(tmp_path, run.path)
        told = old.runs[0].told(found(old, result="solved")[0].key)
        assert told is not None
        value, own = old.runs[0].advantage(told)
        assert value == pytest.approx(wanted, abs=1e-4) and not own
    assert "from the rewards of its group" in look(old, "runs", "old", "episodes", key_text(told.at.key)).shown


def test_users_errors_stand_where_they_were_made(library: Library) -> None:
    at = found(library, trouble="user")[0]
    page = look(library, "runs", "mine", "episodes", key_text(at.key))
    assert "The user gives an id, a name or a number that it cannot know: an order #W999" in page.shown


def test_two_episodes_side_by_side(library: Library) -> None:
    before, after = (found(library, stage=s, result=r) for s, r in (("before", "failed"), ("after", "solved")))
    b, a = next((b, a) for b in before for a in after if a.task == b.task)
    page = look(library, "pair", "mine", key_text(b.key), "mine", key_text(a.key))
    assert "evaluation before RL" in page.shown and "evaluation after RL" in page.shown
    assert page.shown.count("From here on they differ") == 2 and "Wrong in the database" in page.shown
    pair = look(library, "runs", "mine", "episodes", key_text(a.key))
    assert f"/pair/mine/{key_text(b.key)}/mine/{key_text(a.key)}" in pair.links


def test_tasks_over_training(library: Library) -> None:
    training = found(library, stage="training", sort="oldest")
    learnt, forgotten = training[0].task, training[4].task
    assert learnt in look(library, "runs", "mine", "tasks", show="learnt").shown
    assert forgotten in look(library, "runs", "mine", "tasks", show="forgotten").shown
    assert learnt not in look(library, "runs", "mine", "tasks", show="forgotten").shown
    assert "By what the user wants" in look(library, "runs", "mine", "tasks").shown
    page = look(library, "runs", "mine", "tasks", learnt)
    for words in ("What the user wants", "Gold actions", "Solved in training", "side by side", "step 11"):
        assert words in page.shown
    assert "7 tasks" in look(library, "runs", "mine", "tasks", show="all").shown


def test_there_is_no_page_elsewhere(library: Library) -> None:
    key = key_text(found(library)[0].key)
    for parts in (
        ("runs",), ("runs", "no"), ("runs", "no", "episodes"), ("runs", "mine", "else"), ("etc", "passwd"),
        ("runs", "mine", "episodes", "0" * 16), ("runs", "mine", "episodes", ".."), ("runs", "mine", "tasks", "no"),
        ("pair", "mine", key, "mine", "0" * 16), ("pair", "mine", key), ("runs", "..", "episodes"),
    ):  # fmt: skip
        assert page_of(ServerLinks(), library, parts, {}) is None


def test_pages_follow_a_run_that_goes_on(tmp_path: Path) -> None:
    task, threads = writing_tasks("train", 1)[0], threading.active_count()
    with RunDirectory(tmp_path, "live") as run:
        library = Library([run.path], index=tmp_path, replay=replay_recorded, rules=RulesOfRuns())
        library.watch(every=0.05)
        try:
            assert "0 episodes" in look(library, "runs", "live", "episodes").shown
            run.write_episodes("train-0000", [play(task, True, "0.0/x")])
            run.log({"reward": 0.125, "episodes": 1}, phase="rl", step=0)
            deadline = time.monotonic() + 30
            while "1 episode" not in look(library, "runs", "live", "episodes").shown:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            page = look(library)
            assert "0.12" in page.shown and "running" in page.shown and 'data-live="1"' in page.html
        finally:
            library.close()
    assert "data-live" not in look(library).html and threading.active_count() <= threads


def all_pages(library: Library) -> list[Page]:
    run = library.runs[0]
    base = ("runs", run.slug)
    out = [look(library), *(look(library, *base, "tasks", show=s) for s in ("kinds", "hardest", "all", "learnt"))]
    out.append(look(library, *base, "episodes", task=EVIL, intent=EVIL, tool=EVIL, stop=EVIL, group="x" + EVIL))
    out.append(look(library, *base, "episodes"))
    out.append(look(library, *base, "episodes", rule=EVIL, layer=EVIL, text="onerror"))
    out.append(look(library, *base, "episodes", severity="catastrophic", rule=EVIL[:200]))
    for at in found(library):
        out += [
            look(library, *base, "episodes", key_text(at.key), **q) for q in ({}, {"by": "token"}, {"intent": EVIL})
        ]
        out.append(look(library, *base, "tasks", at.task))
    first, second = found(library)[:2]
    out.append(look(library, "pair", run.slug, key_text(first.key), run.slug, key_text(second.key)))
    return out


def test_hostile_episodes_stay_text(tmp_path: Path) -> None:
    for page in all_pages(hostile(tmp_path)):
        names, anchors = {name for name, _ in page.tags}, {f"#{a['id']}" for _, a in page.tags if a.get("id")}
        assert "img" not in names and "iframe" not in names
        assert [a for n, a in page.tags if n == "script"] == [{"defer": None, "src": "/view.js"}]
        for name, attributes in page.tags:
            assert not any(key.startswith("on") for key in attributes), (name, attributes)
            for key in ("href", "src", "action"):
                address = attributes.get(key)
                assert address is None or address in anchors or re.match(r"/(?!/)|#finding-\d+$", address), address
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page.html)
    assert EVIL in Page(page.html).shown.replace("\n", " ")


def test_a_foreign_task_is_not_played_again(library: Library) -> None:
    told = library.runs[0].told(found(library, stage="after")[0].key)
    assert told is not None
    config = library.runs[0].config
    for change, words in (
        ({"task_id": "retail-huge-test-0-1"}, "cannot be made again"),
        ({"task_id": "nowhere-tiny-test-0-1"}, "another task"),
        ({"task_id": "mcp-git-tiny-test-0-1"}, "servers"),
        ({"task_id": EVIL}, "from its name"),
        ({"tags": {"played": []}}, "A model played"),
    ):
        with pytest.raises(CannotReplay, match=words):
            replay_recorded(replace(told.episode, **change), config)  # type: ignore[arg-type]
    with pytest.raises(CannotReplay, match="another task"):
        replay_recorded(told.episode, config, known={"scenario": "something else"})
    with pytest.raises(CannotReplay, match="no task|not at hand"):
        replay_recorded(told.episode, {"domain": {"name": "tau2-retail"}})


def test_the_audit_stands_at_the_messages_it_is_about(library: Library) -> None:
    run = library.runs[0]
    row = found(library, stage="after", result="solved")[0]
    told = run.told(row.key)
    assert told is not None and told.findings
    unasked = [f for f in told.findings if f.rule == "write-without-consent"]
    assert unasked, "these agents never ask"
    page = look(library, "runs", "mine", "episodes", key_text(row.key))
    for at, finding in enumerate(told.findings):
        assert told.episode.messages[finding.message]
        (line,) = [a for n, a in page.tags if a.get("id") == f"finding-{at + 1}"]
        assert finding.severity in str(line["class"])
        assert [a for n, a in page.tags if n == "a" and a.get("href") == f"#finding-{at + 1}"]
    assert unasked[0].text in page.shown


def test_endless_calls_are_not_run_again() -> None:
    task: Task = writing_tasks("train", 1)[0]
    episode = play(task, True, "x")
    call, answer = episode.turns[2], episode.turns[3]
    episode.turns[2:4] = [call, answer] * 500
    with pytest.raises(CannotReplay, match="too many calls"):
        replay_recorded(episode, {})


def test_answers_that_changed_are_said(library: Library) -> None:
    task = writing_tasks("train", 1)[0]
    episode = play(task, True, "x")
    message = episode.turns[3].message
    episode.turns[3] = replace(episode.turns[3], message=replace(message, content="something else"))
    assert replay_recorded(episode, {}).differing == 1


def test_a_link_in_place_of_checkpoints_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "step-1"
    elsewhere.mkdir(parents=True)
    shutil.copy(str(resources.files("muarl") / "assets" / "base" / "tokenizer.json"), elsewhere)
    for name, target in (("theirs", elsewhere.parent), ("proc", Path("/proc"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "checkpoints").symlink_to(target)
        assert tokenizer_of(tmp_path / name, {}) is None
        assert tokenizer_of(tmp_path, {"model": {"checkpoint": str(tmp_path / name)}}) is None
    for odd in ("~nobody-of-this-name/x", "a\0b"):
        assert tokenizer_of(tmp_path, {"model": {"checkpoint": odd}}) is None
    shutil.copytree(elsewhere.parent, tmp_path / "own" / "checkpoints")
    assert tokenizer_of(tmp_path / "own", {}) is not None


def test_token_texts() -> None:
    tokenizer = tokenizer_of(Path("/nowhere"), {"model": {"checkpoint": "base"}})
    assert tokenizer is not None
    ids = tokenizer.encode("<|im_start|>user\nNaïve – 火 #W1", add_special_tokens=False).ids
    texts = pieces(tokenizer, [*ids, 10**9, -1])
    assert texts[0] == "<|im_start|>" and texts[-2:] == ["⟨1000000000⟩", "⟨-1⟩"]
    whole = "".join(texts[:-2])
    assert re.sub(r"(\\x[0-9a-f]{2})+", "?", whole).startswith("<|im_start|>user\n")
    assert pieces(None, [3, 4]) == ["3", "4"]
    for name in ("/nowhere", "../../etc", "base-none", ""):
        assert tokenizer_of(Path("/nowhere"), {"model": {"checkpoint": name}}) is None
    assert tokenizer_of(Path("/nowhere"), {"model": "x"}) is None
