"""How a finding is told, in a terminal and on a page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from muarl.domains.checking import CheckFinding, Fix
from muarl.pages.markup import Child, Html, join, tag


def lines_of(finding: CheckFinding, where: str) -> Iterator[str]:
    """A finding for a terminal: what is wrong and ``where``, and below it the remedy and each fix."""
    yield f"  - {where}: {_sentence(finding.what)}" if where else f"  - {_sentence(finding.what)}"
    if finding.remedy:
        yield f"    {_sentence(finding.remedy)}"
    for fix in finding.fixes:
        yield f"    {_fixed(fix)}"


def html_of(finding: CheckFinding) -> Html:
    """A finding for a page: what is wrong, the remedy and each fix, without where it is."""
    return join(
        f"{_sentence(finding.what)} ",
        tag("span", _sentence(finding.remedy), class_="soft") if finding.remedy else None,
        [tag("p", _fixed(fix)) for fix in finding.fixes],
    )


def row_of(head: Child, cells: Iterable[Child]) -> Html:
    """A row of a table of figures."""
    return tag("tr", tag("th", head, scope="row"), [tag("td", cell, class_="n") for cell in cells])


def _sentence(text: str) -> str:
    return f"{text.rstrip('.')}."


def _fixed(fix: Fix) -> str:
    told = {
        "drop": f"leave out actions[{fix.index}]",
        "arguments": f"actions[{fix.index}] with {json.dumps(fix.value, ensure_ascii=False, default=str)}",
        "basis": f"reward_basis {json.dumps(fix.value, default=str)}",
        "say": f"add {fix.value!r} to the scenario",
    }[fix.what]
    return f"Fixed: {told}{'' if fix.settled else ' (a guess: confirm it)'}."
