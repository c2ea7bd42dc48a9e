"""What audits go by: what a domain's class declares, or rules in a file, for a domain that muarl does not know
(``--rules``) and beside the run of an own domain.

A run folder keeps the rules that its domain's class declares as data, so that ``muarl audit RUN`` uses them without the
class: nothing is imported from a run folder. What is written as code (``forbids``, ``authority``, ``applies``,
``learns``) stays with the class, and the file names it, so that an audit says what it could not check.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.files import write_text
from muarl.basics.patterns import problem_of
from muarl.basics.untrusted import read_yaml
from muarl.domains.auditing import UNDECLARED, AuditRules, Obligation, Resource, guessed_kind
from muarl.domains.base import Domain


def rules_for(domain: Domain | None) -> AuditRules:
    """The rules that a domain's class declares, as far as its tools allow. An ``Environment`` may have others
    (``Environment.audit_rules``), as those that come with muarl do."""
    if domain is None:
        return UNDECLARED
    return (type(domain).audit or UNDECLARED).for_tools(domain.tool_names())


def kinds_by(rules: AuditRules, kit: Domain | None = None) -> Callable[[str], str]:
    """What says of a tool whether it reads, writes or neither: the domain, else what the rules say, else its name."""

    @cache
    def kind_of(name: str) -> str:
        if kit is not None:
            try:
                return kit.kind_of(name)
            except KeyError:
                return "generic"
        return rules.kinds.get(name) or guessed_kind(name)

    return kind_of


FILE = "audit-rules.yaml"
"""In a run folder: the rules that the domain's class declared when the run was made; of another domain of the same run
in a file with a number."""

_NAMES = ("auth_tools", "open_tools", "transfer_tools", "free_writes", "trusted_tools")
_FLAGS = ("consent", "one_person")
_TEXTS = ("person", "told_person")
_WORDS = ("spoken", "wished")
FIELDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_NAMES, frozenset),
    **dict.fromkeys(_FLAGS, bool),
    **dict.fromkeys(_TEXTS, str),
}
"""What a file may say as in ``AuditRules``; besides: reads, writes, generic, spoken, wished, resources, obligations,
and what ``keep_rules`` adds, domain and in_code."""

_RESOURCE = ("table", "key", "owner", "held", "arguments", "pattern", "mark")
_OBLIGATION = ("name", "tools", "text", "say", "when", "or_value", "weight")


@dataclass(frozen=True)
class RulesFile:
    """The rules of a file."""

    rules: AuditRules
    domain: str = ""
    """Whose they are, "" if it does not say."""
    in_code: tuple[str, ...] = ()
    """What the domain's class declares besides, which no file can hold."""


def keep_rules(folder: Path, domain: Domain, rules: AuditRules | None = None, *, number: int = 1) -> Path | None:
    """Write an own domain's rules into a run folder, whole or not at all. ``rules``: None for those that the domain's
    class declares. ``number``: of the file, where several domains of a run have rules of their own.

    Returns the file's path; None, and no file, where there are none.
    """
    rules = rules or type(domain).audit
    if rules is None:
        return None
    head = f"# The audit rules that the domain {domain.name!r} declared when this run was made (docs/audit.md).\n"
    body = yaml.safe_dump(to_data(rules.for_tools(domain.tool_names()), domain), sort_keys=False, allow_unicode=True)
    path = _place(folder, number)
    write_text(path, head + body)
    return path


def kept_rules(folder: Path) -> list[Path]:
    """The files of ``keep_rules`` in a run folder."""
    return list(itertools.takewhile(Path.is_file, (_place(folder, number) for number in itertools.count(1))))


def _place(folder: Path, number: int) -> Path:
    return folder / (FILE if number == 1 else FILE.replace(".", f"-{number}."))


