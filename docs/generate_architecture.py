"""Writes the list of packages in docs/architecture.md from their docstrings. Run it after adding or moving one:

python docs/generate_architecture.py
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

PAGE = Path(__file__).with_name("architecture.md")
SOURCE = Path(__file__).parents[1] / "src"
PACKAGES = ("muarl", "muarl_worlds", "muarl_tools", "muarl_integrations", "muarl_verifiers")
BEGIN, END = "<!-- packages: written by docs/generate_architecture.py -->", "<!-- /packages -->"


def about(package: Path) -> str:
    """What a package is for, in a few words: its docstring up to the first colon, semicolon or full stop that follows
    three words or more. ValueError if it has none."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text()))
    if not text:
        raise ValueError(f"{package}/__init__.py has no docstring")
    parts = re.split(r"(?<=[:;.]) ", " ".join(text.split("\n\n")[0].split()).replace("``", "`"))
    first = parts[0] if len(parts[0].split()) >= 3 else " ".join(parts[:2])
    return first.rstrip(".:;")


def packages() -> str:
    """All packages and the folders directly in them, as Markdown."""
    lines: list[str] = []
    for name in PACKAGES:
        inner = sorted(path.parent for path in (SOURCE / name).glob("*/__init__.py"))
        lines += [f"### `{name}`", "", f"{about(SOURCE / name)}.", ""]
        lines += [f"- `{path.name}/`: {about(path)}" for path in inner]
        lines += [""] * bool(inner)
    return "\n".join(lines)


def page() -> str:
    """The whole page, with the list as it is now."""
    text = PAGE.read_text()
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n\n{packages()}\n{END}", text)


if __name__ == "__main__":
    PAGE.write_text(page())
