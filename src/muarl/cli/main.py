"""The command ``muarl``: what each subcommand is called, and how its failures reach a person.

Modules under muarl.cli are light: torch, transformers and the like are imported only when a command runs, so that
``muarl --help`` answers at once.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib.metadata import EntryPoint
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from muarl.basics.errors import ConfigError, MuarlError, StoppedBySignError
from muarl.basics.extras import missing_extra
from muarl.basics.stopping import exit_code
from muarl.basics.torch_environment import set_torch_environment
from muarl.basics.version import __version__
from muarl.cli import chat, coldstart, generate, init, model, presets, runs, train, train_user
from muarl.cli.command import MEASURE, TRAIN, WORLDS, Subcommand, brought
from muarl.observe.terminal import echo, make_logs_visible, print_trace

DEBUG = "MUARL_DEBUG"
GPU_FULL = (
    "the GPU's memory is full. `muarl plan` shows what takes it. Less is needed with learner.recompute=true, a smaller "
    "learner.pack_tokens, fewer conversations at once (rollout.concurrency), a shorter model.max_context, or "
    "engine.sleep=true."
)


class _Commands(TyperGroup):
    """The group of subcommands; it turns every failure into one clear message and an exit code.

    2: something the user can fix. 3: a training stopped for a sign that ``rl.stop_on`` names. 1: a defect, or the disk
    is full. 130: interrupted; 143: by SIGTERM.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return list(subcommands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            subcommand = _subcommand(cmd_name)
            if subcommand is None:
                return None
            self.commands[cmd_name] = subcommand.built(cmd_name)
        return self.commands[cmd_name]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            _say("Interrupted; progress saved." if _notes(stop) else "Interrupted.", stop)
            raise typer.Exit(exit_code()) from None
        except StoppedBySignError as stop:
            _say(str(stop), stop)
            raise typer.Exit(3) from None
        except MuarlError as problem:
            _say(f"Error: {problem}", problem)
            raise typer.Exit(2) from None
        except MemoryError as problem:
            _say("Error: not enough memory. Make the batch, the group or the model smaller.", problem)
            raise typer.Exit(1) from None
        except OSError as problem:
            if problem.errno == errno.EPIPE:
                raise
            _say(f"Error: {_os_error(problem)}", problem)
            raise typer.Exit(1) from None
        except Exception as problem:
            missing = missing_extra(problem, f"muarl {ctx.invoked_subcommand}")
            if missing is not None:
                _say(f"Error: {missing}", problem)
                raise typer.Exit(2) from None
            if type(problem).__name__ == "OutOfMemoryError":  # PyTorch's; the light core has none
                _say(f"Error: {GPU_FULL}", problem)
                raise typer.Exit(1) from None
            if type(problem).__module__.startswith(("typer", "click")):
                _point_to_settings(problem)
                raise
            from muarl.environments.registry import place_in_code

            place = place_in_code(problem)
            whose = "a defect of muarl" if place is None else f"a defect of your environment ({place})"
            _say(f"Error: {type(problem).__name__}: {problem}\nThis is {whose}; its trace follows.", problem)
            if not _debug():
                print_trace(problem)
            raise typer.Exit(1) from None


def subcommands() -> dict[str, Subcommand]:
    """All subcommands by name, in the order of ``muarl --help``: the engine's own, and those of installed packages."""
    commands = {name: one for name in [*OWN, *brought()] if (one := _subcommand(name)) is not None}
    return dict(sorted(commands.items(), key=lambda item: (item[1].place, item[0])))


def _subcommand(name: str) -> Subcommand | None:
    """A subcommand; one that cannot be loaded says so in the list, and when it is run."""
    if name in OWN:
        return OWN[name]
    point = brought().get(name)
    if point is None:
        return None
    try:
        loaded = point.load()
    except Exception as problem:
        return _broken(point, f"{type(problem).__name__}: {problem}")
    return loaded if isinstance(loaded, Subcommand) else _broken(point, "it is no muarl.cli.command.Subcommand")


def _broken(point: EntryPoint, why: str) -> Subcommand:
    """Stands for a subcommand of a package that cannot be loaded."""
    package = "a package" if point.dist is None else f"{point.dist.name} {point.dist.version}"

    def broken() -> None:
        raise ConfigError(f"the command {point.name} of {package} cannot be loaded ({point.value}): {why}")

    broken.__doc__ = f"Cannot be loaded: it is part of {package}."
    return Subcommand(broken)


app = typer.Typer(
    name="muarl",
    cls=_Commands,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(epilog="Begin with: muarl doctor, then: muarl quickstart. Each command has its own --help with examples.")
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help=f"Show the trace of an error (also: {DEBUG}=1).")] = False,
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Print muarl's version. `muarl version` also prints those of its libraries."),
    ] = False,
) -> None:
    """Train tool-using agents with reinforcement learning against simulated users, on a live database."""
    if debug:
        os.environ[DEBUG] = "1"
    if show_version:
        echo(f"muarl {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())  # with its own colours


OWN = {
    "quickstart": Subcommand(train.quickstart, TRAIN, 1),
    "base": Subcommand(train.base, TRAIN, 2),
    "coldstart": Subcommand(coldstart.coldstart, TRAIN, 3),
    "sft": Subcommand(train.sft, TRAIN, 4),
    "sft-user": Subcommand(train.sft_user, TRAIN, 5),
    "train": Subcommand(train.train, TRAIN, 6),
    "train-user": Subcommand(train_user.train_user, TRAIN, 5.5),
    "presets": Subcommand(presets.presets, TRAIN, 9),
    "chat": Subcommand(chat.chat, MEASURE, 13),
    "runs": Subcommand(runs.runs, MEASURE, 19),
    "init": Subcommand(init.init, WORLDS, 22),
    "generate": Subcommand(generate.generate, WORLDS, 23),
    "model": Subcommand(model.model, WORLDS, 36),
}
"""The engine's own subcommands; the others come by entry points (command.py)."""


def main() -> None:
    """Entry point of the console script."""
    set_torch_environment()  # before torch is imported
    make_logs_visible()
    app(prog_name="muarl")


def _point_to_settings(problem: Any) -> None:
    """Say how a setting is written where it was given as an option that does not exist (--steps 3, --rl.steps=3)."""
    option_name, command = (
        getattr(problem, "option_name", None),
        getattr(getattr(problem, "ctx", None), "command", None),
    )
    takes = any("KEY=VALUE" in str(getattr(p, "metavar", None)) for p in getattr(command, "params", ()))
    if type(problem).__name__ != "NoSuchOption" or not option_name or not takes:
        return
    from muarl.config.sections import RunConfig, fields_of

    name = option_name.lstrip("-").replace("-", "_")
    keys = [key for key, section, _ in fields_of(RunConfig) if section is None]
    matches = [key for key in keys if key == name] or [key for key in keys if key.endswith(f".{name}")]
    own = f"{getattr(command, 'name', '')}."
    matches.sort(key=lambda key: (not key.startswith(own), not key.startswith("rl.")))
    if matches:
        written = " or ".join(f"{key}=VALUE" for key in matches[:4])
        problem.message = f"No such option: {option_name}. Settings have no dashes: {written}."
        problem.possibilities = None


def _debug() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")


def _say(text: str, problem: BaseException) -> None:
    """The message on standard error, then the notes the problem carries (such as where the run folder is)."""
    if _debug():
        print_trace(problem)
    sys.stdout.flush()
    for line in (text, *_notes(problem)):
        echo(line, err=True, colour=typer.colors.RED if line is text else None)


def _notes(problem: BaseException | None) -> list[str]:
    """The notes of an error and of those that led to it: asyncio makes a new KeyboardInterrupt of a cancelled task."""
    notes: list[str] = []
    while problem is not None:
        notes += [note for note in getattr(problem, "__notes__", ()) if note not in notes]
        problem = problem.__cause__ or problem.__context__
    return notes


def _os_error(problem: OSError) -> str:
    """What a person needs to know of an error of the operating system."""
    where = f" {problem.filename}" if problem.filename else ""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{': ' + where.strip() if where else ''}. Free some space and run the command again."
    if isinstance(problem, FileNotFoundError):
        return f"there is no file or folder{where}."
    if isinstance(problem, PermissionError):
        return f"no permission to use{where}."
    return f"{problem.strerror or problem}{':' + where if where else ''}."
