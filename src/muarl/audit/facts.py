"""What is known of the world at each moment of a conversation: from the live database, or from what tools had shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from muarl.basics.untrusted import parse_json
from muarl.domains.auditing import AuditRules, Record, Resource
from muarl.domains.authoring import tell_unknowable
from muarl.domains.base import Domain, World
from muarl.domains.tasks import Task
from muarl.types.chat import Message, Requestor, ToolCall

ANOTHER = "another person"
DEEP = 6
"""How deep records may lie within a result."""


def parsed(text: str | None) -> Any:
    """A result as JSON where it is an object or a list, else its text."""
    stripped = (text or "").strip()
    if stripped[:1] in ("{", "["):
        try:
            return parse_json(stripped)
        except ValueError:
            return stripped
    return stripped


def persons_in(result: str | None, person: str) -> tuple[str, ...]:
    """The ids of the persons whom an auth tool's answer names: the bare text, or a JSON string, or an object (or
    several) with the field ``person`` (an object without it stands for itself), or a line of text that says
    "guest_id G-12345" or "customer C1234"."""
    answer = parsed(result)
    if isinstance(answer, str):
        text = answer.strip('"')
        if not re.search(r"\s", text):
            return (text,) if text else ()
        said = re.search(rf"\b(?:{re.escape(person)}|{re.escape(person.removesuffix('_id'))})\W{{1,3}}([\w-]+)", text)
        return (said.group(1),) if said else (text,)
    if isinstance(answer, Mapping):
        return (str(answer.get(person, (result or "").strip())),)
    return tuple(str(row[person]) for row in answer if isinstance(row, Mapping) and person in row)


class Facts:
    """The state of things, which continues with the conversation (``heard``, ``called``).

    ``world``: a fresh world of the task whose writes are run again, None where there is none or where it answered
    otherwise than in the conversation. Then only what tools have shown is known.
    """

    def __init__(self, rules: AuditRules, task: Task | None, domain: Domain | None) -> None:
        self._rules = rules
        self.world: World | None = None
        if rules.replays and domain is not None and task is not None:
            try:
                world = domain.world(task)
                # Tools that a model or a server plays are not called again.
                mine = type(world).answers is World.answers and type(world).aopen is World.aopen
                self.world = world if mine else None
            except Exception:  # a task that no world can be made of; what tools show is left
                self.world = None
        self._alone = frozenset(domain.tool_names("user")) if domain is not None else frozenset()
        self._seen: dict[tuple[str, str], Record] = {}
        self._holders: dict[tuple[str, str], str] = {}
        self._log: list[tuple[ToolCall, str]] = []
        self._answers: dict[str, str] = {}

    def heard(self, message: Message) -> None:
        """The user has said this to the agent."""
        if self.world is not None:
            self.world.hear(message)

    def called(self, call: ToolCall, result: Message, kind: str) -> None:
        """A call of either side was answered."""
        error = result.error or call.invalid is not None
        if not error:
            self._log.append((call, result.content or ""))
            self._answers[_question(call.name, call.arguments)] = result.content or ""
        if self.world is not None and kind == "write" and result.ran:
            failed = error and result.failed is None  # a write that timed out was carried out
            side: Requestor = "user" if call.name in self._alone else "assistant"
            try:
                same = self.world.call(side, call).error == failed
            except Exception:  # a world that breaks tells nothing any more
                same = False
            if not same:
                self.world = None

    def record(self, table: str, key: str) -> Record | None:
        """A record as it is now, as far as known."""
        if self.world is not None:
            for side in ("assistant", "user"):
                kit = self.world.toolkit(side)
                if kit is not None and table in kit.db and key in kit.db[table]:
                    row: Record = kit.db[table].peek(key)
                    return row
            return None
        if not self._can_tell(table):
            tell_unknowable(table)
        self._learn()
        return self._seen.get((table, key))

    def _can_tell(self, table: str) -> bool:
        """Whether the rules say anything from which a record of a table could ever be known."""
        rules = self._rules
        return rules.replays or rules.learns is not None or any(table == r.table for r in rules.resources)

    def shown(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """What such a call last answered, as JSON or text; None if it was not made."""
        text = self._answers.get(_question(tool, arguments))
        return None if text is None else parsed(text)

    def owner(self, resource: Resource, key: str, person: str | None = None) -> str | None:
        """Whose a record is, as far as known; ANOTHER if only that much is known that it is not ``person``'s."""
        record = self.record(resource.table, key)
        if record is not None and isinstance(record.get(resource.owner), str):
            return str(record[resource.owner])
        if resource.held is None:
            return None
        table, field = resource.held
        if self.world is None:
            self._learn()
            holder = self._holders.get((resource.table, key))
            served = None if holder is not None or person is None else self._seen.get((table, person))
            # Who has shown all that is theirs, and not this, does not own it.
            holdings = None if served is None else served.get(field)
            return ANOTHER if isinstance(holdings, (list, Mapping)) and key not in holdings else holder
        kit = self.world.toolkit("assistant")
        if kit is None or table not in kit.db:
            return None
        return next((person for person, row in kit.db[table].scan() if key in row.get(field, ())), None)

    def _learn(self) -> None:
        """Read the results that came since the last time."""
        log, self._log = self._log, []
        for call, text in log:
            answer = parsed(text)
            if call.name not in self._rules.open_tools:
                for row in _objects(answer, DEEP):
                    self._learn_record(call, row)
            if self._rules.learns is not None:
                try:
                    self._seen |= {(table, key): record for table, key, record in self._rules.learns(call, answer)}
                except (KeyError, TypeError, ValueError, IndexError, AttributeError):
                    pass  # a result of another shape than the author's tools have shows nothing

    def _learn_record(self, call: ToolCall, row: Record) -> None:
        asked = call.arguments.get(self._rules.person)
        person = row.get(self._rules.person, asked)
        for resource in self._rules.resources:
            key = row.get(resource.key)
            if isinstance(key, str) and (not resource.mark or resource.mark in row):
                self._seen[resource.table, key] = row
            if resource.held is not None and isinstance(person, str):
                table, field = resource.held
                held = row.get(field)
                if isinstance(held, list) and table != resource.table:
                    self._holders.update({(resource.table, one): person for one in held if isinstance(one, str)})


def _question(tool: str, arguments: Mapping[str, Any]) -> str:
    present = {k: v for k, v in arguments.items() if v is not None}
    return f"{tool} {json.dumps(present, sort_keys=True, default=str)}"


def _objects(value: Any, depth: int) -> Iterator[Record]:
    if depth and isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _objects(inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in value:
            yield from _objects(inner, depth - 1)
