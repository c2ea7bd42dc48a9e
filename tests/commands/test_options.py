"""Options and arguments of all commands: one word and one help for one meaning (muarl.cli.options)."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.cli.options import OLD, RUN, WORDS, given, in_runs, settings_of

APART = {
    "--agent": "the one that is evaluated; further ones that a user is checked with",
    "--domain": "of replay and score: a benchmark's domain, such as airline",
    "--guard": "of serve: the domain whose rules hold; of eval: the environment is known",
    "--name": "of serve: the model's, for clients; of seeds: the experiment's",
    "--rules": "a file of audit rules; names of rules that a proxy goes by",
    "--tools": "who plays them; print them",
}
"""Words that mean several things, each of one command or a few."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its path, but for groups."""

    def within(group: Any, path: list[str], parent: Any) -> Iterator[tuple[str, Any]]:
        context = group.make_context(path[-1] if path else "muarl", [], parent=parent, resilient_parsing=True)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if hasattr(command, "list_commands"):
                yield from within(command, [*path, name], context)
            else:
                yield " ".join([*path, name]), command

    return within(typer.main.get_command(app), [], None)


COMMANDS = dict(commands())


def options() -> Iterator[tuple[str, Any]]:
    for path, command in COMMANDS.items():
        for param in command.params:
            if param.param_type_name == "option" and param.name != "help":
                yield path, param


def words(path: str) -> set[str]:
    return {word for param in COMMANDS[path].params for word in param.opts}


def test_a_shared_option_has_one_word_and_one_help() -> None:
    used = defaultdict(list)
    for path, param in options():
        used[param.opts[0]].append((path, param))
    for word, found in used.items():
        if word not in WORDS:
            assert len(found) == 1 or word in APART, f"{word}: {[path for path, _ in found]}"
            continue
        about, *short = WORDS[word]
        for path, param in found:
            as_declared = param.opts == [word, *short] and param.help.startswith(about)
            assert as_declared or word in APART, f"muarl {path} {word}: {param.help}"
    assert used.keys() >= WORDS.keys() and used.keys() >= APART.keys(), "nothing is declared that no command has"


def test_no_two_words_say_the_same() -> None:
    said = defaultdict(set)
    for _, param in options():
        said[param.help].add(param.opts[0])
    assert [found for found in said.values() if len(found) > 1] == []


def test_settings_are_said_alike() -> None:
    for path, command in COMMANDS.items():
        for param in command.params:
            if "KEY=VALUE" in str(param.metavar) and param.param_type_name == "argument":
                assert param.metavar in ("KEY=VALUE", "[NAME] [KEY=VALUE]..."), path
                assert "ettings that override the configuration" in param.help, path


def test_commands_that_make_or_read_runs_take_the_folder_of_runs() -> None:
    making = {path for path in COMMANDS if words(path) & {"--resume", "--dry-run"}} | {"reproduce"}
    reading = {"runs", "view", "report", "audit", "compare", "export", "tasks practise", "chat", "serve"}
    assert making == {"quickstart", "base", "coldstart", "sft", "sft-user", "train", "train-user", "eval", "reproduce"}
    assert {path for path in COMMANDS if "--runs-dir" in words(path)} == making | reading
    named = {p for p, c in COMMANDS.items() for a in c.params if str(a.metavar or a.name).upper().startswith("RUN")}
    assert named - {"reproduce"} <= making | reading


def test_commands_that_print_json_take_json() -> None:
    printing = {path for path, c in COMMANDS.items() if "echo(json.dumps(" in inspect.getsource(c.callback)}
    assert printing >= {"compare", "plan", "doctor", "runs", "domains show"}
    assert {path for path in COMMANDS if "--json" in words(path)} == printing


def test_settings_of_options() -> None:
    asked = {"name": "a", "seed": 0, "runs_dir": None, "domain": [{"name": "x", "weight": 2.0}], "other": 1}
    assert settings_of(asked, RUN) == {"name": "a", "seed": 0, "domain.name": [{"name": "x", "weight": 2.0}]}
    found = given({"config": "cpu", "overrides": ["a=1"], "resume": None, **asked}, before=["name=base"])
    assert list(found.overrides) == ["name=base", "a=1"], "what is asked wins, as the later one"


OF_OLD = [(command, old, word) for command, found in OLD.items() for old, word in found.items()]


@pytest.mark.parametrize(("command", "old", "word"), OF_OLD)
def test_an_old_word_still_works_and_is_not_shown(command: str, old: str, word: str) -> None:
    path = next(path for path, found in COMMANDS.items() if path.split()[-1] == command and word in words(path))
    assert old not in words(path)
    said = CliRunner().invoke(app, [*path.split(), old]).output
    assert f"Option '{old}' requires an argument" in said, said


def test_an_old_word_is_of_its_command_alone() -> None:
    assert "No such option: --scenario" in CliRunner().invoke(app, ["train", "--scenario", "x"]).output


def test_a_run_by_its_name(tmp_path: Any) -> None:
    (tmp_path / "mine").mkdir()
    assert in_runs("mine", tmp_path) == str(tmp_path / "mine")
    assert in_runs("mine", None) == "mine" and in_runs("base", tmp_path) == "base"
    said = CliRunner().invoke(app, ["report", "mine", "--runs-dir", str(tmp_path)]).output
    assert str(tmp_path / "mine") in said
