"""``muarl env serve``: what is refused before any work, and a server from its first line to its last."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from muarl.basics.web.addresses import listen
from muarl.cli.main import app
from support.fake_openai import FakeOpenAI, status, text

TOKEN = "a-token-of-the-tests-and-long"


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUARL_ENV_TOKEN", "MUARL_ENV_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


def serve(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["env", "serve", *arguments])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retail-generatd"], "did you mean retail-generated?"),
        (["retail-generated", "retail-generated"], "two of the environments are called retail-generated"),
        (["retail-generated", "--split", "nothing"], "--split: retail-generated has no tasks for the split 'nothing'"),
        (["retail-generated", "--size", "huge"], "--size is huge"),
        (["retail-generated", "--user", "bob"], "--user: 'bob' is unknown"),
        (["retail-generated", "--host", "0.0.0.0"], "MUARL_ENV_TOKEN"),
        (["retail-generated", "--allow-base-url", "localhost:80"], "base URL must look like"),
        (["./nothing.py:X"], "there is no file"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str) -> None:
    done = serve(*arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_an_address_that_is_taken_and_a_user_that_does_not_answer() -> None:
    with listen("127.0.0.1", 0) as taken:
        done = serve("retail-generated", "--port", str(taken.getsockname()[1]))
    assert done.exit_code == 2 and "choose another port" in done.output
    with FakeOpenAI(status(401)) as user:
        done = serve("retail-generated", "--port", "0", "--user", f"endpoint:u@{user.url}")
    assert done.exit_code == 2 and "refuses the API key" in done.output


@pytest.mark.data
def test_a_benchmark_is_called_one(install_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    async def begins_and_ends(*arguments: Any) -> int:
        arguments[-1](SimpleNamespace(loopback=True, where=SimpleNamespace(url="http://127.0.0.1:1")))
        return 0

    install_data("bfcl")
    monkeypatch.setattr("muarl_tools.commands.env._serve", begins_and_ends)
    assert "For evaluation: bfcl-v3." in serve("retail-generated", "bfcl-v3").output
    assert "For evaluation" not in serve("retail-generated").output


@pytest.mark.slow
def test_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from muarl import *\n"
        "class Own(Domain):\n    'A place.'\n    name = 'own'\n    policy = 'Be kind.'\n    database = {'a': {}}\n"
        "OWN = Environment(name='own', domain=Own, tasks={'test': [Task('t', 'own', 'You want a.', None)]})\n"
    )
    with FakeOpenAI([text("ready"), text("Hi."), text("###STOP###")]) as user, FakeOpenAI(text("Hello.")) as agent:
        command = ("env", "serve", "./own.py:OWN", "--port", "0", "--user", f"endpoint:u@{user.url}")
        process = subprocess.Popen(
            [sys.executable, "-c", "from muarl.cli.main import main; main()", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "MUARL_ENV_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1", "OPENAI_API_KEY": "of-the-server"},
        )
        assert process.stdout is not None
        assert "Preparing ./own.py:OWN ..." in process.stdout.readline()
        first = process.stdout.readline()
        found = re.fullmatch(r"Serving own at (http://127\.0\.0\.1:\d+)\n", first)
        assert found, first + process.stdout.read()
        with httpx.Client(base_url=found[1], headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
            body = {"index": 0, "base_url": agent.url, "model": "m"}
            played = client.post("/run", json=body).json()
        assert played["stop"] == "user_stop" and played["task"] == "own:test:0", played
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(60) == 0 and "Stopped. 1 conversation played." in rest and TOKEN not in first + rest
    assert "You want a." in str(user.bodies[1]) and user.requests[1].headers["authorization"] == "Bearer of-the-server"
    assert "of-the-server" not in str(agent.requests[0].headers), "the server's own key is not a client's"
