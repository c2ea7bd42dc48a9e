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
    """The first paragraph of a package's docstring, on one line. ValueError if it has none."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text()))
    if not text:
        raise ValueError(f"{package}/__init__.py has no docstring")
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")


def packages() -> str:
    """All packages, as Markdown."""
    lines: list[str] = []
    for name in PACKAGES:
        inner = sorted(p.parent for p in (SOURCE / name).rglob("__init__.py") if p.parent != SOURCE / name)
        lines += [f"### `{name}`", "", about(SOURCE / name), ""]
        if inner:
            lines += ["| folder | content |", "|---|---|"]
            lines += [f"| `{p.relative_to(SOURCE / name).as_posix()}/` | {about(p)} |" for p in inner]
            lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The whole page, with the list as it is now."""
    text = PAGE.read_text()
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n\n{packages()}\n{END}", text)


if __name__ == "__main__":
    PAGE.write_text(page())
