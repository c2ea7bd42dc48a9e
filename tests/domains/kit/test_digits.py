"""A service whose ids are all digits and whose tools answer "no": the expert reads texts as texts at every size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.kit import Plan, environment, intent, pattern
from support import kit

CARD = replace(kit.LOAN, kind=pattern(r"\d{5}"), described=None, phrase="book {}")


class DigitLibrary(kit.Library):
    """The library with loans that are known by digits alone, some of which are reserved."""

    @tool
    def shelf_of(self, loan_id: str) -> str:
        """The number of the shelf.

        loan_id: the loan
        """
        return "".join(reversed(self.get_loan(loan_id)["loan_id"]))

    @tool(writes=True)
    def mark(self, card: str, shelf: str) -> dict[str, Any]:
        """Mark a loan.

        card: the loan
        shelf: where it stands
        """
        loan = self.db.loans[card]
        loan["until"] = shelf
        return dict(loan)


def tables(make: Any) -> dict[str, dict[str, Any]]:
    made = kit.library_tables(make)
    loans = [
        {**loan, "loan_id": f"{number}{key[3:]}5"[-5:]} for number, (key, loan) in enumerate(made["loans"].items(), 10)
    ]
    return {
        "readers": made["readers"],
        "loans": {loan["loan_id"]: {**loan, "reserved": "yes" if loan["waiting"] else "no"} for loan in loans},
    }


@intent(says=["mark {loan}", "mark a book"], slots=[CARD])
def mark(it: Plan) -> None:
    kit.own_loan(it)
    it.refuse_if(it.l.reserved != "no", "somebody else waits for {l.title}")
    it.shelf = it.look("shelf_of", loan_id=it.l.loan_id)
    it.write(
        "mark", card=it.l.loan_id, shelf=it.shelf, propose="mark {l.title}, book {loan}", done="{l.title} is marked."
    )


@pytest.fixture(scope="module")
def digits() -> Environment:
    return environment(kit.library(mark, domain=DigitLibrary, tables=tables), name="digits")


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_the_expert_reads_texts_as_texts(digits: Environment, size: str) -> None:
    tasks = digits.make_tasks("test", 25, size=size)
    episodes = kit.expert(digits, tasks, size)
    assert kit.mean(episodes) == 1.0
    assert any(kit.calls(episode, "mark") for episode in episodes)
    shown = [
        m.content or "" for e in episodes for m in e.messages if m.role == "tool" and "loan_id" in (m.content or "")
    ]
    assert all(('reserved "no"' if size == "tiny" else '"reserved": "no"') in text or "yes" in text for text in shown)
