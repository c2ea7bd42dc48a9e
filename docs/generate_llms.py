"""Writes llms.txt (llmstxt.org) from the titles and first sentences of pages and skills. Run it after changing one:

python docs/generate_llms.py
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "llms.txt"
LONGEST = 320
"""Characters of a line's text; a longer sentence is cut at a word."""

SECTIONS = {
    "Start here": ("README.md", "docs/index.md", "docs/installation.md", "docs/tutorial.md", "docs/glossary.md"),
    "Environments, users and tasks": (
        "docs/domains.md", "docs/kit.md", "docs/knowledge-own.md", "docs/knowledge.md", "docs/users.md",
        "docs/practice.md", "docs/faults.md", "docs/redteam.md", "docs/tasks-check.md", "docs/user-check.md",
        "docs/logs.md", "docs/data.md",
    ),
    "Train": (
        "docs/training.md", "docs/coldstart.md", "docs/credit.md", "docs/models.md", "docs/known-model.md",
        "docs/scaling.md", "docs/configuration.md",
    ),
    "Judge and look": (
        "docs/evaluation.md", "docs/compare.md", "docs/score.md", "docs/audit.md", "docs/view.md", "docs/files.md",
        "docs/formats.md",
    ),
    "Serve and integrate": ("docs/serving.md", "docs/integrations.md", "docs/api.md"),
    "Change muarl": ("AGENTS.md", "CONTRIBUTING.md", "docs/architecture.md", "SECURITY.md"),
}  # fmt: skip
"""The pages of each section. All others of docs/ are listed as optional, so that no page is left out."""

NOT_LISTED = ("CHANGELOG.md",)


def pages() -> list[str]:
    """All pages, by their paths in the repository."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found if path.name not in NOT_LISTED)


def title_and_sentence(text: str) -> tuple[str, str]:
    """A page's first heading, and the first sentence below it, without markup. ValueError if there is either not."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    title = next((plain(tokens[n + 1]) for n, token in enumerate(tokens) if token.type == "heading_open"), None)
    # What stands in lists is of a deeper level than the paragraphs of the page itself.
    first = next((n for n, token in enumerate(tokens) if token.type == "paragraph_open" and token.level == 0), None)
    if title is None or first is None:
        raise ValueError("a page needs a heading and a paragraph below it")
    sentence = first_sentence(plain(tokens[first + 1]))
    before = tokens[first - 1]
    if before.type == "code_block" and sentence[:1].islower():  # a sentence whose subject is the command above it
        sentence = f"`{' '.join(before.content.split()[:2])}` {sentence}"
    return title, sentence


def plain(inline: Token) -> str:
    """What a reader sees of a piece of text."""
    parts = (" " if child.type in ("softbreak", "hardbreak") else child.content for child in inline.children or ())
    return " ".join("".join(parts).split())


def first_sentence(paragraph: str) -> str:
    """The first sentence of a paragraph, cut at a word where it is long."""
    sentence = re.split(r"(?<=[.!?:]) (?=[A-Z`])", paragraph, maxsplit=1)[0].rstrip(":")
    if len(sentence) > LONGEST:
        sentence = sentence[:LONGEST].rpartition(" ")[0].rstrip(",;:") + " ..."
    return sentence


def link(path: str) -> str:
    """The line of a page."""
    if not (ROOT / path).is_file():
        raise ValueError(
            f"docs/generate_llms.py, SECTIONS: there is no page {path}; take it out, or name it as it is now"
        )
    try:
        title, sentence = title_and_sentence((ROOT / path).read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    return f"- [{title}]({path}): {sentence}"


def skill(path: Path) -> str:
    """The line of a skill."""
    front = yaml.safe_load(path.read_text(encoding="utf-8").split("---\n")[1])
    return f"- [{front['name']}]({path.relative_to(ROOT).as_posix()}): {front['description']}"


def page() -> str:
    """The whole file."""
    title, summary = title_and_sentence((ROOT / "README.md").read_text(encoding="utf-8"))
    listed = {path for paths in SECTIONS.values() for path in paths}
    parts = [f"# {title}\n\n> {summary}\n"]
    parts.append(
        "Paths are relative to the repository. Everything runs on two CPU cores without a GPU, account or key; "
        "`muarl COMMAND --help` has examples, and the skills are instructions that were run as they stand.\n"
    )
    parts.append("## Skills\n\n" + "\n".join(map(skill, sorted(ROOT.glob("skills/*/SKILL.md")))) + "\n")
    for name, paths in SECTIONS.items():
        parts.append(f"## {name}\n\n" + "\n".join(map(link, paths)) + "\n")
    parts.append("## Optional\n\n" + "\n".join(link(path) for path in pages() if path not in listed) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
