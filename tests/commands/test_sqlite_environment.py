"""An environment on a SQLite file, examples/sqlite_shop, generated, played, audited and viewed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.environments import registry
from support.fake_openai import Answer, FakeOpenAI, call, completion, text
from support.sqlite_shop import change, checksum

SHOP = "./shop.py:SHOP"


@pytest.fixture
def folder(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the example's database and code."""
    monkeypatch.setattr(registry, "_approved", set())
    monkeypatch.setattr(sys, "path", list(sys.path))
    example = repository / "examples" / "sqlite_shop"
    subprocess.run([sys.executable, example / "make_database.py"], cwd=tmp_path, check=True, timeout=60)
    (tmp_path / "shop.py").write_text((example / "shop.py").read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def muarl(*arguments: object, code: int = 0) -> str:
    """What a command prints; it must end with that code."""
    result: Result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "250"})
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def clerk(body: dict[str, Any]) -> Answer:
    """A model that serves the shop's customers rightly."""
    messages = body["messages"]
    if not body.get("tools"):
        return text("ok")  # asked whether it is there
    heard = " ".join(m["content"] for m in messages if m["role"] == "user")
    email, number = re.search(r"p\d+@example.org", heard), re.search(r"order (\d+)", heard)
    answers = [json.loads(m["content"]) for m in messages if m["role"] == "tool"]
    if email is None or number is None:
        return text("What is your email address?")
    if not answers:
        return completion(tool_calls=[call("find_orders", {"email": email[0]}, "1")])
    if len(answers) == 2:
        return text("It is cancelled. Goodbye.")
    (order,) = (order for order in answers[0] if order["id"] == int(number[1]))
    if order["status"] != "open":
        return text("I am sorry, it is shipped already, so it cannot be cancelled.")
    if "Yes" in heard:
        return completion(tool_calls=[call("cancel", {"order_id": order["id"]}, "2")])
    return text(f"I will cancel order {order['id']}. Shall I go ahead?")


def test_it_is_generated_played_audited_and_viewed_and_the_file_stays_as_it_is(folder: Path) -> None:
    before = checksum(folder / "shop.sqlite")
    said = muarl("generate", SHOP, "--count", 40, "--out", "tasks.jsonl")
    assert "40 test tasks of shop (seed 0)" in said and "reward of do-nothing" in said
    with FakeOpenAI(clerk) as server:
        agent = f"endpoint:m@{server.url}"
        muarl("eval", SHOP, "--agent", agent, "--user", "agenda", "--tasks", 8, "--trials", 1)
    run = Path("runs/eval-shop")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["evaluation"]["episodes"] == 8 and summary["evaluation"]["success"] == 1.0
    assert "shop" in muarl("audit", run, "--domain", SHOP)
    muarl("view", run, "--export", "pages", "--domain", SHOP)
    pages = " ".join(" ".join(page.read_text() for page in Path("pages").rglob("*.html")).split())
    assert "replaying the episode’s calls" in pages and "cancelled" in pages
    assert checksum(folder / "shop.sqlite") == before
    assert not [path for path in folder.iterdir() if path.name.startswith("shop.sqlite-")]


def test_a_file_that_is_missing_or_lacks_a_table_is_told_before_any_work(folder: Path) -> None:
    change(folder / "shop.sqlite", "ALTER TABLE orders RENAME TO order_list")
    said = muarl("generate", SHOP, "--count", 2, code=2)
    assert "Shop.database: there is no table 'orders'; did you mean 'order_list'?" in said
    (folder / "shop.sqlite").unlink()
    assert "shop.sqlite cannot be read: No such file" in muarl("generate", SHOP, "--count", 2, code=2)


def test_a_file_that_changes_during_a_run_ends_it(folder: Path) -> None:
    def meddling(body: dict[str, Any]) -> Answer:
        if body.get("tools") and any(m["role"] == "tool" for m in body["messages"]):
            change(folder / "shop.sqlite", "UPDATE orders SET price = price + 1")
        return clerk(body)

    with FakeOpenAI(meddling) as server:
        agent = f"endpoint:m@{server.url}"
        said = muarl("eval", SHOP, "--agent", agent, "--user", "agenda", "--tasks", 4, "--trials", 1, code=2)
    assert "shop.sqlite has changed since it was opened" in said
