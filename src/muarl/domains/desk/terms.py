"""References, conditions and texts of procedures, resolved against what is known in a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muarl.domains.desk.spec import PLACE
from muarl.domains.desk.values import normal, say_date

Known = Mapping[str, Any]


class Unknown(LookupError):
    """A reference to something that is not known yet; ``name`` is its first part."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def lookup(path: str, known: Known) -> Any:
    """The value at a dotted path, None where a record has no such field. Unknown if its first part is not known."""
    first, *rest = path.split(".")
    if first not in known:
        raise Unknown(first)
    value = known[first]
    for part in rest:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def resolve(value: Any, known: Known) -> Any:
    """What a step's argument stands for: a reference's value, else the value itself."""
    if isinstance(value, str) and value.startswith("$"):
        return lookup(value[1:], known)
    return value


def rows(value: Any) -> list[Any]:
    """The records of a list, or of a mapping from ids to records."""
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else []


def holds(condition: Mapping[str, Any], known: Known, record: Any = None) -> bool:
    """Whether all parts of a condition hold. Keys are fields of ``record`` ("it": itself), or paths where it is None.

    A value means "equal to", a list "one of", a mapping comparisons, all of which must hold: ``at_most``, ``at_least``,
    ``below``, ``above``, ``not`` (a value or a list), ``in`` (a list), ``has`` and ``lacks`` (the field is a list),
    ``empty`` (whether it is a list with nothing in it). ``times`` multiplies the field before it is compared.
    """
    for path, wanted in condition.items():
        if path == "it":
            have = record
        else:
            have = lookup(path, known) if record is None else lookup(f"record.{path}", {"record": record})
        if isinstance(wanted, Mapping):
            if "times" in wanted:
                have = float(have) * float(resolve(wanted["times"], known))
                wanted = {k: v for k, v in wanted.items() if k != "times"}
            if not all(_compare(have, name, resolve(value, known)) for name, value in wanted.items()):
                return False
        elif not _one_of(have, resolve(wanted, known)):
            return False
    return True


def _one_of(have: Any, wanted: Any) -> bool:
    several = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    return normal(have) in [normal(w) for w in several]


def _compare(have: Any, name: str, wanted: Any) -> bool:
    if name == "not":
        return not _one_of(have, wanted)
    if name == "empty":
        return bool(wanted) == (not rows(have))
    if name == "in":
        return _one_of(have, rows(wanted))
    if name in ("has", "lacks"):
        held = [normal(h) for h in rows(have)]
        return (normal(wanted) in held) == (name == "has")
    left, right = normal(have), normal(wanted)
    if left is None or right is None or type(left) is not type(right):
        return False
    results = {"at_most": left <= right, "at_least": left >= right, "below": left < right, "above": left > right}
    return results[name]


def fill(text: str, known: Known, spoken: Known | None = None) -> str:
    """A text with its places filled. ``spoken``: forms of slots to use instead of their values."""

    def put(found: Any) -> str:
        path, form = found[1], found[2]
        if form is None and spoken is not None and path in spoken:
            return str(spoken[path])
        return show(lookup(path, known), form)

    return PLACE.sub(put, text)


def show(value: Any, form: str | None) -> str:
    """A value in words: ``money``, ``plain`` (money without its sign), ``date``, ``list``, ``lower``, or as it is."""
    if form == "money":
        return f"${float(value):,.2f}"
    if form == "plain":
        return f"{float(value):.2f}"
    if form == "date":
        return say_date(str(value))
    if form == "list":
        return join([str(v) for v in rows(value)])
    text = str(value)
    if isinstance(value, float):
        text = f"{value:.2f}"
    return text.lower() if form == "lower" else text


def join(words: list[str], last: str = "and") -> str:
    """Words in a row: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else "none"
