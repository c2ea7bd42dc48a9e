"""Tasks in the shared folder: folders and files from seeds, and what the members of a team may want of them.

Train, validation and test differ by the names of the files that requests are about: each goes to one split.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.domains.base import Action
from muarl.domains.desk.people import FIRST_NAMES, LAST_NAMES
from muarl.domains.drawing import Infeasible, Request
from muarl.domains.mcp.scenario import Desk, of_split

FOLDERS = ("drafts", "reports", "plans", "minutes", "letters", "offers")
NEW_FOLDERS = ("budgets", "contracts", "guides", "invoices", "lists", "notes", "orders", "surveys")
TOPICS = (
    "budget", "travel", "hiring", "sales", "garden", "kitchen", "safety", "training", "website", "parking", "energy",
    "catering", "workshop", "survey", "cleaning", "printing", "security", "library", "retreat", "archive", "heating",
    "packing", "music", "tickets",
)  # fmt: skip
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
STATES = ("draft", "review", "final")
TEXTS = (
    "Please bring your own cup", "The meeting moves to room four", "All prices are still open", "Nobody is on duty",
    "Two quotes have arrived", "The keys are at the desk", "The plan needs one more week", "Lunch is paid for",
    "The new chairs are here", "We start at nine", "The contract ends soon", "Everybody has signed",
)  # fmt: skip
NOTES = (
    "note: talk to the printer", "note: two offers are missing", "note: ask for a discount", "note: keep it short",
    "note: copy to the board", "note: see last year",
)  # fmt: skip
CHANGE_OF_MIND, TAKEN, FORGOT = 0.35, 0.3, 0.2
"""How often a caller changes the wish on hearing the proposal, wants a name that is taken, forgot the folder."""


def title_of(path: str) -> str:
    """The title that a file's name says."""
    return Path(path).stem.replace("-", " ").title()


def text_of(owner: str, state: str, due: str, path: str, notes: Sequence[str] = ()) -> str:
    """The whole text of a file."""
    return "\n".join([f"title: {title_of(path)}", f"owner: {owner}", f"status: {state}", f"due: {due}", *notes, ""])


def lines_of(text: str) -> dict[str, str]:
    """The named lines of a file's text."""
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


