"""A file of rules for ``muarl audit``: what an audit must know of a domain that is none of muarl's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.errors import ConfigError, DataError
from muarl.untrusted import read_yaml

if TYPE_CHECKING:
    from muarl.domains.auditing import AuditRules

RULES_FIELDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("auth_tools", "open_tools", "transfer_tools", "free_writes", "trusted_tools"), frozenset),
    **dict.fromkeys(("consent", "one_person"), bool),
    **dict.fromkeys(("person", "told_person"), str),
}
"""What a file of rules may say as in ``AuditRules``; besides: reads, writes, generic, spoken, wished, resources,
obligations."""


def read_rules(path: Path) -> AuditRules:
    """Rules for a domain of one's own, from YAML or JSON (docs/audit.md). ConfigError names the field that is wrong."""
    from muarl.domains.auditing import AuditRules, Obligation, Resource

    try:
        given = read_yaml(path)
    except DataError as problem:
        raise ConfigError(f"--rules: {problem}") from None
    if not isinstance(given, Mapping):
        raise ConfigError(f"--rules: {path} must hold fields such as auth_tools and writes")
    out: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    try:
        for name, value in given.items():
            if name in ("reads", "writes", "generic"):
                kinds |= dict.fromkeys(_names(value, name), name.removesuffix("s"))
            elif name in ("spoken", "wished"):
                out[name] = {str(k): tuple(_names(v, f"{name}.{k}")) for k, v in dict(value).items()}
            elif name == "resources":
                out[name] = tuple(Resource(**_fields(r, name, ("held", "arguments"))) for r in value)
            elif name == "obligations":
                duties = [_fields(o, name, ("say",)) for o in value]
                out[name] = tuple(Obligation(**{**o, "tools": frozenset(_names(o["tools"], name))}) for o in duties)
            elif name in RULES_FIELDS:
                make = RULES_FIELDS[name]
                out[name] = make(_names(value, name)) if make is frozenset else _typed(value, make, name)
            else:
                raise ConfigError(f"{name} is unknown; see docs/audit.md")
    except ConfigError as problem:
        raise ConfigError(f"--rules: {path}: {problem}") from None
    except (TypeError, KeyError, ValueError) as problem:
        raise ConfigError(f"--rules: {path}: {name}: {problem}") from None
    return AuditRules(**out, kinds=kinds)


def _names(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise ConfigError(f"{name} must be a list of names, not {value!r}")
    return value


def _typed(value: Any, kind: Any, name: str) -> Any:
    if not isinstance(value, kind):
        raise ConfigError(f"{name} must be {'true or false' if kind is bool else 'text'}, not {value!r}")
    return value


def _fields(value: Any, name: str, lists: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} must be a list of objects, not of {value!r}")
    return {str(k): tuple(v) if k in lists and isinstance(v, list) else v for k, v in value.items() if k != "applies"}
