"""The lending library as a generated domain."""

from __future__ import annotations

from functools import lru_cache

from muarl.domains.generated import Generated
from muarl.domains.mcp.scenario import SIZES
from muarl.domains.mcp.scenarios.sqlite import tasks
from muarl.domains.mcp.scenarios.sqlite.expert import TALK, SqliteExpert
from muarl.domains.mcp.scenarios.sqlite.state import SqliteDesk
from muarl.domains.mcp.words import pieces, talk_pieces


def _entities() -> list[str]:
    titles = [f"The {a} {n}" for a in tasks.ADJECTIVES for n in tasks.NOUNS]
    people = [*tasks.FIRST_NAMES[:30], *tasks.LAST_NAMES[:30]]
    days = [f"2026-{month}-{day:02d}" for month in ("03", "04") for day in range(1, 29)]
    return pieces(titles, people, tasks.CITIES, tasks.SHELVES, days, [str(n) for n in range(1, 20)])


def _phrases() -> list[str]:
    more = (
        "SELECT id, title, author, shelf, copies FROM books WHERE title = '",
        "SELECT due FROM loans WHERE member_id = ",
        "SELECT id, name, city FROM members WHERE name = '", "SELECT count(*) AS out FROM loans WHERE book_id = ",
        "SELECT id, title FROM books WHERE author = '", "SELECT id, due FROM loans WHERE book_id = ",
        " AND member_id = ", "INSERT INTO loans (book_id, member_id, due) VALUES (", "DELETE FROM loans WHERE id = ",
        "UPDATE loans SET due = '", "UPDATE books SET shelf = '", "' WHERE id = ", "DELETE FROM members WHERE id = ",
        "INSERT INTO members (name, city) VALUES ('", "', '", ", '", "')", "[{'id': ", ", 'title': '", "', 'author': '",
        "', 'shelf': '", "', 'copies': ", ", 'name': '", "', 'city': '", ", 'due': '", "[{'due': '", "[{'out': ", "'}]",
        "}]", "[{'affected_rows': ",
    )  # fmt: skip
    return talk_pieces(TALK, *more)


GENERATED = Generated(
    name="mcp-sqlite",
    sizes=SIZES,
    domain=lru_cache(maxsize=4)(SqliteDesk),
    iter_tasks=tasks.SqliteTasks().iter_tasks,
    expert=SqliteExpert,
    entities=_entities,
    phrases=_phrases,
)
