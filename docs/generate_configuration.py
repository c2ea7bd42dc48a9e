"""Writes docs/configuration.md from the field descriptions in muarl.config. Run it after changing a section:

python docs/generate_configuration.py
"""

from __future__ import annotations

import json
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic_core import PydanticUndefined

from muarl.config.load import all_presets
from muarl.config.section import Section
from muarl.config.sections import RunConfig, fields_of

PAGE = Path(__file__).with_name("configuration.md")

HEAD = """# Configuration

<!-- Written by docs/generate_configuration.py from the descriptions in src/muarl/config/sections.py. Do not edit. -->

A run is described by one YAML file. `--config` takes the name of a preset or the path of a file of your own;
`KEY=VALUE` arguments are laid over it; `--dry-run` prints the result, every default written out.

    muarl train --config cpu rl.steps=10 rl.lr=1e-4 --dry-run

A file may start from a preset or another file, and name only what differs:

```yaml
extends: cpu
name: mine
rl:
  group_size: 16
  lr: 1e-4
```

Unknown keys are errors, and so are YAML's aliases (`*name`) and tags (`!!name`): a file that somebody else wrote could
grow without end through them. To share settings, use `extends`. The resolved configuration of every run is kept in its
folder as `config.yaml`, and can be given to `--config` again.

## Presets

`muarl presets` lists them. A file of your own may say under `about` what it is (`command` and `text`); that is no
setting, and files that extend it do not take it over.

| preset | command | what it is |
|---|---|---|
{presets}
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD.format(presets="\n".join(f"| `{p.name}` | `muarl {p.command}` | {p.text} |" for p in all_presets()))]
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
    lines = [f"\n## {title}\n", f"{' '.join((section.__doc__ or '').split())}\n"]
    lines += ["| key | values | default | meaning |", "|---|---|---|---|"]
    for name, info in section.model_fields.items():
        if info.description is not None:
            cells = (f"`{prefix}{name}`", _values(info.annotation), f"`{_default(info)}`", info.description)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _values(annotation: Any) -> str:
    """What a field may hold, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if type(None) in arguments:
        inner = [_values(a) for a in arguments if a is not type(None)]
        return f"{' or '.join(inner)} or null"
    if annotation in (bool, int, float, str):
        return {bool: "true or false", int: "whole number", float: "number", str: "text"}[annotation]
    if annotation is Path:
        return "path"
    if str(origin) == "typing.Literal":
        return ", ".join(f"`{value}`" for value in arguments)
    if hasattr(annotation, "__metadata__"):
        return _values(arguments[0])
    if origin in (Union, UnionType):
        return " or ".join(map(_values, arguments))
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return "section"
    return "list" if origin is tuple else "mapping"


def _default(info: Any) -> str:
    value = info.default if info.default is not PydanticUndefined else None
    return json.dumps(str(value) if isinstance(value, Path) else value, default=list).strip('"')


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
