"""Several domains in one configuration: ``domain`` as one section or as a list of them, and settings laid over a list.

domain: {name: retail-generated, size: official}

domain:
  - {name: retail-generated, size: official, weight: 2}
  - {name: airline-generated, size: official}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.basics.errors import ConfigError

Keys = tuple[str, ...]


def as_sections(domain: Any) -> Any:
    """What ``domain`` holds as a list of sections, for validation. A name stands for a section with that name."""
    listed = list(domain) if isinstance(domain, list | tuple) else [domain]
    return tuple({"name": one} if isinstance(one, str) else one for one in listed)


def as_written(sections: Sequence[Any]) -> Any:
    """The inverse, for what is written down: of one domain its section alone."""
    return sections[0] if len(sections) == 1 else list(sections)


def unnumbered(keys: Keys) -> Keys:
    """The path of a setting in a list of domains as that of the same setting of one."""
    return (keys[0], *keys[2:]) if len(keys) > 1 and keys[0] == "domain" and keys[1].isdigit() else keys


def changed(entries: Sequence[Any], keys: Keys, value: Any) -> Any:
    """A list of domains with one setting changed: of the entry with a number (``0.weight``), else of all of them.

    ``name`` chooses other domains instead (see ``chosen``). ConfigError for a number that the list does not have.
    """
    listed = list(as_sections(list(entries)))
    if not all(isinstance(one, Mapping) for one in listed):
        return list(entries)  # told when it is validated
    first, *rest = keys
    if first.isdigit():
        number = int(first)
        if number >= len(listed):
            raise ConfigError(f"domain.{first}: the list has {len(listed)} domains, numbered from 0")
        listed[number] = _with(listed[number], tuple(rest), value)
        return listed
    if keys == ("name",):
        return chosen(listed, value)
    return [_with(one, keys, value) for one in listed]


def laid_over(entries: Sequence[Any], section: Mapping[str, Any]) -> Any:
    """A list of domains under a section that a file lays over it: as if each of its settings were changed."""
    out: Any = list(entries)
    for key in sorted(section, key=lambda k: k != "name"):
        out = changed(out, (str(key),), section[key]) if isinstance(out, list) else {**out, key: section[key]}
    return out


def chosen(entries: Sequence[Any], names: Any) -> Any:
    """The domain of a name instead of those of a list, or the domains of several names (each a name, or
    ``{"name", "weight"}`` and more). Each is the entry with that name, else it has what all entries share."""
    sections = [one for one in as_sections(list(entries)) if isinstance(one, Mapping)]
    if not isinstance(names, list):
        return _chosen(sections, names)
    listed = [one if isinstance(one, Mapping) else {"name": one} for one in names]
    return [{**_chosen(sections, one.get("name")), **one} for one in listed]


def _chosen(entries: Sequence[Mapping[str, Any]], name: Any) -> dict[str, Any]:
    same = next((dict(one) for one in entries if one.get("name") == name), None)
    if same is None:
        first = entries[0] if entries else {}
        same = {k: v for k, v in first.items() if all(k in one and one[k] == v for one in entries)}
    same.pop("weight", None)
    return {**same, "name": name}


def _with(section: Any, keys: Keys, value: Any) -> Any:
    if not keys:
        return value
    inner = section.get(keys[0]) if isinstance(section, Mapping) else None
    below = value if len(keys) == 1 else _with(inner if isinstance(inner, Mapping) else {}, keys[1:], value)
    return {**section, keys[0]: below}
