"""Every command that may take more than a moment says on standard error what it does before it begins to.

The work itself is replaced: it looks at what standard error holds by then, and ends the command. So a command that is
silent is found without a clock.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from muarl.basics.errors import MuarlError
from muarl.basics.extras import is_installed
from muarl.cli.main import app
from muarl.observe import terminal
from support.viewing import make_run

INSTANT = {
    "init", "presets", "version", "data list", "mcp list", "model list", "tasks show", "user proxy",
}  # fmt: skip
"""Commands that print or write a little and are done; and one that listens at once."""

BEFOREHAND = "muarl.runs.checks.check_beforehand"
WORK = {
    "audit": ("muarl_tools.auditing.conversations.ConversationReader.read", "FILE"),
    "base": (BEFOREHAND, ""),
    "chat": ("muarl.environments.environment.Environment.make_tasks", "expert --user agenda"),
    "coldstart": (BEFOREHAND, ""),
    "compare": ("muarl_tools.compare.reading.read_all", "FILE FILE"),
    "data add": ("muarl_worlds.install.add", "tau2 --from ."),
    "data fetch": ("muarl_worlds.install.fetch", "tau2"),
    "data overlap": ("muarl_tools.commands.tasksets.task_set", "--training retail-generated"),
    "doctor": ("muarl_tools.commands.doctor.checks", "--no-speed"),
    "domains check": ("muarl_tools.checks.environment.rules.run_checks", "retail-generated"),
    "domains list": ("muarl.environments.registry.find", ""),
    "domains show": ("muarl.environments.configure.briefing", "retail-generated"),
    "env export": ("muarl_tools.publish.publishing.publish", "retail-generated --as openenv"),
    "env serve": ("muarl_tools.commands.env._check", "retail-generated"),
    "eval": (BEFOREHAND, "retail-generated --agent expert"),
    "export": ("muarl_tools.export.export", "base"),
    "generate": ("muarl.environments.environment.Environment.make_tasks", ""),
    "mcp install": ("muarl.domains.mcp.servers.install", "git"),
    "mcp serve": ("muarl_tools.commands.mcp.pick", "retail-generated"),
    "mcp tools": ("muarl_tools.commands.mcp._tools_of", "python server.py"),
    "model fetch": ("muarl.backends.pretrained.fetch", "smollm2"),
    "model import": ("muarl.learning.gguf.import_gguf", "FILE --to FOLDER"),
    "plan": ("muarl.backends.plans.plan_of", "mua-8b"),
    "quickstart": (BEFOREHAND, ""),
    "replay": ("muarl_tools.commands.bench.replay_jobs", "tau2 --calls FILE --out OUT"),
    "report": ("muarl.report.report.collect", "RUN"),
    "reproduce": ("muarl_tools.experiments.stages.Experiment.run", ""),
    "runs": ("muarl.observe.listing.list_runs", "."),
    "score": ("muarl_tools.commands.bench.jobs", "tau2 --trajectories FILE --out OUT"),
    "seeds": ("muarl_tools.experiments.stages.launch", "0 quickstart"),
    "serve": ("muarl_tools.serve_model.recipe.serve", "base --port 0"),
    "sft": (BEFOREHAND, ""),
    "sft-user": (BEFOREHAND, ""),
    "tasks check": ("muarl_tools.checks.tasks.sources.open_source", "retail-generated"),
    "tasks confirm": ("muarl.environments.environment.Environment.make_domain", "FILE --clean"),
    "tasks from-log": ("muarl.environments.environment.Environment.make_domain", "FILE --out OUT"),
    "tasks practise": ("muarl_tools.commands.tasks_practise._episodes", "RUN --out OUT"),
    "train": (BEFOREHAND, "--checkpoint base"),
    "train-user": (BEFOREHAND, "--checkpoint base --agent expert"),
    "user check": ("muarl_tools.commands.user._config", "agenda"),
    "user fit": ("muarl.environments.environment.Environment.place", "FILE --out settings.yaml"),
    "view": ("muarl_tools.view.runs.Library.__init__", "RUN"),
}
"""By command, where its work begins, and arguments that lead there."""

NEEDS_TORCH = {"export", "model fetch", "model import", "plan", "reproduce", "serve", "base", "quickstart", "sft",
               "sft-user", "train", "train-user"}  # fmt: skip


def commands(group: Any, before: str = "") -> Iterator[str]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} ")
        else:
            yield before + name


def test_every_command_is_instant_or_said_to_show_a_sign() -> None:
    known = set(commands(typer.main.get_command(app)))
    assert known == INSTANT | set(WORK), "add a new command to INSTANT, or to WORK with the place where its work begins"
    assert not INSTANT & set(WORK)


class ReachedError(MuarlError):
    """The work would begin now."""


@pytest.mark.parametrize("command", sorted(WORK))
def test_a_sign_is_on_standard_error_before_the_work_begins(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command in NEEDS_TORCH and not is_installed("torch"):
        pytest.skip("needs torch")
    place, arguments = WORK[command]
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("")
    if "RUN" in arguments:
        make_run(tmp_path, "RUN")
    said: list[bytes] = []

    def work(*_: Any, **__: Any) -> Any:
        sys.stderr.flush()
        said.append(sys.stderr.buffer.getvalue())  # type: ignore[attr-defined]
        raise ReachedError("reached")

    monkeypatch.setattr(place, work)
    done = CliRunner().invoke(app, [*command.split(), *arguments.split()])
    assert said, f"the work of muarl {command} begins elsewhere: {done.output}"
    assert said[0].strip(), f"muarl {command} is silent before its work"
    assert said[0].decode() not in done.stdout, "a sign is no output"


def test_json_alone_is_on_standard_output(tmp_path: Path) -> None:
    import json

    run = make_run(tmp_path).path
    done = CliRunner().invoke(app, ["runs", str(run.parent), "--json"])
    assert json.loads(done.stdout)[0]["name"] == "mine"
    assert done.stderr.startswith("Reading the runs in")


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich takes the streams for a terminal's."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")


def test_on_a_terminal_the_sign_goes_with_its_block(on_terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.working("Making tasks"):
        assert len(terminal._signs) == 1
        terminal.echo("beside it")
    assert not terminal._signs
    told = capsys.readouterr()
    assert told.out == "beside it\n", "standard output has what is printed alone, whatever the terminal shows"
    assert "Making tasks" in told.err and told.err.endswith("\x1b[2K"), "and the line is taken away"


def test_on_a_terminal_bars_take_the_place_of_the_sign(on_terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    from muarl.observe.progress import Progress

    with terminal.working("Preparing"), Progress() as progress:
        progress.say("a line")
        assert terminal._signs, "a line is shown above the sign"
        with progress.phase("steps", 2) as phase:
            assert not terminal._signs, "bars and a sign would write over each other"
            phase.advance()
    assert "a line" in capsys.readouterr().err


def test_a_sign_within_another_is_shown_alone(on_terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.working("Outer"):
        with terminal.working("Inner"):
            assert [sign.live.is_started for sign in terminal._signs] == [False, True]
        assert [sign.live.is_started for sign in terminal._signs] == [True]
    assert "Inner" in capsys.readouterr().err


def test_elsewhere_the_sign_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError), terminal.working("Making \x1b[2Jtasks"):
        raise ValueError
    assert capsys.readouterr().err == "Making \\u001b[2Jtasks ...\n"
