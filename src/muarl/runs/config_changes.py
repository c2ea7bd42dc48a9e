"""Where a run's folder may be, and what may change when a run is resumed.

Everything else shaped what the run has finished: its results would be told under settings that they were not made with.
Needs neither torch nor a model, so that a refusal comes at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.files import why_not_writable
from muarl.basics.untrusted import read_json_object, read_yaml
from muarl.config.load import load_config
from muarl.config.renamed import translated
from muarl.config.sections import RunConfig
from muarl.environments.registry import is_reference, names
from muarl.observe.rundir import without_secrets
from muarl.observe.status import RESUMABLE

MAY_CHANGE = (
    "budget", "eval.max_cost", "eval.max_tokens", "eval.prices", "coldstart.max_cost", "coldstart.max_tokens",
    "threads", "rollout.concurrency", "eval.concurrency", "coldstart.concurrency", "rl.patience",
    "rl.asynchrony", "rl.staleness",
    "checkpoints", "rl.checkpoint_every", "sft.checkpoint_every", "base.checkpoint_every", "rl.eval_every",
    "rl.save_episodes", "rl.stop_on", "wandb", "trackio", "model.device", "engine", "learner", "cluster",
)  # fmt: skip
"""Settings, or whole sections, that any resumed run may change: what it may spend, its pace, what it keeps and logs,
and the machines that it works on."""

NUMERICS = ("engine.kind", "engine.dtype", "learner.precision", "learner.lora")
"""Of those sections what may not change after all: it decides what is computed, not where."""

LONGER: Mapping[str, tuple[str, ...]] = {
    "train": ("rl.steps",),
    "quickstart": ("rl.steps",),
    "base": ("base.steps", "base.validation"),
    "sft": ("sft.steps", "sft.epochs"),
    "sft-user": ("sft.steps", "sft.epochs"),
    "train-user": ("rl.steps",),
    "eval": ("eval.trials", "eval.tasks"),
    "coldstart": ("coldstart.count", "coldstart.attempts"),
}
"""By command, what may change so that a run continues for longer."""

ENDPOINTS = ("endpoint", "tools_endpoint")
REACHED_BY = ("base_url", "api_key_env", "concurrency", "timeout", "deadline", "attempts", "prompt_price",
              "completion_price")  # fmt: skip
"""Of a model behind an endpoint: how it is reached and what it costs, not which one it is."""

Changes = Mapping[str, tuple[Any, Any]]
"""By the setting's name, what it was and what it is to be."""


def check_place(runs_dir: Path) -> None:
    """ConfigError if no run's folder can be made in ``runs_dir``."""
    if (why := why_not_writable(runs_dir.expanduser())) is not None:
        raise ConfigError(f"runs_dir: no run can be kept in {runs_dir}: {why}. Choose another folder for runs")


def check_folder(folder: Path) -> None:
    """ConfigError if there is no run in ``folder`` that could be taken up."""
    folder = folder.expanduser()
    if (folder / "config.yaml").is_file():
        return
    if folder.is_dir():
        raise ConfigError(f"--resume: {folder} holds no run: there is no config.yaml in it")
    near = [path.parent.name for path in folder.absolute().parent.glob("*/config.yaml")]
    alike = difflib.get_close_matches(folder.name, near, 1, 0.6)
    if alike:
        raise ConfigError(f"--resume: there is no run at {folder}; did you mean {folder.parent / alike[0]}?")
    raise ConfigError(f"--resume: there is no run at {folder}. `muarl runs` lists the runs that there are")


