"""``muarl coldstart``: a dataset with its card, resumed, budgeted, by experts or by models, with faults on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.coldstart import dataset
from muarl.environments.registry import find
from muarl.observe.progress import Phase
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Usage, read_episodes
from support.fake_openai import FakeOpenAI, call, status, text
from support.imagined import PerfectTeacher
from support.library import everybody, own_folder

Muarl = Callable[..., Any]
KEY = "sk-the-right-key"


@pytest.fixture(autouse=True)
def quick(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def made(muarl: Muarl, tmp_path: Path, *args: str) -> Path:
    result = muarl("coldstart", "--name", "cs", *args, f"runs_dir={tmp_path}", ok=True)
    assert "Run folder" in result.output
    return tmp_path / "cs"


RETAIL = ("--scenario", "retail-generated")


def test_experts_make_a_dataset_that_comes_out_the_same_again(muarl: Muarl, tmp_path: Path) -> None:
    run = made(muarl, tmp_path, "-n", "12", *RETAIL, "--scenario", "telecom-generated")
    folder = run / "dataset"
    kept = list(read_episodes(folder / "episodes.jsonl"))
    assert len(kept) == 12
    assert {e.tags["scenario"] for e in kept} == {"retail-generated", "telecom-generated"}
    assert all(e.reward == 1 and e.system and e.tools for e in kept)
    card = json.loads((folder / "card.json").read_text())
    assert card["kept"] == 12 and card["scenarios"]["retail-generated"]["kept"] == 6
    assert card["words"] > card["agent_words"] > 0
    page = (folder / "README.md").read_text()
    assert "retail-generated" in page and "## One conversation of each scenario" in page
    assert "| models asked | none |" in page and page.count("````text") == page.count("````\n") == 2
    result = muarl("coldstart", "--check", str(folder), ok=True)
    assert "12 conversations came out as recorded, 0 did not" in result.output


def test_progress_is_told_while_conversations_are_played(
    muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    advance = Phase.advance

    def watched(self: Phase, n: int = 1, **figures: Any) -> None:
        advance(self, n, **figures)
        seen.append((self.done, len((tmp_path / "cs/episodes/retail-generated.jsonl").read_text().splitlines())))

    monkeypatch.setattr(Phase, "advance", watched)
    made(muarl, tmp_path, "-n", "4", *RETAIL, "coldstart.concurrency=1")
    assert [done for done, _ in seen[:4]] == [1, 2, 3, 4]
    assert [written for _, written in seen[:4]] == [1, 2, 3, 4], "not only once all are played"


def test_long_messages_are_cut_where_one_can_see_it() -> None:
    turns = [Turn(Message("user", "```` " + "word " * 200)), Turn(Message("assistant", "Well."))]
    episode = Episode("e", "t", "d", turns, StopReason.USER_STOP, tags={"scenario": "s"})
    found = dataset.Dataset([episode], [], {"s": 1})
    page = dataset.card(found, dataset.figures(found, spent=Usage(), seconds=1.0))
    assert "wo ...\nassistant: Well." in page and page.count("````") == 2, "and nothing closes the fence"


def test_other_trainers_can_read_it(muarl: Muarl, tmp_path: Path) -> None:
    run = made(muarl, tmp_path, "-n", "4", *RETAIL)
    for row in rows(run / "dataset" / "messages.jsonl"):
        roles = [m["role"] for m in row["messages"]]
        assert roles[:2] == ["system", "user"] and roles[-1] == "assistant"
        assert row["tools"][0]["type"] == "function"
        asked = [c["id"] for m in row["messages"] for c in m.get("tool_calls", ())]
        assert asked == [m["tool_call_id"] for m in row["messages"] if m["role"] == "tool"]
        assert all(json.loads(c["function"]["arguments"]) for m in row["messages"] for c in m.get("tool_calls", ()))


def test_errors_are_dropped_with_their_reasons(muarl: Muarl, tmp_path: Path) -> None:
    error_profile = "coldstart.error_profile={skip_confirmation: 1.0, needless_transfer: 0.3}"
    run = made(muarl, tmp_path, "-n", "10", *RETAIL, error_profile, "coldstart.attempts=4")
    dropped = rows(run / "dataset" / "dropped.jsonl")
    assert {d["filter"] for d in dropped} >= {"goal", "policy"}
    assert all(d["detail"] and d["episode"]["turns"] for d in dropped)
    kept = list(read_episodes(run / "dataset" / "episodes.jsonl"))
    assert all(e.verdict is not None and not e.verdict.audit["writes_without_consent"] for e in kept)
    ids = {d["id"] for d in dropped}
    assert ids.isdisjoint(e.id for e in kept)


def test_a_run_that_was_cut_off_goes_on_and_ends_as_if_it_had_not_been(muarl: Muarl, tmp_path: Path) -> None:
    whole = made(muarl, tmp_path / "whole", "-n", "10", *RETAIL)
    cut = made(muarl, tmp_path / "cut", "-n", "10", *RETAIL)
    ledger = cut / "episodes" / "retail-generated.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text("".join(lines[:4]) + lines[4][:100])  # killed while it wrote the fifth
    for file in (cut / "dataset").iterdir():
        file.unlink()
    muarl("coldstart", "--resume", str(cut), ok=True)
    plain = [dataset.read(run / "dataset") for run in (whole, cut)]
    assert [[e.id, [m.to_json() for m in e.messages]] for e in plain[0]] == [
        [e.id, [m.to_json() for m in e.messages]] for e in plain[1]
    ]
    assert ledger.read_text().count("\n") == 10
    assert ledger.read_text().startswith("".join(lines[:4])), "what was finished is not made again"


def polite(body: dict[str, Any]) -> Any:
    """A teacher that never does anything, and a customer who soon goes."""
    if body.get("tools"):
        return text("What else can I do for you?")
    said = sum(m["role"] == "assistant" for m in body["messages"])
    return text("I wish you a good day." if said < 2 else "###STOP###")


def models(server: FakeOpenAI) -> tuple[str, ...]:
    spec = f"endpoint:fake@{server.url}"
    return ("--teacher", spec, "--user", spec, "user.guidelines=muarl", "coldstart.endpoint.attempts=1")


def test_models_make_conversations_and_what_they_use_is_on_the_card(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(polite, key=KEY) as server:
        run = made(muarl, tmp_path, "-n", "2", *RETAIL, *models(server), "coldstart.attempts=2")
        asked = len(server.bodies)
        card = json.loads((run / "dataset" / "card.json").read_text())
        assert card["dropped"] >= 2
        assert set(card["dropped_by"]) <= {"goal", "user"}
        assert card["usage"]["requests"] > 0
        page = (run / "dataset" / "README.md").read_text()
        assert f"{card['usage']['requests']} requests" in page and "not known (no prices named)" in page
        muarl("coldstart", "--resume", str(run), ok=True)
        check = [b for b in server.bodies[asked:] if b["messages"][-1]["content"] != "Answer with the word ready."]
        assert check == [], "nothing is paid for twice"


def test_nonsense_and_failures_cost_their_conversations_only(muarl: Muarl, tmp_path: Path) -> None:
    turn = iter(range(10_000))

    def moody(body: dict[str, Any]) -> Any:
        n = next(turn)
        if body["messages"][-1]["content"] == "Answer with the word ready.":
            return text("ready")
        if not body.get("tools"):
            return polite(body)
        wrong = (status(500), status(429), call("no_such_tool", {}), call("get_order_details", "{not json"))
        return (*wrong, text("Hello."))[n % 5]

    with FakeOpenAI(moody, key=KEY) as server:
        run = made(muarl, tmp_path, "-n", "3", *RETAIL, *models(server), "coldstart.attempts=2")
    dropped = rows(run / "dataset" / "dropped.jsonl")
    kept = rows(run / "dataset" / "messages.jsonl")  # doing nothing is right in a few tasks
    assert len(dropped) + len(kept) == 6
    assert {d["filter"] for d in dropped} <= {"finished", "schema", "errors", "goal", "user", "repetition"}
    assert any(d["filter"] in ("finished", "schema") for d in dropped)
    assert KEY not in (run / "dataset" / "dropped.jsonl").read_text()


def test_the_judge_has_the_last_word_and_is_asked_once(muarl: Muarl, tmp_path: Path) -> None:
    def judge(body: dict[str, Any]) -> Any:
        return text(json.dumps({"results": [{"metExpectation": False, "expectedOutcome": "", "reasoning": ""}]}))

    with FakeOpenAI(judge, key=KEY) as server:
        spec = f"endpoint:judge@{server.url}"
        run = made(muarl, tmp_path, "-n", "2", *RETAIL, "--judge", spec, "coldstart.attempts=2")
        assert {d["filter"] for d in rows(run / "dataset" / "dropped.jsonl")} == {"judge"}
        asked = len(server.bodies)
        muarl("coldstart", "--resume", str(run), ok=True)
        assert len(server.bodies) <= asked + 1, "but for the question whether it is there"


def test_a_budget_ends_the_run_and_says_how_to_go_on(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(polite, key=KEY) as server:
        args = (*models(server), "--max-tokens", "60", "coldstart.concurrency=1")
        result = muarl("coldstart", "--name", "cs", "-n", "20", *RETAIL, *args, f"runs_dir={tmp_path}", ok=True)
    assert "token budget is spent" in result.output and "--resume" in result.output
    card = json.loads((tmp_path / "cs" / "dataset" / "card.json").read_text())
    assert card["kept"] + card["dropped"] < 20


def test_a_budget_counts_everything_that_was_tried_for_a_scenario(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(polite, key=KEY) as server:
        args = (*models(server), *RETAIL, "coldstart.concurrency=1", "coldstart.attempts=3", f"runs_dir={tmp_path}")
        muarl("coldstart", "--name", "one", "-n", "1", *args, "coldstart.attempts=1", ok=True)
        usage = json.loads((tmp_path / "one" / "dataset" / "card.json").read_text())["usage"]
        once = usage["prompt_tokens"] + usage["completion_tokens"]
        muarl("coldstart", "--name", "cs", "-n", "4", *args, "--max-tokens", str(6 * once), ok=True)
    card = json.loads((tmp_path / "cs" / "dataset" / "card.json").read_text())
    used = card["usage"]["prompt_tokens"] + card["usage"]["completion_tokens"]
    assert used < 8 * once, "though every round of tries would be within it by itself"
    assert card["kept"] + card["dropped"] < 9


def test_a_resumed_run_keeps_the_account_of_those_who_take_part_in_no_conversation(
    muarl: Muarl, tmp_path: Path
) -> None:
    def judge(body: dict[str, Any]) -> Any:
        return text(json.dumps({"results": [{"metExpectation": True, "expectedOutcome": "", "reasoning": ""}]}))

    scenarios = (*RETAIL, "--scenario", "telecom-generated")
    with FakeOpenAI(judge, key=KEY) as server:
        run = made(muarl, tmp_path, "-n", "4", *scenarios, "--judge", f"endpoint:own-account@{server.url}")
        card = json.loads((run / "dataset" / "card.json").read_text())
        assert (card["kept"], card["usage"]["requests"]) == (4, 4)
        muarl("coldstart", "--resume", str(run), ok=True)
        assert json.loads((run / "dataset" / "card.json").read_text())["usage"] == card["usage"]


@pytest.mark.parametrize("change", ["--seed=9", "coldstart.size=small", "user.persona=terse"])
def test_a_run_goes_on_with_its_own_conversations_only(muarl: Muarl, tmp_path: Path, change: str) -> None:
    run = made(muarl, tmp_path, "-n", "3", *RETAIL)
    before = {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}
    result = muarl("coldstart", "--resume", str(run), change)
    assert result.exit_code == 2 and "was made with other settings" in " ".join(result.stderr.split()), result.output
    other = muarl("coldstart", "--resume", str(run), change, "--scenario", "telecom-generated", *RETAIL)
    assert other.exit_code == 2, "though the scenario that comes first has no conversations yet"
    assert {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    muarl("coldstart", "--resume", str(run), ok=True)


def test_a_run_may_go_on_to_more_conversations_than_it_was_begun_for(muarl: Muarl, tmp_path: Path) -> None:
    run = made(muarl, tmp_path, "-n", "3", *RETAIL)
    ids = [e.id for e in dataset.read(run / "dataset")]
    muarl("coldstart", "--resume", str(run), "-n", "5", ok=True)
    assert [e.id for e in dataset.read(run / "dataset")][:3] == ids
    assert len(dataset.read(run / "dataset")) == 5


def test_a_bound_on_money_needs_to_know_what_things_cost(muarl: Muarl, tmp_path: Path) -> None:
    spec = "endpoint:fake@http://127.0.0.1:9/v1"
    for args in (("--teacher", spec), ("--judge", spec), ("--user", spec, "user.guidelines=muarl")):
        result = muarl("coldstart", *RETAIL, *args, "--max-cost", "1", f"runs_dir={tmp_path}")
        assert result.exit_code == 2, result.output
        told = " ".join(result.stderr.split())
        assert "coldstart.max_cost" in told and "fake" in told and "coldstart.max_tokens" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--scenario", "shoes-generated"), ("shoes-generated", "`muarl domains` lists them")),
        (("--teacher", "gpt"), ("--teacher", "endpoint:MODEL")),
        (("coldstart.tools=imagined",), ("tools_endpoint.model",)),
        (("--check", "/nowhere"), ("/nowhere",)),
    ],
)
def test_bad_input_is_told_before_any_work(muarl: Muarl, tmp_path: Path, args: Any, words: Any) -> None:
    result = muarl("coldstart", *args, f"runs_dir={tmp_path}")
    assert result.exit_code == 2, result.output
    assert all(word in result.stderr.replace("\n", " ") for word in words), result.stderr
    assert not list(tmp_path.iterdir())


def test_an_episode_without_its_context_is_no_row() -> None:
    bare = Episode("e", "t", "d", [Turn(Message("user", "Hi"))], StopReason.USER_STOP)
    with pytest.raises(ValueError, match="was told"):
        dataset.message_row(bare)


def test_a_team_makes_conversations_from_a_folder_of_its_own(muarl: Muarl, tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "library")
    with FakeOpenAI(everybody, key=KEY) as server:
        spec = f"endpoint:fake@{server.url}"
        args = ("--scenario", str(folder), *models(server), "--tools", spec, "coldstart.near_duplicate=1")
        run = made(muarl, tmp_path, "-n", "3", *args, "coldstart.attempts=3")
        card = json.loads((run / "dataset" / "card.json").read_text())
        assert card["kept"] == 3, (run / "dataset" / "dropped.jsonl").read_text()[:2000]
        (row, *_) = rows(run / "dataset" / "messages.jsonl")
        assert row["scenario"] == "library" and row["tools"][0]["function"]["name"] == "find_book"
        assert any("B12" in str(m["content"]) for m in row["messages"] if m["role"] == "tool")
        assert len(rows(run / "episodes" / "library.tasks.jsonl")) >= 3
        ready = sum(b["messages"][-1]["content"] == "Answer with the word ready." for b in server.bodies)
        assert card["usage"]["requests"] == len(server.bodies) - ready, "whoever was asked is on the account"
        result = muarl("coldstart", "--check", str(run / "dataset"), ok=True)
        assert "3 have tools that a model played, and no world" in result.output


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "intents.txt").write_text("# nothing\n"), ("intents.txt", "empty")),
        (lambda f: (f / "intents.txt").unlink(), ("intents.txt",)),
        (lambda f: (f / "tools.json").write_text("{"), ("tools.json", "JSON")),
        (lambda f: (f / "policy.md").unlink(), ("policy.md",)),
    ],
)
def test_what_is_wrong_with_a_folder_is_told_with_its_file(
    muarl: Muarl, tmp_path: Path, spoil: Any, words: Any
) -> None:
    folder = own_folder(tmp_path / "library")
    spoil(folder)
    spec = "endpoint:fake@http://localhost:9"
    args = ("--scenario", str(folder), "--teacher", spec, "--user", spec, "--tools", spec)
    result = muarl("coldstart", *args, f"runs_dir={tmp_path / 'runs'}")
    assert result.exit_code == 2 and not (tmp_path / "runs").exists()
    assert all(word in result.stderr.replace("\n", "") for word in words), result.stderr


def test_a_folder_needs_models(muarl: Muarl, tmp_path: Path) -> None:
    result = muarl("coldstart", "--scenario", str(own_folder(tmp_path / "library")))
    assert result.exit_code == 2 and "--teacher" in result.stderr


def test_what_a_model_played_is_checked_against_the_goal_and_can_be_had_again(muarl: Muarl, tmp_path: Path) -> None:
    (task,) = find("hotel-generated").make_tasks("train", 1, size="medium", seed=0, start=0)
    teacher = PerfectTeacher("hotel", task)

    def answer(body: dict[str, Any]) -> Any:
        ready = body["messages"][-1]["content"] == "Answer with the word ready."
        return text("ready") if ready else teacher(body)

    with FakeOpenAI(answer, key=KEY) as server:
        tools = ("--tools", f"endpoint:fake@{server.url}")
        run = made(muarl, tmp_path, "-n", "1", "--scenario", "hotel-generated", *tools)
        asked = len(server.bodies)
        (episode,) = read_episodes(run / "dataset" / "episodes.jsonl")
        assert episode.reward == 1.0 and episode.verdict is not None and set(episode.verdict.breakdown) == {"GOAL"}
        made_calls = [c.name for m in episode.messages if m.role == "assistant" for c in m.tool_calls]
        assert [call["name"] for call in episode.tags["played"]] == made_calls
        result = muarl("coldstart", "--check", str(run / "dataset"), ok=True)
        assert "1 conversations came out as recorded, 0 did not" in result.output
        assert len(server.bodies) == asked, "no model is asked again"
