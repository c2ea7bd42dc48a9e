"""The presets that come with the package, and what each is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.untrusted import read_yaml

PRESETS = Path(__file__).parent.parent / "presets"

ABOUT = "about"
"""The key of a configuration file under which it says what it is for. It belongs to the file: files that extend it do
not take it over, and it is no setting."""


@dataclass(frozen=True)
class Preset:
    """``name``: what ``--config`` takes. ``command``: the command of muarl that it is made for. ``text``: what it is,
    in one line."""

    name: str
    command: str
    text: str


def preset_names() -> list[str]:
    """The presets shipped with the package, sorted."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def all_presets() -> list[Preset]:
    """All of them, sorted by name."""
    found = []
    for name in preset_names():
        about = about_of(read_yaml(PRESETS / f"{name}.yaml"), f"preset {name}")
        found.append(Preset(name, about.get("command", ""), about.get("text", "")))
    return found


def about_of(values: Any, label: str) -> dict[str, str]:
    """What a configuration file says of itself. ConfigError if it is no mapping of ``command`` and ``text`` to text."""
    found = values.get(ABOUT, {}) if isinstance(values, Mapping) else {}
    if not isinstance(found, Mapping) or not all(
        key in ("command", "text") and isinstance(value, str) for key, value in found.items()
    ):
        raise ConfigError(f"{label}: {ABOUT} must be a mapping with the texts `command` and `text`, or be left out")
    return dict(found)
