"""What tasks in the shared folder begin with: folders and files from chance. Their names differ by split."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from muarl.domains.kit.people import FIRST_NAMES, LAST_NAMES, Maker, shift

TODAY = "2026-03-16"
FOLDERS = ("drafts", "reports", "plans", "minutes", "letters", "offers")
ARCHIVE = "archive"
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
DAYS = tuple(shift(TODAY, days) for days in range(16, 46))
"""The dates that requests name."""
FRESH = 5
"""How many names of files, and of people, there are for requests that want a new one."""


def lines_of(lines: Iterable[str]) -> dict[str, str]:
    """The named lines of a file."""
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """Three to six folders besides the archive, with a few files each; names and people that nothing is called yet."""
    rng = make.rng
    folders = [*rng.sample(FOLDERS, 3 if make.tiny else rng.randint(3, 6)), ARCHIVE]
    sizes = [2 if make.tiny else rng.randint(2, 5) for _ in folders]
    places = [folder for folder, count in zip(folders, sizes, strict=True) for _ in range(count)]
    rng.shuffle(places)
    names = make.some("file", lambda: f"{rng.choice(TOPICS)}-{rng.choice(MONTHS)}.txt", len(places) + FRESH)
    paths = [f"{place}/{name}" for place, name in zip(places, names[FRESH:], strict=False)]
    twin = rng.choice(paths).partition("/")  # one name stands in two folders, so that one file is in the other's way
    paths.append(f"{rng.choice([folder for folder in folders if folder != twin[0]])}/{twin[2]}")
    files = [_file(make, path) for path in paths]
    return {
        "folders": {folder: {"name": folder} for folder in folders},
        "files": {file["path"]: file for file in files},
        "fresh_names": {name: {"name": name} for name in names[:FRESH]},
        "people": {name: {"name": name} for name in (_person(make) for _ in range(FRESH))},
    }


def _file(make: Maker, path: str) -> dict[str, str]:
    owner, status = _person(make), make.rng.choice(STATES)
    due = make.rng.choice(DAYS) if make.tiny else shift(TODAY, make.rng.randint(16, 280))
    notes = () if make.tiny else make.rng.sample(NOTES, make.rng.randint(0, 3))
    title = PurePosixPath(path).stem.replace("-", " ").title()
    lines = [f"title: {title}", f"owner: {owner}", f"status: {status}", f"due: {due}", *notes, ""]
    return record(path, "\n".join(lines))


def record(path: str, text: str) -> dict[str, str]:
    """A file as its table holds it."""
    folder, name = path.split("/")
    lines = {"owner": "", "status": "", "due": ""} | lines_of(text.splitlines())
    told = {line: lines[line] for line in ("owner", "status", "due")}
    return {"path": path, "name": name, "folder": folder, **told, "text": text}


def _person(make: Maker) -> str:
    return f"{make.rng.choice(FIRST_NAMES[:30])} {make.rng.choice(LAST_NAMES[:30])}"


def files_in(tables: Any, folder: str) -> list[str]:
    """The names of the files in a folder."""
    return [path.partition("/")[2] for path in tables["files"] if path.startswith(f"{folder}/")]
