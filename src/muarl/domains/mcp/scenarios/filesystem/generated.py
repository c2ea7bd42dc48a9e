"""The shared folder as a generated domain."""

from __future__ import annotations

from functools import lru_cache

from muarl.domains.generated import Generated
from muarl.domains.mcp.domain import ALIAS
from muarl.domains.mcp.scenario import SIZES
from muarl.domains.mcp.scenarios.filesystem import tasks
from muarl.domains.mcp.scenarios.filesystem.expert import TALK, FilesystemExpert
from muarl.domains.mcp.scenarios.filesystem.state import FilesystemDesk
from muarl.domains.mcp.words import pieces, talk_pieces


def _entities() -> list[str]:
    names = [f"{t}-{m}.txt" for t in tasks.TOPICS for m in tasks.MONTHS]
    folders = [*tasks.FOLDERS, "archive", *tasks.NEW_FOLDERS]
    people = [*tasks.FIRST_NAMES[:30], *tasks.LAST_NAMES[:30]]
    days = [f"-{n:02d}" for n in range(1, 29)]
    return pieces(names, [f"{f}/" for f in folders], folders, people, tasks.STATES, tasks.TEXTS, days, ["2026"])


def _phrases() -> list[str]:
    return talk_pieces(TALK, "title: ", "\nowner: ", "\nstatus: ", "\ndue: ", "[FILE] ", "[DIR] ", f"{ALIAS}/")


GENERATED = Generated(
    name="mcp-filesystem",
    sizes=SIZES,
    domain=lru_cache(maxsize=4)(FilesystemDesk),
    iter_tasks=tasks.FilesystemTasks().iter_tasks,
    expert=FilesystemExpert,
    entities=_entities,
    phrases=_phrases,
)
