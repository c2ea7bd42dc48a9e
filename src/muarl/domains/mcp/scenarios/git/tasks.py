"""Tasks in the repository: history, branches and changes from seeds, and what the members of a team may want.

Train, validation and test differ by files, branch names and the messages of new commits: each goes to one split.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.domains.base import Action
from muarl.domains.desk.people import FIRST_NAMES, LAST_NAMES
from muarl.domains.drawing import Infeasible, Request
from muarl.domains.mcp.scenario import Desk, of_split, several

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
CHANGE_OF_MIND, UNAVAILABLE, FORGOT = 0.4, 0.25, 0.2


class GitTasks(Desk):
    """Where the repository's tasks come from."""

    name = "mcp-git"
    folder = Path(__file__).parent

    def world(self, rng: random.Random, size: str, split: str, kind: str) -> dict[str, dict[str, Any]]:
        """A history of a few commits on a few branches; changes or staged files, or neither."""
        tiny = size == "tiny"
        paths = several(split, "file", lambda: _path(rng), 5)
        branches = ["main", *(["release"] if rng.random() < 0.5 else [])]
        branches += several(split, "branch", lambda: _branch(rng), 2 if tiny else rng.randint(2, 5))
        commits: dict[str, Any] = {}
        tips: dict[str, Any] = {}
        texts: dict[str, str] = {}
        for branch in branches:
            for _ in range(rng.randint(1, 2 if tiny else 4)):
                parent = tips.get(branch) or tips.get("main")
                changed = paths if not commits else rng.sample(paths, 1)
                files = {path: _text(rng, path, len(commits)) for path in changed}
                texts |= files if not commits else {}
                number = f"{len(commits) + 1:02d}"
                commits[number] = {
                    "parent": parent or "", "author": _person(rng), "message": _message(rng), "files": files,
                }  # fmt: skip
                tips[branch] = number
        head = rng.choice([b for b in branches if b not in PROTECTED] if kind == "commit" else branches)
        mode = {"commit": "changed", "switch": "clean", "unstage": "staged"}.get(kind)
        mode = mode or rng.choice(("changed", "changed", "staged", "clean"))
        count = {"changed": rng.randint(1, 3), "staged": 1 if kind == "unstage" else 2, "clean": 0}[mode]
        work = {
            path: {"text": _text(rng, path, 99), "staged": mode == "staged"}
            for path in rng.sample(paths, min(count, len(paths)))
        }
        return {
            "commits": commits,
            "branches": {name: {"commit": tips[name]} for name in branches},
            "head": {"HEAD": {"branch": head}},
            "work": work,
            "paths": {path: {} for path in paths},
        }

    def request(self, rng: random.Random, tables: Mapping[str, Any], kind: str, split: str, alone: bool) -> Request:
        """One request of a kind."""
        request: Request = getattr(self, f"_{kind}")(rng, tables, split)
        return request

    def _commit(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> Request:
        if _head(tables) in PROTECTED:
            raise Infeasible
        changed = _changed(tables, staged=False)
        wish = {"file": rng.choice(changed), "message": _new_message(rng, split)}
        same = [p for p in tables["paths"] if p not in changed]
        request = Request("commit", wish, final=wish)
        if same and rng.random() < UNAVAILABLE:
            request = Request(
                "commit", {**wish, "file": rng.choice(same)}, fallback=wish, final=wish, intent="commit_unchanged"
            )
        elif rng.random() < CHANGE_OF_MIND:
            others = [p for p in changed if p != wish["file"]]
            then = {**wish, "message": _new_message(rng, split)}
            if others and rng.random() < 0.5:
                then = {**wish, "file": rng.choice(others)}
            if then != wish:
                request = Request("commit", wish, then=then, final=then)
        names = [Path(path).name for path in tables["paths"]]
        if rng.random() < FORGOT and request.fallback is None and len(set(names)) == len(names):
            request.unknown = ["file"]
            for one in (request.wish, request.then):
                if one is not None:
                    one["named"] = Path(one["file"]).name
        return request

    def _branch(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> Request:
        names = [b for b in several(split, "branch", lambda: _branch(rng), 12) if b not in tables["branches"]]
        if len(names) < 2:
            raise Infeasible
        wish = {"branch": names[0], "base": rng.choice(list(tables["branches"]))}
        taken = [b for b in tables["branches"] if b not in PROTECTED and b != wish["base"]]
        if taken and rng.random() < UNAVAILABLE:
            first = {**wish, "branch": rng.choice(taken)}
            return Request("branch", first, fallback=wish, final=wish, intent="branch_taken")
        then = None
        if rng.random() < CHANGE_OF_MIND:
            bases = [b for b in tables["branches"] if b != wish["base"]]
            then = {**wish, "branch": names[1]} if rng.random() < 0.5 else {**wish, "base": rng.choice(bases)}
        return Request("branch", wish, then=then, final=then or wish)

    def _switch(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> Request:
        if tables["work"]:
            raise Infeasible
        others = [b for b in tables["branches"] if b != _head(tables)]
        mine = [b for b in others if b not in PROTECTED]
        if not mine:
            raise Infeasible
        wish = {"branch": rng.choice(mine)}
        gone = [b for b in several(split, "branch", lambda: _branch(rng), 6) if b not in tables["branches"]]
        if gone and rng.random() < UNAVAILABLE:
            return Request("switch", {"branch": gone[0]}, fallback=wish, final=wish, intent="switch_unknown")
        rest = [b for b in others if b != wish["branch"]]
        then = {"branch": rng.choice(rest)} if rest and rng.random() < CHANGE_OF_MIND else None
        return Request("switch", wish, then=then, final=then or wish)

    def _unstage(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> Request:
        staged = _changed(tables, staged=True)
        if len(staged) != 1:
            raise Infeasible
        wish = {"file": staged[0]}
        return Request("unstage", wish, final=wish)

    def _question(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> Request:
        settled = [b for b in tables["branches"] if b not in (*PROTECTED, _head(tables))]  # nothing is committed there
        if not settled:
            raise Infeasible
        branch = rng.choice(settled)
        wish = {"field": rng.choice(("author", "message")), "where": branch}
        return Request("question", wish, answer=tables["commits"][tables["branches"][branch]["commit"]][wish["field"]])

    def _forbidden(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> Request:
        variant = rng.choice(("commit", "branch", "switch", "unstage", "delete"))
        names = [b for b in tables["branches"] if b != _head(tables)]
        if variant == "commit":
            if _head(tables) not in PROTECTED:
                raise Infeasible
            wish = {"file": rng.choice(_changed(tables, staged=False)), "message": _new_message(rng, split)}
        elif variant == "branch":
            wrong = of_split(split, "branch", lambda: f"{rng.choice(WRONG_KINDS)}/{rng.choice(SUBJECTS)}")
            wish = {"branch": wrong, "base": rng.choice(names)}
        elif variant == "switch":
            if not tables["work"]:
                raise Infeasible
            wish = {"branch": rng.choice(names)}
        elif variant == "unstage":
            staged = _changed(tables, staged=True)
            if len(staged) < 2:
                raise Infeasible
            wish = {"file": rng.choice(staged)}
        else:
            wish = {"branch": rng.choice(names)}
        return Request(variant, wish, intent="forbidden")

    def gold(self, tables: Mapping[str, Any], requests: Sequence[Request]) -> list[Action]:
        """The calls of an expert, look-ups included."""
        actions: list[Action] = []
        for request in requests:
            if request.kind == "question":
                actions.append(Action("show", {"revision": request.wish["where"]}))
                continue
            look = "list_branches" if request.kind in ("branch", "delete") else "status"
            actions.append(Action(look, {}))
            if request.final is not None:
                actions += [Action(*call) for call in writes_of(request.kind, request.final)]
        return actions


def writes_of(kind: str, wish: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """The calls that fulfil a wish."""
    if kind == "commit":
        return [("add", {"files": [wish["file"]]}), ("commit", {"message": wish["message"]})]
    if kind == "branch":
        return [("create_branch", {"branch_name": wish["branch"], "base_branch": wish["base"]})]
    return [("switch_branch", {"branch_name": wish["branch"]}) if kind == "switch" else ("unstage_all", {})]


def _head(tables: Mapping[str, Any]) -> str:
    return str(tables["head"]["HEAD"]["branch"])


def _changed(tables: Mapping[str, Any], *, staged: bool) -> list[str]:
    """The changed files that are staged, or those that are not. Infeasible if there are none."""
    found = [path for path, record in tables["work"].items() if record["staged"] == staged]
    if not found:
        raise Infeasible
    return found


def _path(rng: random.Random) -> str:
    place, ending = rng.choice(PLACES)
    return f"{place}/{rng.choice(PARTS)}.{ending}"


def _branch(rng: random.Random) -> str:
    return f"{rng.choice(KINDS)}/{rng.choice(SUBJECTS)}"


def _message(rng: random.Random) -> str:
    return f"{rng.choice(DEEDS)} the {rng.choice(THINGS)}"


def _new_message(rng: random.Random, split: str) -> str:
    return of_split(split, "message", lambda: _message(rng))


def _person(rng: random.Random) -> str:
    return f"{rng.choice(FIRST_NAMES[:30])} {rng.choice(LAST_NAMES[:30])}"


def _text(rng: random.Random, path: str, version: int) -> str:
    name = Path(path).stem
    return f"{name} {version}\nlimit {rng.randint(1, 40)}\n"