class FilesystemTasks(Desk):
    """Where the shared folder's tasks come from."""

    name = "mcp-filesystem"
    folder = Path(__file__).parent

    def world(self, rng: random.Random, size: str, split: str, kind: str) -> dict[str, dict[str, Any]]:
        """Three to six folders besides the archive, with a few files each."""
        tiny = size == "tiny"
        folders = [*rng.sample(FOLDERS, 3 if tiny else rng.randint(3, 6)), "archive"]
        files: dict[str, Any] = {}
        for folder in folders:
            for _ in range(2 if tiny else rng.randint(2, 5)):
                path = f"{folder}/{_name(rng, split)}"
                if any(Path(path).name == Path(f).name for f in files):
                    continue
                notes = () if tiny else rng.sample(NOTES, rng.randint(0, 3))
                files[path] = {"text": text_of(_person(rng), rng.choice(STATES), _day(rng), path, notes)}
        return {"folders": {f: {} for f in folders}, "files": files}

    def request(self, rng: random.Random, tables: Mapping[str, Any], kind: str, split: str, alone: bool) -> Request:
        """One request of a kind."""
        if kind == "forbidden":
            return self._forbidden(rng, tables, split)
        if kind == "create":
            return self._create(rng, tables, split)
        if kind == "folder":
            free = [f for f in NEW_FOLDERS if f not in tables["folders"]]
            first, second = rng.sample(free, 2)
            wish = {"folder": first}
            then = {"folder": second} if rng.random() < CHANGE_OF_MIND else None
            return Request("folder", wish, then=then, final=then or wish)
        open_files = [p for p in tables["files"] if _may_change(p, tables)]
        files = list(tables["files"]) if kind == "question" else open_files
        if not files:
            raise Infeasible
        path = rng.choice(files)
        request = getattr(self, f"_{kind}")(rng, tables, path, split)
        if rng.random() < FORGOT:
            request.unknown = ["file"]
            for wish in (request.wish, request.then, request.fallback):
                if wish is not None and "drop" not in wish:
                    wish["named"] = Path(path).name
        return request

    def _question(self, rng: random.Random, tables: Mapping[str, Any], path: str, split: str) -> Request:
        field = rng.choice(("owner", "status", "due date"))
        answer = lines_of(tables["files"][path]["text"])["due" if field == "due date" else field]
        return Request("question", {"field": field, "file": path}, answer=answer)

    def _line(self, rng: random.Random, kind: str, slot: str, path: str, values: Sequence[str]) -> Request:
        if len(values) < 2:
            raise Infeasible
        wanted, other = rng.sample(values, 2)
        wish = {"file": path, slot: wanted}
        then = {"file": path, slot: other} if rng.random() < CHANGE_OF_MIND else None
        return Request(kind, wish, then=then, final=then or wish)

    def _status(self, rng: random.Random, tables: Mapping[str, Any], path: str, split: str) -> Request:
        now = lines_of(tables["files"][path]["text"])["status"]
        return self._line(rng, "status", "state", path, [s for s in STATES if s != now])

    def _due(self, rng: random.Random, tables: Mapping[str, Any], path: str, split: str) -> Request:
        now = lines_of(tables["files"][path]["text"])["due"]
        return self._line(rng, "due", "day", path, [d for d in {_day(rng): 0, _day(rng): 0, _day(rng): 0} if d != now])

    def _owner(self, rng: random.Random, tables: Mapping[str, Any], path: str, split: str) -> Request:
        now = lines_of(tables["files"][path]["text"])["owner"]
        people = dict.fromkeys((_person(rng), _person(rng), _person(rng)))
        return self._line(rng, "owner", "person", path, [p for p in people if p != now])

    def _move(self, rng: random.Random, tables: Mapping[str, Any], path: str, split: str) -> Request:
        here = path.split("/")[0]
        free = [f for f in tables["folders"] if f != here]
        wish = {"file": path, "folder": rng.choice(free)}
        others = [f for f in free if f != wish["folder"]]
        then = {"file": path, "folder": rng.choice(others)} if rng.random() < CHANGE_OF_MIND else None
        return Request("move", wish, then=then, final=then or wish)

    def _rename(self, rng: random.Random, tables: Mapping[str, Any], path: str, split: str) -> Request:
        here = path.split("/")[0]
        names = {Path(p).name for p in tables["files"] if p.startswith(f"{here}/")}
        new = [n for n in (_name(rng, split) for _ in range(6)) if n not in names]
        if len(set(new)) < 2:
            raise Infeasible
        first, second = list(dict.fromkeys(new))[:2]
        wish = {"file": path, "new_name": first}
        taken = sorted(names - {Path(path).name})
        if taken and rng.random() < TAKEN:
            fallback = {**wish}
            return Request(
                "rename", {**wish, "new_name": rng.choice(taken)}, fallback=fallback, final=fallback,
                intent="rename_taken",
            )  # fmt: skip
        then = {**wish, "new_name": second} if rng.random() < CHANGE_OF_MIND else None
        return Request("rename", wish, then=then, final=then or wish)

    def _create(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> Request:
        folder = rng.choice([f for f in tables["folders"] if f != "archive"])
        fresh = [p for p in (f"{folder}/{_name(rng, split)}" for _ in range(8)) if p not in tables["files"]]
        if not fresh:
            raise Infeasible
        text, other = rng.sample(TEXTS, 2)
        wish = {"file": fresh[0], "text": text}
        taken = [p for p in tables["files"] if p.startswith(f"{folder}/")]
        if taken and rng.random() < TAKEN:
            drop = rng.random() < 0.2
            fallback = {"drop": True} if drop else wish
            return Request(
                "create", {**wish, "file": rng.choice(taken)}, fallback=fallback, final=None if drop else wish,
                intent="create_taken",
            )  # fmt: skip
        then = {**wish, "text": other} if rng.random() < CHANGE_OF_MIND else None
        return Request("create", wish, then=then, final=then or wish)

    def _forbidden(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> Request:
        variant = rng.choice(("status", "move", "rename", "due", "delete"))
        files = [p for p in tables["files"] if variant == "delete" or not _may_change(p, tables)]
        if not files:
            raise Infeasible
        path = rng.choice(files)
        wish = {"file": path}
        if variant == "status":
            now = lines_of(tables["files"][path]["text"])["status"]
            wish["state"] = rng.choice([s for s in STATES if s != now])
        elif variant == "move":
            wish["folder"] = rng.choice([f for f in tables["folders"] if f not in (path.split("/")[0], "archive")])
        elif variant == "rename":
            wish["new_name"] = _name(rng, split)
        elif variant == "due":
            wish["day"] = _day(rng)
        return Request(variant, wish, intent="forbidden")

    def gold(self, tables: Mapping[str, Any], requests: Sequence[Request]) -> list[Action]:
        """The calls of an expert, look-ups included."""
        actions: list[Action] = []
        for request in requests:
            wish = request.final or request.wish
            path = wish.get("file", "")
            if "file" in request.unknown:
                search = {"path": ".", "pattern": f"**/{Path(path).name}"}
                actions.append(Action("search_files", search))
            if request.kind not in ("create", "folder", "delete"):
                actions.append(Action("read_file", {"path": path}))
            if request.final is not None:
                if request.kind in ("move", "rename", "create"):
                    actions.append(Action("list_directory", {"path": target_of(request.kind, wish).split("/")[0]}))
                old = lines_of(tables["files"][path]["text"]) if path in tables["files"] else {}
                actions.append(Action(*write_of(request.kind, wish, old)))
        return actions


def target_of(kind: str, wish: Mapping[str, str]) -> str:
    """The path that a file will have."""
    folder, _, name = wish["file"].partition("/")
    return f"{wish.get('folder', folder)}/{wish.get('new_name', name)}" if kind != "create" else wish["file"]


def write_of(kind: str, wish: Mapping[str, str], old: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The call that fulfils a wish. ``old``: the file's lines as they are."""
    if kind == "folder":
        return "create_directory", {"path": wish["folder"]}
    if kind == "create":
        return "write_file", {"path": wish["file"], "content": wish["text"]}
    if kind in ("move", "rename"):
        return "move_file", {"source": wish["file"], "destination": target_of(kind, wish)}
    line, slot = {"status": ("status", "state"), "due": ("due", "day"), "owner": ("owner", "person")}[kind]
    edit = {"oldText": f"{line}: {old[line]}", "newText": f"{line}: {wish[slot]}"}
    return "edit_file", {"path": wish["file"], "edits": [edit]}


def _may_change(path: str, tables: Mapping[str, Any]) -> bool:
    return not path.startswith("archive/") and lines_of(tables["files"][path]["text"])["status"] != "final"


def _name(rng: random.Random, split: str) -> str:
    return of_split(split, "file", lambda: f"{rng.choice(TOPICS)}-{rng.choice(MONTHS)}.txt")


def _person(rng: random.Random) -> str:
    return f"{rng.choice(FIRST_NAMES[:30])} {rng.choice(LAST_NAMES[:30])}"


def _day(rng: random.Random) -> str:
    return f"2026-{rng.randint(4, 12):02d}-{rng.randint(1, 28):02d}"
