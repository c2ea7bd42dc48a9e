"""Configurations and run folders of strangers, against a server that notes what it is sent."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from muarl.cli.main import app
from support.fake_openai import FakeOpenAI, text

OPENAI, OTHER = "sk-for-openai-alone", "another-services-secret"
Eval = Callable[..., Any]


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI)
    monkeypatch.setenv("OTHER_SERVICE", OTHER)
    with FakeOpenAI(lambda body: text("###STOP###" if len(body["messages"]) > 3 else "Cancel my order.")) as fake:
        yield fake


@pytest.fixture
def evaluate(tmp_path: Path) -> Eval:
    """``evaluate("--resume", run)``, or with what a configuration file of somebody else says."""

    def run(*arguments: str, theirs: dict[str, Any] | None = None) -> Any:
        given = list(arguments)
        if theirs is not None:
            path = tmp_path / "theirs" / "theirs.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(yaml.safe_dump({"extends": "quickstart", **theirs}))
            given = ["-c", str(path), *given]
        if "--resume" not in given:
            given += ["--agent", "expert", "eval.tasks=2", "eval.baseline=false", f"runs_dir={tmp_path / 'runs'}"]
        return CliRunner().invoke(app, ["eval", *given])

    return run


def customer(server: FakeOpenAI, **more: Any) -> dict[str, Any]:
    return {"kind": "llm", "endpoint": {"model": "m", "base_url": server.url, "attempts": 1, **more}}


def sent(server: FakeOpenAI) -> str:
    return repr([(r.headers, r.body) for r in server.requests])


def test_a_strangers_server_is_sent_no_key(evaluate: Eval, stranger: FakeOpenAI) -> None:
    result = evaluate(theirs={"eval_user": customer(stranger)})
    assert result.exit_code == 0, result.output
    assert len(stranger.requests) > 2
    assert OPENAI not in sent(stranger)
    host = stranger.url.removeprefix("http://").removesuffix("/v1")
    assert f"eval_user: m at {host} without a key (api_key_env is empty; where it is not your choice" in result.stderr

    named = evaluate("--user", f"endpoint:m@{stranger.url}", theirs={"eval_user": customer(stranger)})
    assert named.exit_code == 0, named.output
    assert stranger.requests[-1].headers["authorization"] == f"Bearer {OPENAI}"
    assert f"eval_user: m at {host} with the key OPENAI_API_KEY" in named.stderr


def test_what_wants_a_key_or_a_file_is_refused_before_anything_is_sent(
    evaluate: Eval, stranger: FakeOpenAI, tmp_path: Path
) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("a private file")
    wanted: list[tuple[dict[str, Any], str]] = [
        ({"eval_user": customer(stranger, api_key_env="OTHER_SERVICE")}, "OTHER_SERVICE_HOST"),
        ({"eval_user": customer(stranger), "domain": {"policy": str(secret)}}, "domain.policy"),
    ]
    for theirs, words in wanted:
        result = evaluate(theirs=theirs)
        assert result.exit_code == 2, result.output
        assert "theirs.yaml" in result.stderr and words in result.stderr.replace("\n", " ")
        assert "Traceback" not in result.output
    assert not stranger.requests
    assert not (tmp_path / "runs").exists()


def test_ones_own_run_goes_on_by_itself_and_a_strangers_copy_does_not(
    evaluate: Eval, stranger: FakeOpenAI, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.md"
    policy.write_text("Help the customer.")
    given = ["--user", f"endpoint:m@{stranger.url}", "eval_user.endpoint.api_key_env=OTHER_SERVICE"]
    first = evaluate("-c", "quickstart", *given, f"domain.policy={policy}", "--name", "mine")
    assert first.exit_code == 0, first.output
    mine = tmp_path / "runs" / "mine"
    again = evaluate("--resume", str(mine))
    assert again.exit_code == 0, again.output
    assert stranger.requests[-1].headers["authorization"] == f"Bearer {OTHER}"

    theirs, before = tmp_path / "theirs", len(stranger.requests)
    shutil.copytree(mine, theirs)
    result = evaluate("--resume", str(theirs))
    assert result.exit_code == 2, result.output
    assert "domain.policy" in result.stderr
    config = yaml.safe_load((theirs / "config.yaml").read_text())
    config["domain"]["policy"] = None
    (theirs / "config.yaml").write_text(yaml.safe_dump(config))
    result = evaluate("--resume", str(theirs))
    assert result.exit_code == 2, result.output
    assert "OTHER_SERVICE_HOST" in result.stderr
    assert len(stranger.requests) == before
