"""All recipes by kind, and how requests are put into words: wordings, styles, and what comes before and between."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence

from muarl.domains.kit.declaration import several
from muarl_worlds.bfcl import recipes_car, recipes_files, recipes_people, recipes_posts, recipes_stocks, recipes_trips
from muarl_worlds.bfcl.recipes import Recipe
from muarl_worlds.bfcl.scenes import Size

_MODULES = (recipes_files, recipes_people, recipes_posts, recipes_stocks, recipes_trips, recipes_car)
_DECLARED = {r.name: r for module in _MODULES for r in vars(module).values() if isinstance(r, Recipe)}
LOGINS: Mapping[str, Recipe] = {name: r for name, r in _DECLARED.items() if name.endswith(("_login", "_token"))}
"""What users want done before anything else; "travel_token" is only told."""
RECIPES: Mapping[str, Recipe] = {name: r for name, r in _DECLARED.items() if name not in LOGINS}
ALL: Mapping[str, Recipe] = {**RECIPES, **LOGINS}

PERSONAS = ("terse", "polite", "chatty")
STYLES: Mapping[str, Sequence[str]] = {
    "terse": ("{}.",),
    "polite": ("Please {}.", "Could you {}?", "I would like you to {}."),
    "chatty": ("Would you be so kind as to {}?", "I was hoping you could {}.", "Can you {}?"),
}
"""How each persona asks; the tiny user asks in one of TINY_MANNERS."""
TINY_STYLES = ("{}.", "Please {}.")
LEADS: Mapping[str, Sequence[str]] = {
    "terse": ("",),
    "polite": ("", "Hello. ", "Good morning. "),
    "chatty": ("Hi there, what a day! ", "Hello! I have been busy since six. ", "Hey, nice to meet you. "),
}
LATER: Mapping[str, Sequence[str]] = {
    "terse": ("",),
    "polite": ("", "Thank you. ", "That helps. "),
    "chatty": (
        "Wonderful, thanks a lot! ",
        "You are quick! Now for the next thing. ",
        "Great. While I have you here: ",
    ),
}
"""What comes before the first request, and before the later ones."""
JOINTS = ("Also, {}", "After that, {}", "Then {}")
TINY_JOINTS = JOINTS[:1]
BRINGS = (
    "I have updated some more functions you can choose from:",
    "Here is a function that you did not have yet:",
    "There is more that you can call now:",
)
NOW = "What about now?"
"""How a user brings a tool that was missing: a line, the tool's own document, and this question."""

_FOLDER_FIRST = re.compile(r"in \{folder\}, ")


def say(rng: random.Random, clause: str, size: Size, persona: str) -> str:
    """A clause as a sentence in a persona's style; its slots are still in braces."""
    style = rng.choice(TINY_STYLES if size.name == "tiny" else STYLES[persona])
    return _sentence(style, clause)


def _sentence(style: str, clause: str) -> str:
    folder = _FOLDER_FIRST.match(clause)
    if folder is None:
        text = style.format(clause.replace("{", "\0").replace("}", "\1")).replace("\0", "{").replace("\1", "}")
        return text[0].upper() + text[1:]
    inner = _sentence(style, clause[folder.end() :])
    lowered = inner if inner.startswith("I ") else inner[0].lower() + inner[1:]
    return "In {folder}, " + lowered


def join(rng: random.Random, sentences: Iterable[str], size: Size) -> str:
    """Several requests in one turn."""
    first, *others = sentences
    said = [first]
    for sentence in others:
        lowered = sentence if sentence.startswith(("I ", "{")) else sentence[0].lower() + sentence[1:]
        said.append(rng.choice(TINY_JOINTS if size.name == "tiny" else JOINTS).format("\0").replace("\0", lowered))
    return " ".join(said)


def tiny_texts() -> list[str]:
    """Every sentence that a tiny user may say, with braces where values stand."""
    texts: list[str] = []
    for recipe in (r for r in RECIPES.values() if r.tiny):
        clauses = list(recipe.clauses[:2])
        for name, lacking in recipe.missing.items():
            clauses += lacking[:2]
            texts += several(recipe.slot(name).say)[:2]
        sentences = [_sentence(style, clause) for clause in clauses for style in TINY_STYLES]
        texts += sentences
        texts += [" " + j.replace("{}", s[0].lower() + s[1:]) for s in sentences for j in TINY_JOINTS]
    return texts
