"""``muarl tasks check``: what is wrong with a set of tasks, and the fixed ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muarl.basics.errors import ConfigError
from muarl.cli import options
from muarl.cli.environment_approval import approved
from muarl.cli.options import option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl_tools.checks.tasks.report import TaskReport
    from muarl_tools.checks.tasks.sources import TaskSource

SHOWN = 3
"""Findings of one rule that are printed."""

Level = Literal["error", "warning", "note"]


def _source(text: str) -> str:
    """A file as it is; else a name or a reference, which is approved because the person has named it."""
    is_file = Path(text).is_file() and ":" not in Path(text).name
    if not is_file and Path(text).suffix in (".json", ".jsonl"):
        raise ConfigError(f"{text}: no such file of tasks")
    return text if is_file else approved(text) or text


def check(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="An environment (tau2-retail, tau1-airline, retail-generated, FILE.py:NAME), or a file of tasks: "
            "TAU2's tasks.json, TAU1's tasks as JSON, or the JSON lines that `muarl tasks` writes.",
            callback=_source,
            show_default=False,
        ),
    ],
    domain: Annotated[
        str | None, option("--domain", "A file's tasks are played in it.", metavar="NAME", callback=approved)
    ] = None,
    split: Annotated[str | None, option("--split", "Default: all.")] = None,
    tasks: Annotated[int | None, option("--tasks", "Of each split. Default: all, or 200 made ones.", min=1)] = None,
    size: options.Smallest = None,
    seed: options.DrawSeed = 0,
    level: Annotated[Level, typer.Option("--level", help="Print findings of this level and above.")] = "warning",
    rule: Annotated[list[str] | None, typer.Option("--rule", help="Print only findings of these rules, all.")] = None,
    as_json: options.AsJson = False,
    page: options.Page = None,
    fix: Annotated[
        Path | None,
        typer.Option("--fix", help="Write the tasks with the changes that follow from policy and database."),
    ] = None,
    guesses: Annotated[
        bool,
        typer.Option(
            "--guesses", help="With --fix: also changes that take the gold end state for what was meant; read them."
        ),
    ] = False,
) -> None:
    """Check tasks: what trivial agents earn, gold actions against the policy, scenarios against the database.

    Without a model: gold actions are replayed, and rules look at every task (docs/tasks-check.md lists them, with how
    many known mistakes they find). Errors are scores that are wrong; warnings depend on what the scenario leaves open;
    notes are to know. Exit code 1 if there are errors.

      muarl tasks check tau2-airline
      muarl tasks check tasks.json --domain tau2-retail --page findings.html --fix fixed.json
      muarl tasks check logged.jsonl --domain retail-generated --json
    """
    if guesses and fix is None:
        raise ConfigError("--guesses goes with --fix")
    with working(f"Reading or making the tasks of {source}"):
        from muarl_tools.checks.tasks.report import check_source
        from muarl_tools.checks.tasks.rules import RULES
        from muarl_tools.checks.tasks.sources import open_source

        unknown = next((name for name in rule or () if name not in RULES), None)
        if unknown is not None:
            raise ConfigError(f"--rule: there is no rule {unknown!r}; known: {', '.join(RULES)}")
        opened = open_source(source, domain=domain, split=split, count=tasks, size=size, seed=seed)
    if fix is not None and opened.rows is None:
        raise ConfigError(f"--fix: {opened.label} makes its tasks: fix its generator")
    with ExitStack() as shown:
        report = check_source(opened, progress=_told(shown, len(opened.tasks)))
    if as_json:
        echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        _print(report, level, rule)
    if page is not None:
        from muarl.basics.files import write_text
        from muarl_tools.checks.tasks.page import page_of

        write_text(page, page_of(report))
        echo(f"Page: {page}", err=as_json)
    if fix is not None:
        _fix(opened, report, fix, guesses, as_json)
    if report.of("error"):
        raise typer.Exit(1)


def _told(shown: ExitStack, total: int) -> Callable[[int], None]:
    """Says how many tasks are checked, and then that experts play them, until ``shown`` is closed."""
    from muarl.observe.progress import Progress

    each = shown.enter_context(ExitStack())
    phase = each.enter_context(each.enter_context(Progress()).phase("checking", total, "tasks"))

    def told(done: int) -> None:
        phase.advance(done - phase.done)
        if done == total:
            each.close()
            shown.enter_context(working("Comparing the tasks, and playing them with experts"))

    return told


def _print(report: TaskReport, level: Level, only: list[str] | None) -> None:
    from muarl.domains.checking import LEVELS
    from muarl_tools.checks.printing import lines_of
    from muarl_tools.checks.tasks.rules import OVERALL, RULES

    sizes = ", ".join(f"{count} {split}" for split, count in report.tasks.items())
    echo(f"{report.label}: {report.count} tasks ({sizes})\n")
    echo("What trivial agents earn (reward 1)")
    for name, won, judged, total in report.baselines():
        also = f", {judged} more if a judge says so" if judged else ""
        echo(f"  {name:<16} {won:>4} of {total} ({won / total:.0%}){also}")
    if report.played:
        echo("\nWhat scripted experts earn with the environment's own users")
        for name, won, total in report.experts():
            echo(f"  {name:<16} {won:>4} of {total} ({won / total:.0%})")
    if report.asking is not None:
        echo(f"  {report.asking.lost_text}")
    if not report.rules_declared:
        echo("\nThe domain declares no task rules (Domain.task_rules): only what holds for any domain was checked.")
    echo("")
    for overall in report.overall:
        echo(f"{overall.level} {overall.rule}: {OVERALL[overall.rule]}")
        echo("\n".join([*lines_of(overall, "all tasks"), ""]))
    rows = report.rules()
    together = "".join(f"; of all tasks together: {o.level} {o.rule}" for o in report.overall)
    if not rows:
        echo(f"No findings in single tasks{together}." if together else "No findings.")
        return
    echo(f"{'level':<8} {'rule':<24} {'tasks':>5}  about")
    for rule, at, _, count in rows:
        echo(f"{at:<8} {rule:<24} {count:>5}  {RULES[rule]}")
    shown = LEVELS[: LEVELS.index(level) + 1]
    for rule, at, total, _ in rows:
        if rule not in only if only else at not in shown:
            continue
        echo(f"\n{at} {rule}: {RULES[rule]}")
        found = [f for f in report.findings if f.rule == rule and f.level == at]
        for finding in found if only else found[:SHOWN]:
            echo("\n".join(lines_of(finding, f"task {finding.where}")))
        if total > SHOWN and not only:
            echo(f"  - and {total - SHOWN} more: --rule {rule}, --json or --page")
    wrong, flagged = report.flagged("error"), report.flagged("error", "warning")
    echo(f"\n{len(wrong)} of {report.count} tasks have errors, {len(flagged)} errors or warnings{together}.")


def _fix(source: TaskSource, report: TaskReport, out: Path, guesses: bool, quiet: bool) -> None:
    from muarl_tools.checks.tasks.fixes import fixed, write_fixed

    rows = fixed(source, report.findings, guesses=guesses)
    write_fixed(out, source, rows)
    left = {f.where for f in report.of("error")} - set(rows)
    echo(f"Fixed: {len(rows)} of {report.count} tasks, in {out}; read them before use.", err=quiet)
    if left:
        names = ", ".join(sorted(left)[:12])
        echo(f"Errors left to a person: tasks {names}{' ...' if len(left) > 12 else ''}", err=quiet)
