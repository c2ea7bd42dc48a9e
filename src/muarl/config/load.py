"""Presets, files and dotted overrides become a checked ``RunConfig``, or one clear line for each thing wrong."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_yaml, read_yaml
from muarl.config import mixing
from muarl.config.mixing import unnumbered
from muarl.config.renamed import new_name, translated, written_by_run
from muarl.config.rl import METHODS, with_method
from muarl.config.section import Section
from muarl.config.sections import RunConfig, fields_of
from muarl.config.trust import Origin, Provenance, recall, trusted

PRESETS = Path(__file__).parent.parent / "presets"

ABOUT = "about"
"""The key of a configuration file under which it says what it is for. It belongs to the file: files that extend it do
not take it over, and it is no setting."""


@dataclass(frozen=True)
class Preset:
    """A configuration that comes with muarl."""

    name: str
    """What ``--config`` takes."""
    command: str
    """The command of muarl that it is made for."""
    text: str
    """What it is, in one line."""


def preset_names() -> list[str]:
    """The presets shipped with the package, sorted."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def all_presets() -> list[Preset]:
    """All of them, sorted by name."""
    presets = []
    for name in preset_names():
        about = about_of(read_yaml(PRESETS / f"{name}.yaml"), f"preset {name}")
        presets.append(Preset(name, about.get("command", ""), about.get("text", "")))
    return presets


def about_of(values: Any, label: str) -> dict[str, str]:
    """What a configuration file says of itself. ConfigError if it is no mapping of ``command`` and ``text`` to text."""
    about = values.get(ABOUT, {}) if isinstance(values, Mapping) else {}
    if not isinstance(about, Mapping) or not all(
        key in ("command", "text") and isinstance(value, str) for key, value in about.items()
    ):
        raise ConfigError(f"{label}: {ABOUT} must be a mapping with the texts `command` and `text`, or be left out")
    return dict(about)


Keys = tuple[str, ...]
MOST_LINES = 50
"""Problems of a configuration that are told at once."""
MOST_KEYS = 16
"""Parts of an override's key, at most; none that exists has so many."""


def load_config(source: str | Path, overrides: Sequence[str] = (), *, starts: bool = True) -> RunConfig:
    """Read the preset of that name, or the YAML file at that path, and lay ``key.path=value`` overrides over it.

    Values of overrides are read as YAML (``rl.lr=1e-4``, ``eval.tasks=null``). Raises
    ConfigError with one line per problem: the file or override, the key, what is wrong, and the nearest known key.

    Overrides are the person's own words; what a file says of keys, addresses and files is bounded (see ``trust``).
    ``starts``: whether a run may be started by it; False where it is only looked at.
    """
    label, path, values, origins = _laid_over(source, overrides)
    try:
        config = RunConfig.model_validate(values)
    except ValidationError as problem:
        lines = list(islice(_explain(problem, origins, label), MOST_LINES))
        more = problem.error_count() - len(lines)
        raise ConfigError("\n".join([*lines, *([f"... and {more} more."] if more else [])])) from None
    file = None if _is_preset(path) else path
    return trusted(config, Provenance(origins, file, {} if file is None else recall(file)), starts=starts)


def given_value(source: str | Path, overrides: Sequence[str], name: str) -> Any:
    """What a setting was given as (by its dotted name), such as ``auto``; None where nobody gives it. ConfigError as
    of ``load_config``."""
    _, _, values, _ = _laid_over(source, overrides)
    value: Any = values
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _laid_over(
    source: str | Path, overrides: Sequence[str]
) -> tuple[str, Path, dict[str, Any], dict[tuple[str, ...], Origin]]:
    """The label of a source, its file, its values with the overrides, and where each comes from."""
    label, path = _locate(source)
    values, origins = _read(path, label, ())
    parsed = [(text, *_parse_override(text)) for text in overrides]
    for text, keys, value in [*_methods(parsed), *parsed]:
        _set(values, keys, value, text)
        origin = Origin(f"override {_shown(text)}", "command")
        for depth in range(1, len(keys) + 1):
            origins.setdefault(keys[:depth], origin)
        for below in [
            other for other in origins if unnumbered(other)[: len(keys)] == keys or other[: len(keys)] == keys
        ]:
            del origins[below]  # the value as a whole is another now
        origins[keys] = origin
        origins |= {(*keys, *rest): origin for rest in _leaves(value)}
    return label, path, values, origins


