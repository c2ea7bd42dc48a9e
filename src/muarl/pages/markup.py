"""Small pieces of HTML by functions, for where a template would be longer (``templates``). Text is escaped unless it is
``Html``, so nothing that a model or user wrote can become markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from markupsafe import Markup

_VOID = frozenset({"meta", "br", "hr", "link", "input"})
# Control characters that HTML cannot hold, and bidirectional overrides that could make a text read as another.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


class Html(Markup):
    """Text that is markup already. Only this module, templates and constants should make one."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | Markup | Iterable[Child] | None"


def escape(text: str) -> Html:
    """Text for element content or a quoted attribute; unseen characters are shown as their code point."""
    readable = _UNSEEN.sub(lambda m: f"\\u{ord(m.group()):04x}", text)
    return Html(html.escape(readable.encode("utf-8", "replace").decode("utf-8"), quote=True))


def join(*children: Child) -> Html:
    """Children one after another: None is nothing, ``Html`` as it is, lists flattened, everything else escaped."""
    out: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            out.append(child)
        elif isinstance(child, (str, int, float)):
            out.append(escape(str(child)))
        else:
            out.append(join(*child))
    return Html("".join(out))


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """One element. ``class_`` means class, ``stroke_width`` stroke-width; None and False leave an attribute out."""
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        # SVG's viewBox is the one name here that is written with a capital.
        word = "viewBox" if key == "viewBox" else key.rstrip("_").replace("_", "-")
        parts.append(word if value is True else f'{word}="{escape(str(value))}"')
    opening = f"<{' '.join(parts)}>"
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")


def table_of(head: Sequence[str], rows: Sequence[Html], class_: str | None = None, *, words: int = 1) -> Html:
    """A table; every column but the first ``words`` is of numbers."""
    cells = [tag("th", text, class_="n" if n >= words else None, scope="col") for n, text in enumerate(head)]
    return tag("div", tag("table", tag("thead", tag("tr", cells)), tag("tbody", rows), class_=class_), class_="scroll")
