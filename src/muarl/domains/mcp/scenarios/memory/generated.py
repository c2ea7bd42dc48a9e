"""The contacts as a generated domain."""

from __future__ import annotations

from functools import lru_cache

from muarl.domains.generated import Generated
from muarl.domains.mcp.scenario import SIZES
from muarl.domains.mcp.scenarios.memory import tasks
from muarl.domains.mcp.scenarios.memory.expert import TALK, MemoryExpert
from muarl.domains.mcp.scenarios.memory.state import MemoryDesk
from muarl.domains.mcp.words import pieces, talk_pieces


def _entities() -> list[str]:
    people = [*tasks.FIRST_NAMES[:30], *tasks.LAST_NAMES[:30]]
    digits = [f"{n:02d}" for n in range(100)]
    return pieces(people, tasks.COMPANIES, tasks.CITIES, tasks.FACTS, digits)


def _phrases() -> list[str]:
    more = (
        '{\n  "entities": [\n    {\n      "name": "',
        '",\n      "entityType": "person",\n      "observations": [\n        "',
        '",\n        "', '"\n      ]\n    }\n  ],\n  "relations": [', '\n    {\n      "from": "', '",\n      "to": "',
        '",\n      "relationType": "works_at"\n    }', '\n  ]\n}', ']\n}', '{\n  "entities": [],\n  "relations": []\n}',
        "phone 555-0", "555-0", "lives in ", '", "entityType": "person", "observations": ["', '", "observations": ["',
        '", "relationType": "works_at"}]', '[{"entityName": "', '", "contents": ["', '"]}]', '[{"name": "',
        '[{"from": "', '", "to": "',
    )  # fmt: skip
    return talk_pieces(TALK, *more)


GENERATED = Generated(
    name="mcp-memory",
    sizes=SIZES,
    domain=lru_cache(maxsize=4)(MemoryDesk),
    iter_tasks=tasks.MemoryTasks().iter_tasks,
    expert=MemoryExpert,
    entities=_entities,
    phrases=_phrases,
)
