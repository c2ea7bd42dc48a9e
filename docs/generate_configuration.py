"""Writes docs/configuration.md from the field descriptions in muarl.config. Run it after changing a section:

python docs/generate_configuration.py
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic_core import PydanticUndefined

from muarl.config.load import all_presets
from muarl.config.section import Section
from muarl.config.sections import RunConfig, fields_of

PAGE = Path(__file__).with_name("configuration.md")

HEAD = """# Configuration

<!-- Written by docs/generate_configuration.py from the descriptions in src/muarl/config. Do not edit. -->

This page lists every preset and setting of a run.

A run is described by one YAML file: `--config` takes a preset's name or a file's path. `KEY=VALUE` arguments override
it; `--dry-run` prints the result with all defaults.

    muarl train --config cpu rl.steps=10 rl.lr=1e-4 --dry-run

A file may extend a preset or another file:

```yaml
extends: cpu
name: mine
rl:
  group_size: 16
  lr: 1e-4
```

Unknown keys, YAML aliases (`*name`) and tags (`!!name`) are errors. Each run's folder has the resolved configuration as
`config.yaml`, which `--config` takes, too.

After the default come other values, or the type where the default does not show it: `float32`/`auto`/`bfloat16`.

## Presets

A file of your own may say under `about` what it is (`command`, `text`), for `muarl presets`.

| preset (command) | what it is |
|---|---|
{presets}
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD.format(presets="\n".join(f"| `{p.name}` ({p.command}) | {p.text} |" for p in all_presets()))]
    parts.append(_table("The run", RunConfig, ""))
    shown: set[type[Section]] = set()
    for name, section, _ in fields_of(RunConfig):
        if section is not None and section not in shown:
            shown.add(section)
            same = [n for n, s, _ in fields_of(RunConfig) if s is section and n != name]
            title = f"`{name}`" + (f" (and {', '.join(f'`{n}`' for n in same)})" if same else "")
            parts.append(_table(title, section, f"{name}."))
    return "\n".join(parts)


def _table(title: str, section: type[Section], prefix: str) -> str:
    about = textwrap.fill(
        " ".join((section.__doc__ or "").split()), 120, break_long_words=False, break_on_hyphens=False
    )
    lines = [f"\n## {title}\n", f"{about}\n"]
    lines += ["| key: default | meaning |", "|---|---|"]
    for name, info in section.model_fields.items():
        if info.description is not None:
            cells = (f"`{prefix}{name}`: {_default_and_values(info)}", info.description)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _default_and_values(info: Any) -> str:
    """A field's default, then what else it may hold where the default does not show it, as one word."""
    value = info.default
    if value is PydanticUndefined:
        return "/".join(_values(info.annotation))
    plain = json.dumps(str(value) if isinstance(value, Path) else value, default=list).replace('"', "")
    others = [v for v in _values(info.annotation) if v != f"`{value}`"]
    shows = isinstance(value, (bool, int, float)) and others in (["bool"], ["int"], ["number"])
    return "/".join([f"`{plain}`", *(() if shows or (value and others == ["list"]) else others)])


def _values(annotation: Any) -> list[str]:
    """What a field may hold, besides null."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return [v for a in arguments if a is not type(None) for v in _values(a)]
    if annotation in (bool, int, float, str):
        return [{bool: "bool", int: "int", float: "number", str: "text"}[annotation]]
    if annotation is Path:
        return ["path"]
    if str(origin) == "typing.Literal":
        return [f"`{value}`" for value in arguments]
    if hasattr(annotation, "__metadata__"):
        return _values(arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return ["section"]
    return ["list" if origin is tuple else "mapping"]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
