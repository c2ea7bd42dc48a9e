"""The settings that a checkpoint brings along: those of the run that it is of, else what its model reads.

``muarl eval``, ``chat`` and ``serve`` go by them where the person says nothing else. A run's folder may be somebody
else's, so that only a few plain values are taken from it, each checked: never an address, a key's name or a file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from muarl.backends.checkpoint_names import SHIPPED, checkpoint_folder, run_of
from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import read_json_object, read_yaml
from muarl.config.load import load_config
from muarl.config.renamed import translated
from muarl.config.rl import RlConfig
from muarl.config.rollout import RolloutConfig
from muarl.config.section import Section
from muarl.config.sections import DomainConfig, ModelConfig
from muarl.environments.benchmark_training import has_learned_from
from muarl.environments.registry import approved, canonical, find, is_reference, names, unknown
from muarl.learning.release import benchmarks_trained_on

TAKEN: Mapping[str, type[Section]] = {
    "domain.name": DomainConfig,
    "domain.size": DomainConfig,
    "model.max_context": ModelConfig,
    "model.thinking": ModelConfig,
    "model.earlier_thoughts": ModelConfig,
    "rollout.tokens_per_turn": RolloutConfig,
    "rollout.max_turns": RolloutConfig,
    "rollout.max_tool_errors": RolloutConfig,
}
"""What is taken from a run, and the section that says which values it may have."""

THOUGHTS = ("model.thinking", "model.earlier_thoughts")
"""Of those the ones that say how the model speaks, whatever it is asked to do."""

WORDS = {
    "domain.name": "domain {}",
    "domain.size": "size {}",
    "model.max_context": "context of {:,} tokens",
    "rollout.tokens_per_turn": "{:,} tokens a turn",
    "rollout.max_turns": "{} turns",
    "rollout.max_tool_errors": "{} tool errors",
}

LEFT = ("domain.policy", "domain.tasks", "domain.intents")
"""What also made a run's episodes what they were and is not taken: it names files, or which tasks count."""

CONTEXT = 32768
"""Tokens of an episode, at most, for a checkpoint of no run whose model reads more."""
TURN = 1024
"""Tokens of one turn, at most, for a checkpoint of no run."""
TINY = 20_000_000
"""A model of fewer parameters knows the sentences that it was trained on, and little else."""


@dataclass(frozen=True)
class OwnSettings:
    """Settings by their dotted names, and where they are from."""

    values: Mapping[str, Any]
    source: str
    left: tuple[str, ...] = ()
    """What the run had set besides and is not taken over."""
    domain: str | None = None
    """What the run calls its domain, which may be one that nobody here knows."""
    of_run: bool = False
    """Whether they are from a run at all."""

    def overrides(self) -> list[str]:
        """As KEY=VALUE settings."""
        return [f"{name}={json.dumps(value)}" for name, value in self.values.items()]

    def only(self, *names: str) -> OwnSettings:
        """These of the settings alone."""
        return replace(self, values={name: value for name, value in self.values.items() if name in names})

    def without(self, *names: str) -> OwnSettings:
        """The other settings: what a person says counts more."""
        return self.only(*(name for name in self.values if name not in names))

    def describe(self) -> str:
        """One line for people: which settings are taken from where."""
        settings = ", ".join(filter(None, (_shown(name, value) for name, value in self.values.items())))
        line = f"Settings from {self.source}: {settings or 'none'}."
        return line + (f" Not used: {', '.join(self.left)}." if self.left else "")


def _shown(name: str, value: Any) -> str:
    if name == "model.thinking":
        return "thinking" if value else "no thinking"
    if name == "model.earlier_thoughts":
        return "earlier thoughts kept" if value == "keep" else ""
    if isinstance(value, list):
        return f"domains {' and '.join(str(one['name']) for one in value)}"
    return WORDS[name].format(value)


def own_settings(spec: str, said: Collection[str] = ()) -> OwnSettings:
    """The settings of the checkpoint of that name, but for those that the person has ``said``, which are not looked at.
    ConfigError names the file and field of a run whose configuration cannot be gone by; CheckpointError if there is no
    such checkpoint."""
    if spec in SHIPPED:
        return _of_preset(SHIPPED[spec]).without(*said)
    folder = checkpoint_folder(spec)
    run = run_of(folder)
    if run is None:
        return _of_folder(folder).without(*said)
    config = _config(run / "config.yaml")
    if isinstance(config.get("domain"), list):
        return _of_several(run, config, said)
    left = tuple(name for name in LEFT if _at(config, name))
    taken = {name: value for name, value in _taken(config).items() if name not in said}
    values, domain = _checked(run / "config.yaml", taken), _at(config, "domain.name")
    own = OwnSettings(values, f"the run {run.name}", left, domain if isinstance(domain, str) else None, True)
    return own.without(*said)


