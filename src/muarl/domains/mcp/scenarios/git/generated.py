"""The repository as a generated domain."""

from __future__ import annotations

from functools import lru_cache

from muarl.domains.generated import Generated
from muarl.domains.mcp.scenario import SIZES
from muarl.domains.mcp.scenarios.git import tasks
from muarl.domains.mcp.scenarios.git.expert import TALK, GitExpert
from muarl.domains.mcp.scenarios.git.state import GitDesk
from muarl.domains.mcp.words import pieces, talk_pieces


def _entities() -> list[str]:
    branches = [f"{k}/" for k in (*tasks.KINDS, *tasks.WRONG_KINDS)]
    files = [f"{part}.{end}" for part in tasks.PARTS for end in ("py", "md")]
    people = [*tasks.FIRST_NAMES[:30], *tasks.LAST_NAMES[:30]]
    places = [f"{place}/" for place, _ in tasks.PLACES]
    return pieces(branches, tasks.SUBJECTS, files, places, tasks.DEEDS, tasks.THINGS, tasks.PROTECTED, people)


def _phrases() -> list[str]:
    more = (
        "Repository status:\nOn branch ", "\nnothing to commit, working tree clean", "\n\tmodified:   ",
        "Changes not staged for commit:", "Changes to be committed:", "no changes added to commit", "\nAuthor: ",
        '  (use "git add <file>..." to update what will be committed)',
        '  (use "git restore --staged <file>..." to unstage)',
        '  (use "git restore <file>..." to discard changes in working directory)',
    )  # fmt: skip
    return talk_pieces(TALK, *more)


GENERATED = Generated(
    name="mcp-git",
    sizes=SIZES,
    domain=lru_cache(maxsize=4)(GitDesk),
    iter_tasks=tasks.GitTasks().iter_tasks,
    expert=GitExpert,
    entities=_entities,
    phrases=_phrases,
)