def _methods(parsed: Sequence[tuple[str, Keys, Any]]) -> Iterator[tuple[str, Keys, Any]]:
    """What an ``rl.method`` among the overrides stands for, as overrides that come before all others."""
    for text, keys, value in parsed:
        if keys == ("rl", "method"):
            for name, implied in METHODS.get(str(value), {}).items():
                yield text, ("rl", name), implied


def dump_config(config: RunConfig) -> str:
    """The whole configuration as YAML, every default written out. ``load_config`` reads it back to an equal config."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)


def _locate(source: str | Path) -> tuple[str, Path]:
    """The label to name in messages, and the file."""
    text = str(source)
    if text in preset_names():
        return f"preset {text}", PRESETS / f"{text}.yaml"
    if text.endswith((".yaml", ".yml")) or os.sep in text:
        path = Path(source)
        if _is_file(path / "config.yaml"):
            path = path / "config.yaml"
        if not _is_file(path):
            if os.path.isdir(path):  # noqa: PTH112  (Path.is_dir raises where a name is too long)
                raise ConfigError(f"{_cut(text)}: is a folder without a config.yaml; name a YAML file.")
            raise ConfigError(f"{_cut(text)}: no such file. Presets: {', '.join(preset_names())}.")
        return str(path), path
    raise ConfigError(
        f"There is no preset {text!r}{_nearest(text, preset_names())} Known presets: {', '.join(preset_names())}. "
        "For a file of your own, give a path that ends in .yaml."
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long for one
        return False


def _is_preset(path: Path) -> bool:
    return path.parent == PRESETS


def _read(path: Path, label: str, above: tuple[Path, ...]) -> tuple[dict[str, Any], dict[tuple[str, ...], Origin]]:
    """The mapping in a YAML file laid over the one it extends, and which file each key came from."""
    if path.resolve() in above:
        raise ConfigError(f"{label}: extends itself, by way of {', '.join(p.name for p in above)}.")
    try:
        values = read_yaml(path, label=label)
    except DataError as problem:
        raise ConfigError(str(problem)) from None
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{label}: must be a mapping of keys to values, and is a {type(values).__name__}.")
    if written_by_run(path):
        values = translated(values)
    about_of(values, label)
    values = with_method({key: value for key, value in values.items() if key != ABOUT})
    parent = values.pop("extends", None)
    base: dict[str, Any] = {}
    origins: dict[tuple[str, ...], Origin] = {}
    if parent is not None:
        beside = path.parent / str(parent)
        parent_label, parent_path = _locate(beside if _is_file(beside) else str(parent))
        base, origins = _read(parent_path, parent_label, (*above, path.resolve()))
    for keys in _leaves(values):
        origins[keys] = Origin(label, "preset" if _is_preset(path) else "file")
    return _merge(base, values), origins


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``; mappings merge, everything else replaces."""
    out = dict(base)
    for key, value in over.items():
        below = out.get(key)
        if isinstance(below, list) and isinstance(value, dict) and key == "domain":
            out[key] = mixing.laid_over(below, value)
        else:
            out[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return out


def _leaves(values: Any, prefix: Keys = ()) -> Iterator[Keys]:
    """The path of every key, and of every entry of a list of sections by its number."""
    listed = isinstance(values, list) and any(isinstance(one, dict) for one in values)
    below = values if isinstance(values, dict) else dict(enumerate(values)) if listed else {}
    for key, value in below.items():
        path = (*prefix, str(key))
        yield path
        yield from _leaves(value, path)


def _parse_override(text: str) -> tuple[tuple[str, ...], Any]:
    name, equals, value = text.partition("=")
    keys = tuple(part.strip() for part in name.split(".", MOST_KEYS))
    if not equals or not all(keys):
        raise ConfigError(f"override {_shown(text)}: write it as key=value, such as rl.steps=10.")
    if len(keys) > MOST_KEYS:
        raise ConfigError(f"override {_shown(text)}: there is no key of more than {MOST_KEYS} parts.")
    try:
        return keys, parse_yaml(value)
    except ValueError as problem:
        raise ConfigError(f"override {_shown(text)}: {problem}.") from None


def _set(values: dict[str, Any], keys: tuple[str, ...], value: Any, text: str) -> None:
    if keys == ("domain", "name") and isinstance(value, list):
        before = values.get("domain", {})
        values["domain"] = mixing.chosen(before if isinstance(before, list) else [before], value)
        return
    if keys[0] == "domain" and len(keys) > 1 and isinstance(values.get("domain"), list):
        try:
            values["domain"] = mixing.changed(values["domain"], keys[1:], value)
        except ConfigError as problem:
            raise ConfigError(f"override {_shown(text)}: {problem}") from None
        return
    for depth, key in enumerate(keys[:-1], 1):
        inner = values.setdefault(key, {})
        if inner is None:
            inner = values[key] = {}
        if not isinstance(inner, dict):
            raise ConfigError(
                f"override {_shown(text)}: {'.'.join(keys[:depth])} is a single value and has no keys below it."
            )
        values = inner
    values[keys[-1]] = value


def _explain(problem: ValidationError, origins: Mapping[tuple[str, ...], Origin], label: str) -> Iterator[str]:
    """One line for each thing that is wrong."""
    for error in problem.errors(include_url=False):
        loc = tuple(str(part) for part in error["loc"])
        if loc[:2] == ("domain", "0") and not any(keys[:2] == ("domain", "0") for keys in origins):
            loc = unnumbered(loc)  # one domain is validated as a list of one
        name = ".".join(loc)
        ways = [part[:n] for n in range(len(loc), 0, -1) for part in (loc, unnumbered(loc)) if n <= len(part)]
        where = next((origins[way].label for way in ways if way in origins), label)
        # A rule over several keys fails at the section; the override below it, if there is one, is what broke it.
        below = {
            ".".join(keys): origin.label
            for keys, origin in origins.items()
            if keys[: len(loc)] == loc and origin.kind == "command"
        }
        named = [o for key, o in below.items() if re.search(rf"(?<![\w.]){re.escape(key)}(?!\w)", error["msg"])]
        where = ", ".join(dict.fromkeys(named or below.values())) or where
        if error["type"] == "extra_forbidden":
            if (renamed := new_name(name)) is not None:
                yield f"{where}: {name} is now {renamed}."
                continue
            names = [field for field, _, _ in fields_of(RunConfig)]
            yield f"{where}: there is no key {_shown(name)}{_nearest(name, names)}"
        elif error["type"] == "literal_error" and (near := _nearest_value(error)):
            yield f"{where}: {name}: {_shown(error['input'])} is unknown; did you mean {near!r}?"
        else:
            what = error["msg"].removeprefix("Value error, ")
            actual = f", and is {_shown(error['input'])}" if not isinstance(error["input"], Mapping | Section) else ""
            yield f"{where}: {name + ': ' if name else ''}{what}{actual}"


def _shown(value: Any) -> str:
    """A value as an error quotes it: what somebody else wrote may be long."""
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:120]}... ({len(text)} characters)"


def _nearest_value(error: Mapping[str, Any]) -> str | None:
    """Of the values that a setting may have, the one that was perhaps misspelt."""
    text = str(error["input"])
    allowed = re.findall(r"'([^']*)'", str(error["ctx"]["expected"])) if len(text) < 100 else []
    nearest = difflib.get_close_matches(text, allowed, 1, 0.75)
    return nearest[0] if nearest else None


def _nearest(name: str, names: Sequence[str]) -> str:
    """The end of the sentence: ``; did you mean ...?`` with the nearest known dotted name, or a full stop."""
    siblings = [k for k in names if k.rpartition(".")[0] == name.rpartition(".")[0]]
    for candidates, cutoff in ((siblings, 0.6), (names, 0.75)):
        if matches := difflib.get_close_matches(name, candidates, 1, cutoff):
            return f"; did you mean {matches[0]!r}?"
    tail = name.rpartition(".")[2]
    same_tail = [k for k in names if k.rpartition(".")[2] == tail]
    return f"; did you mean {same_tail[0]!r}?" if same_tail else "."
