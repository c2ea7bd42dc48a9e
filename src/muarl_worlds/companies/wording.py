"""How documents say rules and procedures, and how they are read back from a text.

Each sentence is a template, from which its regular expression follows, so that what is written can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import get_args

from muarl_worlds.companies.rules import DocumentedRule, Mode, Procedure, Role, Source
from muarl_worlds.companies.trades import Trade, Unit

HEADERS: Mapping[Source, str] = {
    "terms": "Terms in force since {since}.",
    "bulletin": "Bulletin from {since} until {until}. It holds over the terms.",
    "leaflet": "Leaflet of {since}. The terms hold over it.",
}
"""The first line of a document with rules, by its kind: since when it holds, and what it holds over."""
REPLACES = "These terms replace the terms of {since}."
PROCEDURE_HEADER = "Procedure in force since {since}."
RULES = (
    "The {topic} of {product} is {value}.",
    "{product} has a {topic} of {value}.",
    "For {product} we have set the {topic} at {value}.",
)
EXCEPTIONS = (
    "For {group} the {topic} of {product} is {value}.",
    "{product} has, for {group} only, a {topic} of {value}.",
    "For {group} who hold {product} we have set the {topic} at {value}.",
)
TABLE = "Table of the {topic}, product by product:"
ROW = "| {product} | {value} |"
STEPS: Mapping[Mode, str] = {
    "call": "Unlock the tool {tool} and call it with {arguments}.",
    "give": "The customer does it: give them the tool {tool} with {arguments}.",
    "transfer": "Only a person may do it: transfer the customer.",
}
ROLES: Mapping[Role, str] = {
    "contract": "{}: the id of the {contract}",
    "fee": "{}: the {topic} in dollars",
    "amount": "{}: the new amount in dollars",
    "target": "{}: the name of the new product",
    "code": "{}: {code}",
}
UNITS: Mapping[Unit, str] = {"dollars": "${}", "days": "{} days", "percent": "{}%", "product": "{}"}


def value_in_words(value: int | str, unit: Unit) -> str:
    """A value as documents write it, such as "$35"."""
    return UNITS[unit].format(value)


def step(procedure: Procedure, contract: str, topic: str) -> str:
    """The sentence of a procedure that says what is to be done. ``topic``: of the fee that it may need."""
    parts = [
        f"{ROLES[role].format(name, contract=contract, topic=topic, code=procedure.code)}"
        for role, name in procedure.arguments
    ]
    return STEPS[procedure.mode].format(tool=procedure.tool, arguments=", ".join(parts))


def rule_query(product: str, topic: str) -> str:
    """What to search for to find all rules about a topic of a product but those in tables."""
    return f"{product} {topic}"


def table_title(topic: str, family: str) -> str:
    """The title of a table of a topic for a family of products, as its documents call it; also what to search for."""
    return f"Table {topic} {family}"


def procedure_title(title: str, family: str) -> str:
    """The title of the document with a procedure, which is also what to search for. ``title``: the operation's."""
    return f"Procedure for {title.format(family=family)}"


class Reader:
    """Reads what the documents of a trade's companies say."""

    def __init__(self, trade: Trade) -> None:
        places = {
            "topic": "|".join(sorted((re.escape(t.name) for t in trade.topics), key=len, reverse=True)),
            "product": trade.product_pattern,
            "value": rf"\$?\d+(?: days|%)?|{trade.product_pattern}",
            "group": "|".join(map(re.escape, trade.groups)),
            "since": r"\d{4}-\d\d-\d\d",
            "until": r"\d{4}-\d\d-\d\d",
            "tool": r"\w+",
            "arguments": r"[^\n]+?",
        }
        self._trade = trade
        self._headers = {source: _expression(text, places) for source, text in HEADERS.items()}
        self._procedure = _expression(PROCEDURE_HEADER, places)
        self._sentences = [_expression(text, places) for text in (*EXCEPTIONS, *RULES)]
        self._table = _expression(TABLE, places)
        self._row = _expression(ROW, places)
        self._steps = {mode: _expression(text, places) for mode, text in STEPS.items()}
        self._titles = {
            procedure_title(operation.title, family): (operation.name, family)
            for operation in trade.operations
            for family in trade.families
        }

    @lru_cache(maxsize=4096)  # noqa: B019 - there is one reader a trade
    def rules(self, id_: str, title: str, content: str) -> tuple[DocumentedRule, ...]:
        """The rules that a document says."""
        return tuple(self._rules(id_, content))

    def _rules(self, id_: str, content: str) -> Iterator[DocumentedRule]:
        for source, header in self._headers.items():
            if (found := header.search(content)) is not None:
                dates = found.groupdict()
                for said in self._said(content):
                    yield DocumentedRule(
                        said["topic"],
                        said["product"],
                        self._value(said["value"]),
                        dates["since"],
                        dates.get("until") or "",
                        source,
                        said.get("group") or "",
                        id_,
                    )
                return

    def _said(self, content: str) -> Iterator[dict[str, str]]:
        taken: list[tuple[int, int]] = []
        for sentence in self._sentences:  # exceptions first: what is said for a group is not said for all
            for found in sentence.finditer(content):
                if all(found.end() <= start or end <= found.start() for start, end in taken):
                    taken.append(found.span())
                    yield found.groupdict()
        topic = ""
        for line in content.split("\n"):
            if (table := self._table.search(line)) is not None:
                topic = table["topic"]
            for row in self._row.finditer(line) if topic else ():
                yield {"topic": topic, **row.groupdict()}

    def _value(self, text: str) -> int | str:
        digits = re.fullmatch(r"\$?(\d+)(?: days|%)?", text)
        return int(digits[1]) if digits else text

    @lru_cache(maxsize=4096)  # noqa: B019 - as above
    def procedure(self, id_: str, title: str, content: str) -> Procedure | None:
        """The procedure that a document says, None if it is none."""
        header = self._procedure.search(content)
        if header is None or title not in self._titles:
            return None
        operation, family = self._titles[title]
        for mode, expression in self._steps.items():
            if (found := expression.search(content)) is not None:
                said = found.groupdict()
                arguments, code = self._arguments(said.get("arguments") or "")
                tool = said.get("tool") or ""
                return Procedure(operation, family, header["since"], mode, tool, arguments, code, id_)
        return None

    def _arguments(self, text: str) -> tuple[tuple[tuple[Role, str], ...], str]:
        found: list[tuple[Role, str]] = []
        code = ""
        for part in filter(None, text.split(", ")):
            name, _, meaning = part.partition(": ")
            roles: tuple[Role, ...] = get_args(Role)
            role: Role = next((r for r in roles if r != "code" and meaning in self._meanings(r)), "code")
            code = meaning if role == "code" else code
            found.append((role, name))
        return tuple(found), code

    def _meanings(self, role: Role) -> set[str]:
        topics = [topic.name for topic in self._trade.topics]
        return {ROLES[role].format("", contract=self._trade.contract, topic=t, code="")[2:] for t in topics}


@lru_cache(maxsize=16)
def reader(trade: Trade) -> Reader:
    """The reader of a trade's documents."""
    return Reader(trade)


def _expression(template: str, places: Mapping[str, str]) -> re.Pattern[str]:
    """A regular expression of what a template gives; a place has the expression that is known for it."""
    parts = re.split(r"\{(\w+)\}", template)
    text = "".join(
        re.escape(part) if number % 2 == 0 else f"(?P<{part}>{places[part]})" for number, part in enumerate(parts)
    )
    return re.compile(text)
