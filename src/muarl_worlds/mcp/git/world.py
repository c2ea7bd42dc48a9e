"""What tasks in the repository begin with: history, branches and changes from chance.

Files, branches and the messages of new commits differ by split.
"""

from __future__ import annotations

import random
from pathlib import PurePosixPath
from typing import Any

from muarl.domains.kit.people import FIRST_NAMES, LAST_NAMES, Maker

PARTS = (
    "login", "search", "basket", "prices", "orders", "report", "mailer", "cache", "upload", "export", "profile",
    "charts", "filters", "tokens", "menus", "forms", "queue", "images", "labels", "backup", "colours", "errors",
    "events", "fonts", "groups", "hints", "icons", "keys", "limits", "maps", "news", "pages", "roles", "rules",
    "tables", "themes", "users",
)  # fmt: skip
PLACES = (("src", "py"), ("tests", "py"), ("docs", "md"), ("tools", "py"))
DEEDS = ("Fix", "Add", "Update", "Remove", "Improve", "Rename", "Document", "Simplify", "Test", "Speed up")
THINGS = (
    "login page", "search box", "price list", "order form", "weekly report", "mail footer", "cache limit",
    "upload button", "export format", "profile picture", "chart colours", "filter bar", "token check", "main menu",
    "error texts", "queue order", "image size", "label printer", "backup plan", "start screen",
)  # fmt: skip
KINDS = ("feature", "fix", "docs")
WRONG_KINDS = ("my", "tmp")
SUBJECTS = tuple(f"{a}-{b}" for a in PARTS[:20] for b in ("page", "rules", "speed", "texts", "colours"))
PROTECTED = ("main", "release")
MODES = ("changed", "changed", "staged", "clean")
"""What the working tree may be like."""
FRESH = 3
"""How many names of branches, and messages, there are for requests that want a new one."""


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """A history of a few commits on a few branches; changes or staged files, or neither; names that are not taken."""
    rng, tiny = make.rng, make.tiny
    paths = make.some("file", lambda: _path(rng), 5)
    named = make.some(
        "branch", lambda: f"{rng.choice(KINDS)}/{rng.choice(SUBJECTS)}", FRESH + rng.randint(2, 5 - 2 * tiny)
    )
    branches = ["main", *(["release"] if rng.random() < 0.5 else []), *named[FRESH:]]
    commits, tips = _history(rng, branches, paths, 2 if tiny else 4)
    mode = rng.choice(MODES)
    count = {"changed": rng.randint(1, 3), "staged": rng.randint(1, 2), "clean": 0}[mode]
    wrong = make.some("branch", lambda: f"{rng.choice(WRONG_KINDS)}/{rng.choice(SUBJECTS)}", 2)
    return {
        "commits": commits,
        "branches": {name: {"name": name, "commit": tips[name]} for name in branches},
        "head": {"HEAD": {"branch": rng.choice([*branches, *named[FRESH:]])}},
        "work": {path: {"text": _text(rng, path, 99), "staged": mode == "staged"} for path in rng.sample(paths, count)},
        "paths": {path: {"path": path, "name": PurePosixPath(path).name} for path in paths},
        "fresh_branches": {name: {"name": name} for name in named[:FRESH]},
        "wrong_branches": {name: {"name": name} for name in wrong},
        "messages": {text: {"text": text} for text in make.some("message", lambda: message(rng), FRESH)},
    }


def _history(
    rng: random.Random, branches: list[str], paths: list[str], most: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """Commits by number, and the last one of each branch."""
    commits: dict[str, Any] = {}
    tips: dict[str, str] = {}
    for branch in branches:
        for _ in range(rng.randint(1, most)):
            parent = tips.get(branch) or tips.get("main") or ""
            changed = rng.sample(paths, 1) if commits else paths
            files = {path: _text(rng, path, len(commits)) for path in changed}
            number = f"{len(commits) + 1:02d}"
            commits[number] = {"parent": parent, "author": _person(rng), "message": message(rng), "files": files}
            tips[branch] = number
    return commits, tips


def _path(rng: random.Random) -> str:
    place, ending = rng.choice(PLACES)
    return f"{place}/{rng.choice(PARTS)}.{ending}"


def message(rng: random.Random) -> str:
    """The message of a commit."""
    return f"{rng.choice(DEEDS)} the {rng.choice(THINGS)}"


def _person(rng: random.Random) -> str:
    return f"{rng.choice(FIRST_NAMES[:30])} {rng.choice(LAST_NAMES[:30])}"


def _text(rng: random.Random, path: str, version: int) -> str:
    return f"{PurePosixPath(path).stem} {version}\nlimit {rng.randint(1, 40)}\n"
