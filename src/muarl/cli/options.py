"""The options and arguments that commands share, each declared once: what it is called and what its help says.

``WORDS`` has the words. A command adds to the help what is its own, such as the default (``option("--size", "Default:
the smallest.")``); what several commands have whole is an alias below. Options that are short forms of settings are in
a table, option -> setting, from which ``given`` makes what a recipe is started with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from muarl.cli.environment_approval import approved, approved_all, approved_settings, domain_name, weighted

ENVIRONMENT = "The environment: a name from `muarl domains`, FILE.py:NAME or package.module:NAME."
CONFIG = "A preset's name (`muarl presets` lists them), or a YAML file of your own."

WORDS: Mapping[str, tuple[str, ...]] = {
    "--checkpoint": ("The model: a run, a checkpoint folder, or `base`.", "-m"),
    "--cluster": (
        "Use a Ray cluster: `local` starts one on this machine, `auto` joins the one that runs here, HOST:PORT one "
        "there.",
    ),
    "--config": (CONFIG, "-c"),
    "--domain": (ENVIRONMENT, "-d"),
    "--dry-run": ("Check everything, and start nothing.",),
    "--name": ("Name of the run; its folder is RUNS_DIR/NAME.",),
    "--resume": ("Run folder to resume, with its own configuration; what is finished is not repeated.",),
    "--runs-dir": ("Folder of runs.",),
    "--seed": ("Seed of all that is drawn at random.",),
    "--assume": ("Plan with this instead of what is assumed, such as gpu=h100 or gpu_hour=2.5.", "-a"),
    # which tasks, and how many
    "--size": ("The environment's size, such as tiny or official.",),
    "--split": ("Which tasks: a split such as train or test.",),
    "--tasks": ("Number of tasks.", "-n"),
    "--trials": ("Conversations of each task.",),
    "--task": ("One task:",),
    "--episodes": ("Only the run's episodes of this file, such as eval or train-0010 (repeatable).",),
    # who plays and judges, and what it may cost
    "--user": ("Who plays the customer: agenda, endpoint:MODEL or endpoint:MODEL@URL.", "-u"),
    "--judge": ("Model that judges: endpoint:MODEL or endpoint:MODEL@URL.",),
    "--concurrency": ("Maximum number of conversations or requests at once.", "-j"),
    "--max-cost": ("Start nothing new after spending this many dollars.",),
    "--max-tokens": ("Token budget over all models.",),
    "--price": ("MODEL=IN/OUT: dollars for a million prompt and completion tokens (repeatable).",),
    # what comes out
    "--as": ("The form to write.",),
    "--out": ("Where to write:", "-o"),
    "--json": ("Print JSON, for programs.",),
    "--page": ("Write an HTML page to this file.",),
    "--show": ("Number to print in full.",),
    "--fail-on": ("Exit with code 3 if there is anything as bad:",),
    "--dtype": ("Number format of the weights.",),
    "--from": ("Take it from this machine:",),
    # servers
    "--host": ("Address to listen on. Beyond loopback, other machines can connect with the token.",),
    "--port": ("Port; 0 takes a free one.",),
    "--queue": ("Maximum queued requests; further ones get status 429.",),
    "--grace": ("Seconds that what is running has to finish at shutdown.",),
    "--allow-host": ("Additional host name of this machine (repeatable).",),
    "--max-body": ("Largest request, in MiB.",),
    "--token-to": ("Write the token to this file (mode 600) instead of printing it.",),
}
"""The words of options: what the help says first, then the short form if there is one."""

OLD: Mapping[str, Mapping[str, str]] = {
    "coldstart": {"--scenario": "--domain", "--preset": "--config"},
    "generate": {"--count": "--tasks"},
    "import": {"--to": "--out"},
    "overlap": {"--count": "--tasks", "--domain": "--training", "-d": "--training"},
    "practise": {"--count": "--tasks"},
    "replay": {"--steps": "--calls"},
    "report": {"--conversations": "--show"},
    "score": {"--calls": "--trajectories"},
    "serve": {"--slots": "--concurrency"},
    "view": {"--episodes": "--limit"},
}
"""Words that commands had before, which still work: by command, the word of today. No help shows them."""


def option(word: str, own: str = "", **more: Any) -> Any:
    """A shared option: its word and short form, and its help with what is a command's own. ``more``: as typer's."""
    about, *short = WORDS[word]
    return typer.Option(word, *short, help=f"{about} {own}".rstrip(), **{"show_default": False, **more})


def settings_argument(example: str) -> Any:
    """The argument KEY=VALUE, with an example for its help. Environments that it names are approved."""
    return typer.Argument(
        metavar="KEY=VALUE",
        help=f"Settings that override the configuration, such as {example}.",
        callback=approved_settings,
        show_default=False,
    )


class ExplicitConfig(str):
    """A configuration that a person named, rather than the command's default."""


