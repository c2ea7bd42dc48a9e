"""``muarl user fit``: levels of users' traits from logs of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muarl.cli import options
from muarl.cli.environment_approval import approved
from muarl.cli.options import option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl.recipes.user_fit import Fit
    from muarl.types.chat import Message


def fit(
    logs: Annotated[
        list[Path],
        typer.Argument(help="Conversations of people with an agent, in any format that `tasks from-log` reads."),
    ],
    out: Annotated[Path, option("--out", "the settings, as YAML.")],
    domain: Annotated[
        str,
        option(
            "--domain",
            "Its rule-based users are fitted: best one of the same kind as the logs'.",
            metavar="NAME",
            callback=approved,
            show_default=True,
        ),
    ] = "retail-generated",
    size: options.Smallest = None,
    tasks: Annotated[int, option("--tasks", "They are played at each level.", min=10, show_default=True)] = 60,
    seed: options.DrawSeed = 0,
    extends: Annotated[
        str, typer.Option("--extends", help="The preset or file that the settings are laid over.")
    ] = "cpu",
) -> None:
    """Fit the traits of simulated users to logs of people, and write them as settings.

    Measures in the logs how often people keep facts back, press for time, wander, correct themselves and write another
    language, and finds the level of each trait at which the domain's rule-based users do so as often
    (docs/users.md#less-easy-users). Needs no model.

      muarl user fit live.jsonl --domain retail-generated --out people.yaml
      muarl eval --config people.yaml --checkpoint runs/mine
    """
    from muarl.basics.errors import ConfigError
    from muarl.environments.registry import find
    from muarl.recipes.user_fit import check_traits, fit_traits

    if out.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"--out: {out} must end in .yaml, as configurations do")
    environment = find(domain)
    if size is not None:
        environment.check_size(size, "--size")
    if environment.is_benchmark:
        raise ConfigError(f"--domain: {domain} is a benchmark; name a generated domain (muarl domains)")
    with working(f"Making {tasks:,} tasks of {environment.name} and reading the logs"):
        place = environment.place(size)
        given = environment.make_tasks("train", tasks, size=size)
        check_traits(place, given[0])
        said = _conversations(logs)
    with working(f"{len(said):,} conversations. Playing {tasks:,} tasks of {environment.name} at each level"):
        found = fit_traits(said, place, given, seed=seed, say=lambda text: echo(text, err=True))
    _show(found)
    _write(out, found, environment.name, extends)
    echo(f"\nWritten to {out}: muarl eval --config {out} ...")


def _conversations(logs: list[Path]) -> list[tuple[Message, ...]]:
    from muarl.basics.errors import DataError
    from muarl.records.conversation import LeftOutCounts
    from muarl.records.reading import read

    left_out = LeftOutCounts.together()
    found = [conversation.messages for log in logs for conversation in read(log, left_out)]
    if told := str(left_out):
        echo(told, err=True)
    named = ", ".join(map(str, logs))
    if not found:
        raise DataError(f"{named}: no conversations in it")
    if not any(m.role == "user" and (m.content or "").strip() for messages in found for m in messages):
        raise DataError(f"{named}: no user says anything in these conversations")
    return found


def _show(found: Fit) -> None:
    from rich.table import Table

    from muarl.observe.screen import Screen

    table = Table("trait", title=f"{found.logs.conversations} conversations", title_justify="left")
    for heading in ("in the logs", "users at 0", "at 0.5", "at 1", "level (95% interval)"):
        table.add_column(heading, justify="right")
    for name, level in found.levels.items():
        low, high = found.logs.intervals[name]
        curve, ends = found.curves[name], found.intervals[name]
        mark = "*" if name in found.beyond else ""
        table.add_row(
            name.replace("_", " "),
            f"{found.logs.figures[name]:.0%} ({low:.0%} – {high:.0%})",
            *(f"{value:.0%}" for value in (curve[0], curve[len(curve) // 2], curve[-1])),
            f"{level:.2f}{mark} ({ends[0]:.2f} – {ends[1]:.2f})",
        )
    Screen().print(table)
    about = (
        f"A message has {found.logs.words:.1f} words, a conversation {found.logs.messages:.1f} of the user's messages."
    )
    echo(about)
    if found.beyond:
        echo("* outside of what these users show at any level: the nearest end is taken.")


def _write(out: Path, found: Fit, domain: str, extends: str) -> None:
    import yaml

    from muarl.basics.files import write_text

    levels = {name: round(level, 2) for name, level in found.levels.items()}
    settings = {"extends": extends, "user": {"traits": levels}, "eval_user": {"traits": dict(levels)}}
    lines = [f"# The traits of users in {found.logs.conversations} logged conversations, fitted on {domain}."]
    lines += [f"# {name}: 95% interval {low:.2f} to {high:.2f}" for name, (low, high) in found.intervals.items()]
    write_text(out, "\n".join(lines) + "\n" + yaml.safe_dump(settings, sort_keys=False, width=120))