def check_resume(config: RunConfig, command: str | None) -> Changes:
    """What changes where ``config.resume`` is taken up by ``command`` (None: a program's own run).

    ConfigError if it is another command's run, or names each setting that must stay as it was.
    """
    if config.resume is None:
        return {}
    folder = config.resume.expanduser()
    check_folder(folder)
    made_by = _made_by(folder)
    if command is not None and made_by not in (None, command):
        how = f"resume it by `muarl {made_by} --resume {folder}`" if made_by in RESUMABLE else "it cannot be resumed"
        raise ConfigError(f"--resume: {folder} is a run of `muarl {made_by}`: {how}")
    changed = changes(folder, config)
    refused = {name: values for name, values in changed.items() if not may_change(name, command)}
    if refused:
        listed = "; ".join(f"{name} was {_shown(was)}, not {_shown(now)}" for name, (was, now) in refused.items())
        more = " and ".join(LONGER.get(command or "", ("the number of steps",)))
        raise ConfigError(
            f"--resume: what {folder} has finished was made with other settings: {listed}. A resumed run keeps its own "
            f"(only {more}, budgets, concurrency, checkpoints, logging and machines may change; see docs/training.md). "
            f"To try others, begin a new run: --config {folder / 'config.yaml'} with the settings and a --name"
        )
    return changed


def changes(folder: Path, config: RunConfig) -> Changes:
    """The settings of ``config`` that differ from those in a run's folder. What an older muarl did not know of is as it
    was, and so is an environment whose code has moved, or that only the run's own program knows."""
    try:
        stored = read_yaml(folder / "config.yaml")
    except DataError as problem:
        raise ConfigError(str(problem)) from None
    if isinstance(stored, Mapping) and "extends" in stored:  # a person has put a shorter one there
        stored = without_secrets(load_config(folder / "config.yaml", starts=False).model_dump(mode="json"))
    was = dict(_leaves(translated(stored) if isinstance(stored, Mapping) else {}))
    was.pop("resume", None)
    plain = without_secrets(config.model_copy(update={"resume": None}).model_dump(mode="json"))
    now = dict(_leaves(plain))
    unset = dict(_leaves(RunConfig().model_dump(mode="json")))
    out: dict[str, tuple[Any, Any]] = {}
    for name in (*was, *(n for n in now if n not in was)):
        before, after = was.get(name, unset.get(name)), now.get(name)
        # A section that was None or is None now has no keys below it.
        if before != after and not (name not in now and _has_below(now, name)):
            out[name] = before, after
    if "domain.name" in out and _moved(*map(str, out["domain.name"])):
        del out["domain.name"]
    return out


def may_change(name: str, command: str | None) -> bool:
    """Whether a run of ``command`` may be taken up with another value of this setting. A program's own run may be
    longer in any way."""
    longer = LONGER.get(command, ()) if command is not None else tuple(n for names in LONGER.values() for n in names)
    if _below(name, NUMERICS):
        return False
    *_, section, last = ("", *name.split("."))
    return _below(name, (*MAY_CHANGE, *longer)) or (section in ENDPOINTS and last in REACHED_BY)


def _below(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in allowed)


def _has_below(values: Mapping[str, Any], name: str) -> bool:
    return any(key.startswith(f"{name}.") for key in values)


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
            yield from _leaves({str(number): one for number, one in enumerate(value)}, f"{prefix}{key}.")
        elif isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _made_by(folder: Path) -> str | None:
    try:
        command = read_json_object(folder / "status.json").get("command")
    except DataError:  # missing or cut off: an older run, or one that was killed at its very beginning
        return None
    return command if isinstance(command, str) else None


def _moved(was: str, now: str) -> bool:
    """Whether two references are to the same code in another place: its file or module, and its name there, are called
    the same. Of a domain that a program brought along, only that program can tell."""
    if not (is_reference(was) and is_reference(now)):
        return not is_reference(was) and was not in names()  # known to the run's own program alone
    (before, name), (after, other) = (text.rpartition(":")[::2] for text in (was, now))
    return name == other and _module_name(before) == _module_name(after)


def _module_name(place: str) -> str:
    return Path(place).stem if place.endswith(".py") else place.rpartition(".")[2]


def _shown(value: Any) -> str:
    text = str(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