def reward_of(spec: str) -> str | None:
    """What the policy of that checkpoint learned from (``RlConfig.reward``), as its run says; None for one that no
    reinforcement learning has made, or whose run does not say it in words that this version reads."""
    if spec in SHIPPED:
        return None
    folder = checkpoint_folder(spec)
    run = run_of(folder)
    if run is None or folder.parent.name != "rl":
        return None
    try:
        section = _config(run / "config.yaml").get("rl")
        rl = section if isinstance(section, Mapping) else {}
        return RlConfig.model_validate({name: rl.get(name) or {} for name in ("shaping", "layers")}).reward
    except (ConfigError, ValidationError):
        return None


def trained_on_benchmark(spec: str, domains: Sequence[DomainConfig]) -> bool:
    """Whether the policy of that checkpoint, or one that it was made from, was trained on tasks of a benchmark among
    these domains, as far as its folder says."""
    benchmarks = benchmarks_trained_on(checkpoint_folder(spec))
    return any(has_learned_from(find(domain.name), benchmarks) for domain in domains)


def _of_preset(name: str) -> OwnSettings:
    """The settings of a preset, of one domain or of several."""
    config = load_config(name)
    values, sections = _taken(config.model_dump(mode="json")), [d.model_dump(mode="json") for d in config.domains]
    if len(sections) > 1:
        listed = [{key: section[key] for key in ("name", "size", "weight")} for section in sections]
        return OwnSettings(values | {"domain.name": listed}, f"preset {name}")
    return OwnSettings(values, f"preset {name}", domain=values["domain.name"])


def _of_several(run: Path, config: Mapping[str, Any], said: Collection[str]) -> OwnSettings:
    """The settings of a run of several domains."""
    path = run / "config.yaml"
    sections = [one if isinstance(one, Mapping) else {} for one in config["domain"]]
    left = tuple(name for name in LEFT if any(one.get(name.partition(".")[2]) for one in sections))
    others = {name: value for name, value in _taken({**config, "domain": {}}).items() if name not in said}
    values = _checked(path, others) | {"domain.name": [_entry(path, one) for one in sections]}
    del values["domain.size"]
    return OwnSettings(values, f"the run {run.name}", left, None, True).without(*said)


def _entry(path: Path, section: Mapping[str, Any]) -> dict[str, Any]:
    """Name, size and weight of one of a run's domains. ConfigError for a value that they cannot have."""
    entry = {name: section[name] for name in ("name", "size", "weight") if name in section}
    _checked(path, {f"domain.{name}": value for name, value in entry.items()})
    return entry


def context_of(folder: Path) -> int:
    """As many tokens as a checkpoint's model reads, up to CONTEXT."""
    try:
        reads = int(read_json_object(folder / "config.json")["max_position_embeddings"])
    except (DataError, ValueError, KeyError, TypeError, OverflowError):
        reads = CONTEXT  # whoever loads it says what is wrong with it
    return max(1, min(CONTEXT, reads))


def _of_folder(folder: Path) -> OwnSettings:
    """For a checkpoint that no run here has made: as much as its model reads, up to a bound."""
    context = context_of(folder)
    values = {"model.max_context": context, "rollout.tokens_per_turn": max(1, min(TURN, context // 4))}
    return OwnSettings(values, f"{folder.name}/config.json")


def _taken(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of TAKEN that a configuration says."""
    return {name: value for name in TAKEN if (value := _at(config, name)) is not None}


def _at(config: Mapping[str, Any], name: str) -> Any:
    section, _, key = name.partition(".")
    inner = config.get(section)
    return inner.get(key) if isinstance(inner, Mapping) else None


def _checked(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The values, over the quickstart's where the run does not say. ConfigError for one that a setting cannot have."""
    for name, value in values.items():
        if name == "domain.name" and isinstance(value, str) and is_reference(value) and not _approved(value):
            raise ConfigError(
                f"{path}: {name} is {value}, code to be imported, and a run's folder may not name code: "
                f"if you trust it, add --domain {value}; or give another environment (--domain NAME)"
            )
        try:
            TAKEN.get(name, DomainConfig).model_validate({name.partition(".")[2]: value}, strict=True)
            if name == "domain.name" and not is_reference(value) and value not in names():
                raise ConfigError(unknown(value))
        except (ValidationError, ConfigError):
            shortened = repr(value) if len(repr(value)) < 80 else "of another kind"
            raise ConfigError(
                f"{path}: {name} is {shortened}, which this version of muarl does not know; say another by "
                f"{name}=VALUE, or all settings by --config (a preset's name or a file)"
            ) from None
    return _taken(load_config("quickstart").model_dump(mode="json")) | values


def _approved(reference: str) -> bool:
    """Whether the person has named this code. ConfigError if it is no reference."""
    return canonical(reference) in approved()


def _config(path: Path) -> dict[str, Any]:
    """The mapping in a run's config.yaml. ConfigError if it is none."""
    try:
        values = read_yaml(path)
    except DataError as problem:
        raise ConfigError(str(problem)) from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must be a mapping of keys to values, and is a {type(values).__name__}")
    return translated(values)