def named(context: typer.Context, parameter: typer.CallbackParam, value: str | None) -> str | None:
    """The option's value; an ``ExplicitConfig`` one where a person said it."""
    source = context.get_parameter_source(parameter.name or "")
    said = value is not None and source is not None and source.name in ("COMMANDLINE", "PROMPT")
    return ExplicitConfig(value) if said else value


Overrides = Annotated[list[str] | None, settings_argument("rl.steps=10 rl.lr=1e-4")]
Config = Annotated[str, option("--config", callback=named)]
Name = Annotated[str | None, option("--name")]
RunsDir = Annotated[Path | None, option("--runs-dir", "Default: runs.")]
InRunsDir = Annotated[Path | None, option("--runs-dir", "A run may be given by its name in it.")]
Seed = Annotated[int | None, option("--seed")]
Checkpoint = Annotated[str | None, option("--checkpoint")]
Resume = Annotated[Path | None, option("--resume")]
Cluster = Annotated[str | None, option("--cluster")]
DryRun = Annotated[bool, option("--dry-run", "Prints the resolved configuration as YAML.")]
Assume = Annotated[list[str] | None, option("--assume", "With --dry-run.", metavar="KEY=VALUE")]

EnvironmentName = Annotated[
    str, typer.Argument(metavar="NAME", help=ENVIRONMENT, callback=approved, show_default=False)
]
SEVERAL = "Repeat it for several; NAME=2 draws twice as many tasks from it."
WeightedDomains = Annotated[list[str] | None, option("--domain", SEVERAL, metavar="NAME", callback=weighted)]
Domain = Annotated[list[str] | None, option("--domain", metavar="NAME", callback=approved_all)]
"""A list, so that a second one is noticed: ``named.single`` has the only one."""

Smallest = Annotated[str | None, option("--size", "Default: the smallest.")]
Largest = Annotated[str | None, option("--size", "Default: the largest.")]
DrawSeed = Annotated[int, option("--seed", show_default=True)]
Episodes = Annotated[list[str] | None, option("--episodes", metavar="NAME")]
User = Annotated[str | None, option("--user")]
Judge = Annotated[str | None, option("--judge")]
MaxCost = Annotated[float | None, option("--max-cost")]
MaxTokens = Annotated[int | None, option("--max-tokens")]
Prices = Annotated[list[str] | None, option("--price")]
AsJson = Annotated[bool, option("--json")]
Page = Annotated[Path | None, option("--page")]

Host = Annotated[str, option("--host", show_default=True)]
Port = Annotated[int, option("--port", min=0, max=65535, show_default=True)]
Queue = Annotated[int, option("--queue", min=0, show_default=True)]
Grace = Annotated[float, option("--grace", min=0, show_default=True)]
AllowedHosts = Annotated[list[str] | None, option("--allow-host")]
MaxBody = Annotated[int, option("--max-body", min=1, show_default=True)]
TokenFile = Annotated[Path | None, option("--token-to")]

Table = Mapping[str, str | Callable[[Any], Mapping[str, Any]]]
"""Options (by their parameters' names) that are short forms of settings: which one, or what makes settings of it."""

RUN: Table = {
    "name": "name",
    "runs_dir": "runs_dir",
    "seed": "seed",
    "domain": lambda chosen: {"domain.name": domain_name(chosen)},
    "checkpoint": "model.checkpoint",
    "cluster": "cluster.address",
}
"""The options of commands that make a run."""


