"""The second person: a simulated colleague whom agents ask for what they may not do alone.

    class Expenses(ApprovalDomain):
        colleague = Colleague("the finance lead", declines=0.3, because=("the travel budget is used up",))

``ApprovalDomain`` brings the tool ``request_approval``. The decision follows from what is asked about and from nothing
else, so that it is the same each time; it stands in the table ``approvals`` of the world, where rewards see it. Which
writes need one is declared of the service (``authority``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain
from muarl.domains.kit.declaration import Texts, several
from muarl.domains.kit.records import Record
from muarl.domains.tooling import tool

REQUEST = "request_approval"
"""The tool that asks the colleague."""
APPROVALS = "approvals"
"""The table of decisions."""
APPROVED, DECLINED, OPEN = "approved", "declined", "open"
"""What a decision may be; an open one waits for what the request left out."""
Needed = Literal["amount", "reason"]


@dataclass(frozen=True)
class ApprovalRequest:
    """What a colleague is asked."""

    action: str
    record_id: str
    amount: float | None
    reason: str
    tables: Record
    """The world's tables as they are, for reading only."""


Objects = Callable[[ApprovalRequest], str | None]
"""Why a request is declined, as a clause such as "the budget is used up"; None or "" if it is approved. It may look at
the request and at constants only, and must say the same each time."""


@dataclass(frozen=True)
class Colleague:
    """Somebody who may agree to what agents may not do alone."""

    name: str
    """What agents and users call them, such as "the finance lead"."""
    declines: float = 0.3
    """The share of requests that are declined; which ones, follows from the action and the record's id."""
    because: Texts = ("there is no budget for it this month",)
    """Reasons for declining, as clauses, of which one is drawn."""
    needs: tuple[Needed, ...] = ("amount", "reason")
    """What a request must tell ("amount", "reason"), which is asked for where it is left out."""
    no_amount: tuple[str, ...] = ()
    """Actions that are about no amount."""
    objects: Objects | None = None
    """A function that decides instead of ``declines``."""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError("colleague: name: say who it is, such as 'the finance lead'")
        where = f"colleague {self.name!r}"
        if not 0 <= self.declines <= 1:
            raise ConfigError(f"{where}: declines must be a share from 0 to 1, not {self.declines}")
        if self.declines and self.objects is None and not all(several(self.because) or ("",)):
            raise ConfigError(f"{where}: because: give a reason for declining, such as 'the budget is used up'")
        if unknown := [one for one in self.needs if one not in get_args(Needed)]:
            raise ConfigError(f"{where}: needs: {unknown[0]!r} is neither 'amount' nor 'reason'")

    def needs_amount(self, action: str) -> bool:
        """Whether a request for this action must tell an amount."""
        return "amount" in self.needs and action not in self.no_amount

    def missing(self, request: ApprovalRequest) -> list[str]:
        """What the request leaves out."""
        amount = self.needs_amount(request.action) and request.amount is None
        reason = "reason" in self.needs and not request.reason.strip()
        return [*(["amount"] if amount else ()), *(["reason"] if reason else ())]

    def objection(self, request: ApprovalRequest) -> str:
        """Why the request is declined; empty if it is approved."""
        if self.objects is not None:
            return (self.objects(request) or "").strip().rstrip(".")
        rng = random.Random(f"approval {self.name} {request.action} {request.record_id}")
        return rng.choice(several(self.because)).strip().rstrip(".") if rng.random() < self.declines else ""


class ApprovalDomain(Domain):
    """A domain whose agents ask a colleague. Its database needs the table ``approvals``, which is empty at first; made
    worlds get it by themselves."""

    colleague: ClassVar[Colleague] = Colleague("a colleague")

    @tool(writes=True)
    def request_approval(
        self, action: str, record_id: str, amount: float | None = None, reason: str = ""
    ) -> dict[str, Any]:
        """Ask the colleague in charge to approve what you may not do alone. The decision is final.

        action: the name of the tool that you would call
        record_id: the id of the record that it is about
        amount: the sum of money or other number that is above your limit
        reason: why it should be done, in one sentence
        """
        answer = self.decision(action, record_id, amount, reason)
        if answer["decision"] != OPEN:
            told_amount = None if action in self.colleague.no_amount else _number(amount)
            request = {"action": action, "record_id": record_id, "amount": told_amount}
            self.db[APPROVALS][f"{action} {record_id}"] = {**request, "because": "", **answer}
        return answer

    def decision(self, action: str, record_id: str, amount: float | None = None, reason: str = "") -> dict[str, Any]:
        """What the colleague says, without noting it. ValueError for an action or a record that there is not."""
        changing = [name for name in self.tool_names() if self.kind_of(name) == "write" and name != REQUEST]
        if action not in changing:
            raise ValueError(f"action must be one of {', '.join(changing)}, not {action!r}")
        if not any(record_id in self.db[table] for table in self.db if table != APPROVALS):
            raise ValueError(f"there is no record {record_id!r}")
        tables = {table: self.db[table].reading() for table in self.db}
        request = ApprovalRequest(action, record_id, _number(amount), reason, Record(tables))
        if missing := self.colleague.missing(request):
            return {"decision": OPEN, "missing": missing}
        objection = self.colleague.objection(request)
        return {"decision": DECLINED, "because": objection} if objection else {"decision": APPROVED}


def _number(amount: float | None) -> float | None:
    """An amount as it is noted, so that 120 and 120.0 leave the same state."""
    return None if amount is None else round(float(amount), 2)


def covers(approval: Mapping[str, Any], needed: Mapping[str, Any]) -> bool:
    """Whether a decision is a yes to what was needed: the same action and record, and no less an amount. Both are
    arguments of ``request_approval``, ``approval`` with the decision."""
    if approval.get("decision") != APPROVED:
        return False
    if any(approval.get(name) != needed.get(name) for name in ("action", "record_id")):
        return False
    needed_amount, approved_amount = needed.get("amount"), approval.get("amount")
    return needed_amount is None or (
        isinstance(approved_amount, (int, float)) and approved_amount >= needed_amount - 0.005
    )
