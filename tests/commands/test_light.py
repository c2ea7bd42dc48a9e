"""Commands that need no model in their process import neither torch nor transformers, which take many seconds; and
mistakes are told before anything does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from muarl.config.load import load_config
from muarl.runs import roles

RUN = """
import json, os, socket, sys
from typer.testing import CliRunner
from muarl.cli.main import app
taken = socket.create_server(("127.0.0.1", 0))
told = []
for line in sys.stdin.read().splitlines():
    line = line.replace("PORT", str(taken.getsockname()[1]))
    found = CliRunner().invoke(app, line.split())
    heavy = [m for m in ("torch", "transformers", "renderers") if m in sys.modules]
    told.append([found.exit_code, found.output, heavy])
print(json.dumps(told))
"""
ENDPOINT = "endpoint:m@http://127.0.0.1:9/v1"
FILE = " ".join(f"{who}.kind=llm {who}.endpoint.model=m {who}.endpoint.base_url=http://127.0.0.1:9/v1"
                for who in ("user", "eval_user"))  # fmt: skip
WORK = (
    "--help",
    "train --help",
    "version",
    "generate --count 2",
    "eval --agent expert --tasks 2 runs_dir=R",
    "audit R/eval",
    "report R/eval",
    "view R/eval --export pages",
)
MISTAKES = (
    ("nosuch", "No such command"),
    ("train --config nosuch", "no preset 'nosuch'"),
    ("train rl.stpes=3", "did you mean 'rl.steps'"),
    ("train model.checkpoint=nosuch", "nosuch: no such checkpoint folder"),
    ("quickstart model.checkpoint=nosuch", "nosuch: no such checkpoint folder"),
    ("eval --checkpoint nosuch", "nosuch: no such checkpoint folder"),
    ("chat nosuch", "nosuch: no such checkpoint folder"),
    ("serve nosuch", "nosuch: no such checkpoint folder"),
    ("serve base --port PORT", "cannot be listened on"),
    (f"train --config cpu domain.tasks=nosuch.jsonl {FILE}", "nosuch.jsonl: there is no such file"),
    ("train runs_dir=file/runs", "runs_dir: no run can be kept in file/runs"),
    ("eval --agent expert runs_dir=file/runs", "runs_dir: no run can be kept in file/runs"),
    ("train user.kind=llm user.endpoint.model=m", "no API key"),
    ("eval --agent endpoint:m --tasks 2", "no API key"),
    (f"eval tau2-retail --user {ENDPOINT} --agent {ENDPOINT}", "the data of tau2 are not installed"),
    ("audit nosuch", "nosuch: no such file or folder"),
    ("view nosuch", "There is no run at nosuch"),
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each command says and has imported, one after another in a fresh process."""
    folder = tmp_path_factory.mktemp("light")
    (folder / "file").touch()
    lines = [*WORK, *(line for line, _ in MISTAKES)]
    keep = ("PATH", "PYTHONPATH", "SYSTEMROOT")
    found = subprocess.run(
        [sys.executable, "-c", RUN],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**{k: v for k, v in os.environ.items() if k in keep}, "HOME": str(folder)},
    )
    return dict(zip(lines, json.loads(found.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("line", WORK)
def test_work_without_a_model_imports_none_of_what_models_need(told: dict[str, list[Any]], line: str) -> None:
    code, output, heavy = told[line]
    assert code == 0, output
    assert not heavy


@pytest.mark.parametrize(("line", "words"), MISTAKES)
def test_mistakes_are_told_before_anything_heavy_is_imported(told: dict[str, list[Any]], line: str, words: str) -> None:
    code, output, heavy = told[line]
    assert code == 2, output
    assert words in " ".join(output.split())
    assert not heavy


def test_an_endpoint_that_answered_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer(found: list[tuple[str, str, Any]]) -> None:
        asked.extend(section for section, _, _ in found)

    monkeypatch.setattr(roles, "_ask", answer)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    cast = roles.Cast.of(load_config("cpu", ["user.kind=llm", "user.endpoint.model=m", "eval_user.kind=agenda"]))
    with roles.asked_once():
        roles.check_roles(cast, "user", bound=None)
        roles.check_roles(cast, "user", "judge", bound=None)
    assert asked == ["user.endpoint"]
    roles.check_roles(cast, "user", bound=None)
    assert len(asked) == 2, "outside of the block everybody is asked"
