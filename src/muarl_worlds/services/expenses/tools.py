"""The tools of the expenses desk, and made worlds of employees, claims and cards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from muarl.domains.kit.colleague import ApprovalDomain, Colleague
from muarl.domains.kit.people import Maker
from muarl.domains.schema import Date, Id, Money, TypedDict, record
from muarl.domains.tooling import tool

TODAY = "2026-03-14"
PURPOSES = ("hotel", "train", "flight", "taxi", "conference", "training", "software", "phone", "moving house")
STEPS = (500, 1000, 1500, 2000, 3000, 5000)
"""The monthly limits that cards may have."""
AMOUNTS = (18.4, 32.0, 47.5, 63.2, 88.0, 120.0, 164.3, 198.0, 236.9, 271.0, 312.5, 384.0, 455.8, 690.0, 918.6)
EmployeeId = Annotated[str, Id("E-", 5)]
ClaimId = Annotated[str, Id("EX-", 5)]
CardId = Annotated[str, Id("CC-", 4)]


@record("employee_id")
class Employee(TypedDict):
    employee_id: EmployeeId
    name: str
    date_of_birth: Date


@record("claim_id")
class ExpenseClaim(TypedDict):
    claim_id: ClaimId
    employee_id: EmployeeId
    purpose: str
    amount: Money
    receipt: Literal["attached", "missing"]
    status: Literal["submitted", "paid", "withdrawn"]


@record("claim_id")
class ExpenseLine(TypedDict):
    """A claim in a list."""

    purpose: str
    claim_id: ClaimId


@record()
class ExpenseClaims(TypedDict):
    claims: list[ExpenseLine]


@record("card_id")
class Card(TypedDict):
    """A company card. ``limit``: what can be spent in a month."""

    card_id: CardId
    employee_id: EmployeeId
    limit: int
    status: Literal["active", "locked", "under suspicion"]


class Expenses(ApprovalDomain):
    """The desk where employees have expenses paid and their cards looked after."""

    name: ClassVar[str] = "expenses"
    policy: ClassVar[Path | str] = Path("policy.md")
    colleague: ClassVar[Colleague] = Colleague(
        "the finance lead",
        declines=0.35,
        because=(
            "the budget of the department is used up",
            "the spending of this quarter is under review",
            "the head of department wants to see it first",
        ),
        no_amount=("unlock_card",),
    )

    def _one(self, table: str, key: str) -> Any:
        if key not in self.db[table]:
            raise ValueError(f"{key} not found")
        return self.db[table][key]

    @tool
    def identify_employee(self, name: str, date_of_birth: str) -> Employee:
        """Find an employee by full name and date of birth, such as '1984-05-17'."""
        for _, employee in self.db.employees.scan():
            if (employee["name"].lower(), employee["date_of_birth"]) == (name.strip().lower(), date_of_birth.strip()):
                return employee
        raise ValueError("no employee has this name and date of birth")

    @tool
    def list_claims(self, employee_id: str) -> ExpenseClaims:
        """An employee's claims with what each was spent on."""
        mine = [c for _, c in self.db.claims.scan() if c["employee_id"] == employee_id]
        return {"claims": [{"purpose": c["purpose"], "claim_id": c["claim_id"]} for c in mine]}

    @tool
    def get_claim(self, claim_id: str) -> ExpenseClaim:
        """All about a claim, such as 'EX-10422'."""
        return self._one("claims", claim_id)

    @tool
    def get_card(self, card_id: str) -> Card:
        """All about a company card, such as 'CC-1042'."""
        return self._one("cards", card_id)

    @tool(writes=True)
    def pay_claim(self, claim_id: str) -> ExpenseClaim:
        """Pay a submitted claim out."""
        return self._change("claims", claim_id, "submitted", {"status": "paid"})

    @tool(writes=True)
    def withdraw_claim(self, claim_id: str) -> ExpenseClaim:
        """Take a submitted claim back."""
        return self._change("claims", claim_id, "submitted", {"status": "withdrawn"})

    @tool(writes=True)
    def set_card_limit(self, card_id: str, limit: int) -> Card:
        """Give an active card another monthly limit: 500, 1000, 1500, 2000, 3000 or 5000."""
        if limit not in STEPS:
            raise ValueError(f"limit must be one of {', '.join(map(str, STEPS))}")
        return self._change("cards", card_id, "active", {"limit": limit})

    @tool(writes=True)
    def unlock_card(self, card_id: str) -> Card:
        """Make a locked card, or one under suspicion, active again."""
        card = self._one("cards", card_id)
        if card["status"] == "active":
            raise ValueError(f"card {card_id} is active")
        card["status"] = "active"
        return card

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the employee over to a person, with a sentence about the matter."""
        return "Transfer successful"

    def _change(self, table: str, key: str, status: str, values: dict[str, Any]) -> Any:
        found = self._one(table, key)
        if found["status"] != status:
            raise ValueError(f"{key} is {found['status']}")
        found |= values
        return found


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world."""
    rng = make.rng
    tables: dict[str, dict[str, Any]] = {"employees": {}, "claims": {}, "cards": {}}
    for _ in range(make.people):
        me = make.id("employee", "E-", 5)
        tables["employees"][me] = {"employee_id": me, "name": make.name(), "date_of_birth": make.birthdate()}
        for purpose in rng.sample(PURPOSES, rng.randint(2, 3)):
            status = rng.choice(("submitted", "submitted", "submitted", "submitted", "paid", "withdrawn"))
            claim: dict[str, Any] = {"claim_id": make.id("claim", "EX-", 5), "employee_id": me, "purpose": purpose}
            claim |= {"amount": rng.choice(AMOUNTS), "receipt": "attached" if make.chance(0.85) else "missing"}
            tables["claims"][claim["claim_id"]] = {**claim, "status": status}
        for status in rng.sample(("active", "active", "active", "locked", "under suspicion"), rng.randint(1, 2)):
            card: dict[str, Any] = {"card_id": make.id("card", "CC-", 4), "employee_id": me}
            tables["cards"][card["card_id"]] = {**card, "limit": rng.choice(STEPS[:4]), "status": status}
    return tables
