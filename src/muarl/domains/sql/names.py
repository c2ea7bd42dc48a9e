"""Which tables of a SQL database a domain reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muarl.basics.errors import ConfigError
from muarl.domains.authoring import nearest


def chosen(names: Sequence[str], kinds: Mapping[str, str], where: str) -> list[str]:
    """The tables named, or all. ``kinds``: what there is by name, "table" or something else ("view").

    ConfigError for one that there is not, or that is no table.
    """
    tables = [name for name, kind in kinds.items() if kind == "table"]
    for name in names:
        kind = kinds.get(name)
        if kind is None:
            listed = ", ".join(tables) or "none"
            raise ConfigError(f"{where}: there is no table {name!r}{nearest(name, tables)}; tables: {listed}")
        if kind != "table":
            what = kind if kind == "view" else f"{kind} table"
            raise ConfigError(
                f"{where}: {name!r} is a {what}, whose rows have no key of their own: name the tables that it is made "
                "of, and let the tool put their rows together"
            )
    return list(dict.fromkeys(names)) or tables
