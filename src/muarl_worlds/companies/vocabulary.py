"""Fixed pieces of tiny companies' documents and tools, which a tiny tokenizer makes one token each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muarl.domains.kit.people import shift
from muarl_worlds.companies import wording
from muarl_worlds.companies.company import COMPANY_SIZES, TODAY
from muarl_worlds.companies.making import DATES, PARAMETERS, TINY_NUMBERS
from muarl_worlds.companies.trades import Trade
from muarl_worlds.companies.writing import ORDER

_PLACE = re.compile(r"\{\w*\}")


def vocabulary_of(trade: Trade) -> tuple[str, ...]:
    """The pieces, each once."""
    return tuple(dict.fromkeys(piece for piece in _pieces(trade) if len(piece.strip()) > 1))


def _pieces(trade: Trade) -> Iterator[str]:
    operations = [trade.operation(name) for name in trade.tiny_operations]
    topics = [operation.topic for operation in operations]
    for topic in topics:
        yield from (topic, f" {topic}")
    yield from (*trade.remarks, ORDER, *trade.subjects, *trade.places)
    for template in (*wording.HEADERS.values(), wording.REPLACES, wording.PROCEDURE_HEADER, *wording.STEPS.values()):
        yield from _PLACE.split(template)
    for template in (wording.RULES[0], wording.EXCEPTIONS[0]):
        parts = _PLACE.split(template)
        yield from (*parts[:-2], f"{parts[-2]}$", parts[-1])
    yield from (" bulletin. ", " leaflet. ", " for ")
    for operation in operations:
        before, behind = operation.title.split("{family}")
        yield from (f"Procedure for {before}", f"{behind}. ", behind)
        yield from (f"{operation.stem}_", f"{operation.code}-")
        yield f": the {operation.topic} in dollars"
    yield f": the id of the {trade.contract}"
    yield from trade.families
    yield from (str(number) for number in TINY_NUMBERS)
    yield from (shift(TODAY, first) for first, _ in DATES.values())
    count = COMPANY_SIZES["tiny"].documents
    yield from (f"[D{number:02d}] " for number in range(1, count + 1))
    noun = trade.contract.split(" ")[-1]
    for name in (one.format(noun) for one in PARAMETERS["contract"]):
        yield from (name, f'"{{\\"{name}\\": \\"')
    for name in PARAMETERS["fee"]:
        yield from (name, f'\\", \\"{name}\\": ')
    for name in PARAMETERS["code"]:
        yield from (name, f', \\"{name}\\": \\"')
    yield from ('\\"}"', '\\"}"}}\n', "unlocked ", "; status done; fee ", "; code ", "; tool ")
