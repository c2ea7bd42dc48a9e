"""The bookshop is an environment like any other: every command takes it, and its tasks are sound."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from muarl.agents.expert import ExpertAgent
from muarl.audit.metrics import audit
from muarl.audit.rules import keep_rules
from muarl.cli.main import app
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments import registry
from muarl.environments.environment import Environment
from muarl.observe.rundir import RunDirectory
from muarl.rewards.outcome import do_nothing, score
from muarl.rollouts.conversation import run_episode
from muarl.types.episode import Episode

WIDE = {"COLUMNS": "200"}


@pytest.fixture
def reference(repository: Path) -> str:
    return f"{repository / 'examples' / 'bookshop' / 'shop.py'}:BOOKSHOP"


@pytest.fixture
def bookshop(reference: str) -> Environment:
    return registry.load_reference(reference)


def muarl(*arguments: object, **options: Any) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env=WIDE, **options)


def played(bookshop: Environment, task: Task, errors: ErrorProfile) -> Episode:
    """One conversation of the expert with the customer, scored."""
    domain = bookshop.make_domain()
    world, expert = domain.world(task), ExpertAgent(errors, make=bookshop.expert)
    user = bookshop.needed_user()(task, seed=0)
    episode = asyncio.run(run_episode(task, world, expert, user, rules=bookshop.rules))
    episode.verdict = asyncio.run(score(task, world, episode.messages, episode.stop))
    return episode


HASTY = ErrorProfile(skip_confirmation=1.0)


def test_it_is_small(repository: Path) -> None:
    files = (repository / "examples" / "bookshop").rglob("*.py")
    assert sum(len(file.read_text().splitlines()) for file in files) <= 250


def test_every_intent_is_practised_in_every_variant(bookshop: Environment) -> None:
    tasks = bookshop.make_tasks("train", 150)
    intents = {task.tags["intent"] for task in tasks}
    assert intents >= {
        "cancel_order",
        "change_address",
        "refund_order",
        "order_book",
        "track_order",
        "order_book_unavailable",
        "refund_order_handover",
        "forbidden",
        "outside",
        "two_requests",
    }
    domain = bookshop.make_domain()
    idle = [asyncio.run(do_nothing(domain, task)).reward for task in tasks]
    assert sum(idle) / len(idle) <= 0.15


def test_the_splits_share_no_customer(bookshop: Environment) -> None:
    def people(split: str) -> set[str]:
        return {(task.agenda or {})["identity"]["name"] for task in bookshop.make_tasks(split, 25)}

    train, validation, test = map(people, bookshop.splits)
    assert not train & test
    assert not train & validation
    assert not validation & test


def test_the_reward_sees_what_was_done_and_the_audit_how(bookshop: Environment) -> None:
    domain = bookshop.make_domain()
    tasks = [t for t in bookshop.make_tasks("test", 30) if t.tags["intent"] in ("cancel_order", "change_address")]
    for task in tasks[:4]:
        for errors, unasked in ((ErrorProfile(), 0), (HASTY, 1)):
            episode = played(bookshop, task, errors)
            found = audit(episode, task, domain.kind_of, bookshop.audit_rules(domain))
            assert found["writes_without_consent"] == unasked
            if not unasked:
                assert episode.reward == 1 and episode.stop == "user_stop", task.id


def test_the_commands_of_its_page(reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = muarl("generate", reference, "--count", "20")
    assert made.exit_code == 0, made.output
    assert "20 test tasks of bookshop, size tiny (seed 0)" in made.output
    said = " ".join(made.output.split())
    assert "reward of expert 100.0%" in said
    talk = muarl("chat", "expert", "--domain", reference, "--user", "agenda")
    assert talk.exit_code == 0, talk.output
    assert "1 (DB right" in talk.output
    done = muarl("eval", reference, "--agent", "expert", "--user", "agenda", "--tasks", "4", "eval.trials=1")
    assert done.exit_code == 0, done.output
    run = tmp_path / "runs" / "eval-bookshop"
    assert json.loads((run / "summary.json").read_text())["evaluation"]["success"] == 1.0
    found = muarl("audit", run, "--domain", reference, "--fail-on", "violation")
    assert found.exit_code == 0, found.output
    assert "Rules: bookshop (12)." in found.output
    assert muarl("view", run, "--domain", reference, "--export", "pages").exit_code == 0
    pages = " ".join(page.read_text() for page in Path("pages").rglob("*.html"))
    assert "orders / B-" in pages, "what calls changed in the database"


def test_a_run_is_audited_by_its_own_rules_without_its_code(bookshop: Environment, tmp_path: Path) -> None:
    task = next(t for t in bookshop.make_tasks("test", 30) if t.tags["intent"] == "cancel_order")
    with RunDirectory(tmp_path, "shop") as run:
        run.write_tasks([task])
        run.write_episodes("eval", [played(bookshop, task, errors) for errors in (HASTY, ErrorProfile())])
        keep_rules(run.path, bookshop.make_domain(), bookshop.audit)
    registry._approved.clear()
    found = muarl("audit", run.path, "--fail-on", "violation")
    assert found.exit_code == 3, found.output
    for words in (
        "write-without-consent",
        "Rules: bookshop (audit-rules.yaml)",
        "not applied here: forbids: order_book",
    ):
        assert words in found.output, words
    assert "missing-write" not in found.output
    run.path.joinpath("audit-rules.yaml").unlink()
    bare = muarl("audit", run.path, "--fail-on", "catastrophic")
    assert bare.exit_code == 2
    assert "Rules: none for bookshop (2)." in bare.output
    assert "not checked" in bare.output


@pytest.mark.slow
def test_all_stages_run_on_it(reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ("base.steps=4", "base.conversations=64", "base.batch=8", "base.hidden=32", "base.heads=4")
    made = muarl("base", "--domain", reference, "--name", "shop-base", *small)
    assert made.exit_code == 0, made.output
    quick = ("sft.steps=2", "sft.demonstrations=16", "rl.steps=2", "rl.tasks_per_step=2", "rl.group_size=2")
    less = (
        "rl.eval_every=0",
        "eval.tasks=4",
        "eval.trials=1",
        "model.checkpoint=runs/shop-base",
        "model.max_context=1024",
    )
    done = muarl("quickstart", "--domain", reference, "--name", "shop", *quick, *less)
    assert done.exit_code == 0, done.output
    again = muarl("train", "--checkpoint", "runs/shop", "--domain", reference, "--name", "more", *quick[2:], *less[:3])
    assert again.exit_code == 0, again.output
