"""Settings that have another name now.

An old name in a configuration is an error that says the new one (``load.py``). The ``config.yaml`` that an older muarl
wrote into a run's folder is read with its names translated, so that the run can be resumed and evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

RENAMED: Mapping[str, str] = {
    "rl.max_turns": "rollout.max_turns",
    "rl.tokens_per_turn": "rollout.tokens_per_turn",
    "rl.max_tool_errors": "rollout.max_tool_errors",
    "rl.concurrency": "rollout.concurrency",
    "rl.pack_tokens": "learner.pack_tokens",
    "sft.habits": "sft.error_profile",
    "sft.error_profile.slip": "sft.error_profile.wrong_id",
    "coldstart.habits": "coldstart.error_profile",
    "coldstart.error_profile.slip": "coldstart.error_profile.wrong_id",
}
"""Old name to new: of a setting, or of a section with all that is in it (then its renamed settings)."""

MADE_BY_RUNS = ("status.json", "metrics.jsonl", "episodes", "checkpoints")
"""What stands beside a ``config.yaml`` that a run wrote."""


def new_name(name: str) -> str | None:
    """What the setting of that dotted name is called now; None if it was never renamed."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (new := RENAMED.get(".".join(parts[:length]))) is not None:
            name = ".".join([new, *parts[length:]])
            return new_name(name) or name
    return None


def written_by_run(path: Path) -> bool:
    """Whether a file is the configuration that a run keeps in its folder."""
    return path.name == "config.yaml" and any((path.parent / name).exists() for name in MADE_BY_RUNS)


def translated(values: Mapping[str, Any]) -> dict[str, Any]:
    """A run's configuration with its old names replaced. Where both names are given, the new one counts. A run that
    wrote no ``model.earlier_thoughts`` kept them."""
    out = dict(values)
    model = out.get("model")
    if isinstance(model, Mapping) and model.get("thinking") is True and "extends" not in out:
        out["model"] = {"earlier_thoughts": "keep", **model}
    for old, new in RENAMED.items():
        *path, last = old.split(".")
        parent = _at(out, path)
        if parent is None or last not in parent:
            continue
        out = _without(out, old.split("."))
        *above, name = new.split(".")
        if _at(out, above) is None or name not in (_at(out, above) or {}):
            out = _with(out, new.split("."), parent[last])
    return out


def _at(values: Mapping[str, Any], path: list[str]) -> Mapping[str, Any] | None:
    for key in path:
        inner = values.get(key)
        if not isinstance(inner, Mapping):
            return None
        values = inner
    return values


def _without(values: Mapping[str, Any], path: list[str]) -> dict[str, Any]:
    key, *below = path
    if not below:
        return {name: value for name, value in values.items() if name != key}
    return {**values, key: _without(values[key], below)}


def _with(values: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    key, *below = path
    if not below:
        return {**values, key: value}
    inner = values.get(key)
    return {**values, key: _with(inner if isinstance(inner, Mapping) else {}, below, value)}