def to_data(rules: AuditRules, domain: Domain) -> dict[str, Any]:
    """Rules as plain data, which ``from_data`` reads; what equals the default is left out."""
    plain = AuditRules()
    out: dict[str, Any] = {"domain": domain.name}
    for kind in ("read", "write", "generic"):
        if named := sorted(n for n in domain.tool_names() if domain.kind_of(n) == kind):
            out[kind if kind == "generic" else f"{kind}s"] = named
    for name in (*_NAMES, *_FLAGS, *_TEXTS):
        value = getattr(rules, name)
        if value != getattr(plain, name):
            out[name] = sorted(value) if name in _NAMES else value
    for name in _WORDS:
        if words := getattr(rules, name):
            out[name] = {tool: list(phrases) for tool, phrases in words.items()}
    if rules.resources:
        out["resources"] = [_as_data(r, _RESOURCE) for r in rules.resources]
    if obligations := [_as_data(o, _OBLIGATION) for o in rules.obligations if o.applies is None]:
        out["obligations"] = obligations
    in_code = [f"forbids: {tool}" for tool in rules.forbids] + [f"authority: {tool}" for tool in rules.authority]
    in_code += [f"obligations: {o.name}" for o in rules.obligations if o.applies is not None]
    in_code += ["learns"] if rules.learns is not None else []
    return out | ({"in_code": in_code} if in_code else {})


def _as_data(thing: Resource | Obligation, names: tuple[str, ...]) -> dict[str, Any]:
    out = {}
    for name in names:
        value = getattr(thing, name)
        if isinstance(value, (tuple, frozenset)):
            value = sorted(value) if isinstance(value, frozenset) else list(value)
        if value not in (None, "", [], False):
            out[name] = value
    return out


def read_rules(path: Path, what: str = "--rules: ") -> RulesFile:
    """The rules of a YAML or JSON file (docs/audit.md). ConfigError names the field that is wrong; ``what`` begins its
    message."""
    try:
        data = read_yaml(path)
    except DataError as problem:
        raise ConfigError(f"{what}{problem}") from None
    if not isinstance(data, Mapping):
        raise ConfigError(f"{what}{path} must hold fields such as auth_tools and writes")
    try:
        return from_data(data)
    except ConfigError as problem:
        raise ConfigError(f"{what}{path}: {problem}") from None


def from_data(data: Mapping[str, Any]) -> RulesFile:
    """Rules from plain data. ConfigError names the field that is wrong."""
    out: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    domain, in_code = "", []
    name = ""
    try:
        for name, value in data.items():
            if name in ("reads", "writes", "generic"):
                kinds |= dict.fromkeys(_names(value, name), name.removesuffix("s"))
            elif name in _WORDS:
                out[name] = {str(k): tuple(_names(v, f"{name}.{k}")) for k, v in dict(value).items()}
            elif name == "resources":
                out[name] = tuple(_resource(r) for r in value)
            elif name == "obligations":
                duties = [_fields(o, name, ("say",)) for o in value]
                out[name] = tuple(Obligation(**{**o, "tools": frozenset(_names(o["tools"], name))}) for o in duties)
            elif name in FIELDS:
                make = FIELDS[name]
                out[name] = make(_names(value, name)) if make is frozenset else _typed(value, make, name)
            elif name == "domain":
                domain = _typed(value, str, name)
            elif name == "in_code":
                in_code = _names(value, name)
            else:
                raise ConfigError(f"{name} is unknown; see docs/audit.md")
        if (pattern := out.get("told_person")) is not None:
            _pattern(pattern, "told_person")
    except ConfigError:
        raise
    except (TypeError, KeyError, ValueError) as problem:
        raise ConfigError(f"{name}: {problem}") from None
    return RulesFile(AuditRules(**out, kinds=kinds), domain, tuple(in_code))


def _resource(data: Any) -> Resource:
    resource = Resource(**_fields(data, "resources", ("held", "arguments")))
    _pattern(resource.pattern, "resources.pattern")
    return resource


def _pattern(text: Any, name: str) -> None:
    if (problem := problem_of(text)) is not None:
        raise ConfigError(f"{name}: {text!r} is no regular expression: {problem}")


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
