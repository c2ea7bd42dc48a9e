"""Text files of published folders by Jinja2, from the folder ``templates``."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("muarl_tools.publish"),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"python": _python, "json": _json, "percent": _percent}
    return made


def filled(name: str, **values: Any) -> str:
    """The template NAME.jinja with these values. Nothing is escaped but by the filters ``python`` and ``json``,
    which write a value as a literal; those of JSON are YAML's and, as far as text and lists go, TOML's."""
    return _templates().get_template(f"{name}.jinja").render(values)


def _python(value: Any) -> str:
    return _json(value) if isinstance(value, str) else repr(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _percent(share: float) -> str:
    return f"{share:.1%}"