@dataclass(frozen=True)
class RunArguments:
    """What a command line says of a run."""

    config: str
    """A preset or a file; an ``ExplicitConfig`` one if a person said so."""

    overrides: Sequence[str] = ()
    """KEY=VALUE settings."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that options stand for. They win over ``overrides``."""

    resume: Path | None = None
    dry_run: bool = False
    assume: Sequence[str] = ()
    """What a dry run plans with instead of what it sees."""


def given(options: Mapping[str, Any], table: Table = RUN, *, before: Sequence[str] = ()) -> RunArguments:
    """What the parameters of a command (its ``locals()``) say of a run. ``before``: settings of a new one that all
    others win over."""
    resume = options.get("resume")
    return RunArguments(
        config=options["config"],
        overrides=[*(before if resume is None else ()), *(options.get("overrides") or ())],
        settings=settings_of(options, table),
        resume=resume,
        dry_run=options.get("dry_run", False),
        assume=options.get("assume") or (),
    )


def settings_of(options: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """The settings that these options stand for, without those that were not given."""
    settings: dict[str, Any] = {}
    for name, setting in table.items():
        value = options.get(name)
        if value is None or value is False or value == []:
            continue
        value = str(value) if isinstance(value, Path) else value
        settings |= {setting: value} if isinstance(setting, str) else setting(value)
    return settings


def as_overrides(settings: Mapping[str, Any]) -> list[str]:
    """Settings as KEY=VALUE. In JSON, which is YAML too, a run may be called 1 or no."""
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]


def played_by(word: str, key: str, section: str, model: str, others: Sequence[str]) -> Callable[[str], dict[str, Any]]:
    """Makes settings of the option ``word``, which says who plays a part: ``key`` is one of ``others``, or ``model``
    for endpoint:MODEL[@URL], which ``section`` then describes."""

    def settings(spec: str) -> dict[str, Any]:
        if spec.startswith("endpoint:"):
            return {key: model, **endpoint_settings(section, spec)}
        if spec in others:
            return {key: spec}
        raise unknown_player(word, spec, others)

    return settings


def unknown_player(word: str, spec: str, others: Sequence[str]) -> Exception:
    """The ConfigError for a name of the option ``word`` that is neither one of ``others`` nor a model's."""
    from muarl.basics.errors import ConfigError

    listed = ", ".join(others)
    return ConfigError(f"{word}: {spec!r} is unknown; use {listed}, endpoint:MODEL or endpoint:MODEL@URL")


def endpoint_settings(section: str, spec: str) -> dict[str, Any]:
    """Settings of a section that describes a model, from endpoint:MODEL or endpoint:MODEL@URL."""
    from muarl.endpoints.config import parse_endpoint

    endpoint = parse_endpoint(spec)
    url = {} if endpoint.base_url is None else {f"{section}.base_url": endpoint.base_url}
    return {f"{section}.model": endpoint.model, **url}


def prices_of(prices: Sequence[str], model: str = "") -> dict[str, Any]:
    """The setting ``eval.prices`` of --price options. ``model``: whose price one without a name is. ConfigError for
    another form than MODEL=IN/OUT."""
    return {"eval.prices": dict(_price(text, model) for text in prices)}


def _price(text: str, model: str) -> tuple[str, list[float]]:
    from muarl.basics.errors import ConfigError

    name, _, figures = text.rpartition("=")
    try:
        prompt, completion = map(float, figures.split("/"))
    except ValueError:
        prompt = completion = -1.0
    if not (name or model) or not (0 <= prompt < inf and 0 <= completion < inf):
        raise ConfigError(f"--price: {text!r} must look like MODEL=2/8, dollars for a million tokens in and out")
    return name or model, [prompt, completion]


Run = TypeVar("Run", str, Path)


def in_runs(run: Run, runs_dir: Path | None) -> Run:
    """A run that a person names: what lies in the folder of runs, if they gave one and it is there; else as it is."""
    if runs_dir is None or not (place := runs_dir.expanduser() / run).exists():
        return run
    return type(run)(place)
