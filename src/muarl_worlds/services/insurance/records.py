"""What the tools of the insurer answer, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.domains.schema import Date, Id, Money, Time, TypedDict, record

Kind = Literal["car", "home", "travel", "pet"]
Cause = Literal[
    "collision", "theft", "hail", "broken windscreen", "burglary", "water damage", "fire", "storm", "lost luggage",
    "cancelled trip", "medical emergency", "surgery", "poisoning",
]  # fmt: skip
Document = Literal["police report", "repair estimate", "photos", "receipts", "medical report"]
Method = Literal["bank transfer", "check", "prepaid card"]
AppealReason = Literal["new evidence", "wrong amount", "wrong cause"]
Status = Literal["open", "waiting for documents", "approved", "paid", "rejected", "withdrawn", "appealed"]
MemberId = Annotated[str, Id("M-", 6)]
PolicyId = Annotated[str, Id("N-", 6)]
ClaimId = Annotated[str, Id("CL-", 5)]


@record("member_id")
class Member(TypedDict):
    member_id: MemberId
    name: str
    postcode: Annotated[str, Field(pattern=r"^\d{5}$")]


@record("policy_id")
class Policy(TypedDict):
    """``covers``: the causes of loss that are covered. ``deductible``: what the member bears of each claim."""

    policy_id: PolicyId
    member_id: MemberId
    kind: Kind
    status: Literal["active", "lapsed", "ended"]
    covers: list[Cause]
    deductible: Money
    yearly_premium: Money
    ends_on: Date


@record()
class Policies(TypedDict):
    policies: list[Policy]


@record("claim_id")
class ClaimLine(TypedDict):
    """A claim in a list."""

    claim_id: ClaimId
    cause: Cause
    status: Status


@record()
class Claims(TypedDict):
    claims: list[ClaimLine]


@record("claim_id")
class Claim(TypedDict):
    """``missing``: documents that are still needed. ``decided_on``: null until it is approved or rejected.
    ``inspection``: date and time, or "none"."""

    claim_id: ClaimId
    policy_id: PolicyId
    member_id: MemberId
    cause: Cause
    date_of_loss: Date
    amount: Money
    status: Status
    documents: list[Document]
    missing: list[Document]
    decided_on: Date | None
    payout_method: Method
    inspection: Annotated[str, Field(pattern=r"^(none|\d{4}-\d\d-\d\d \d\d:\d\d)$")]


@record()
class InspectionTimes(TypedDict):
    """``next_days``: the next days with free times, if there is none on that day."""

    date: Date
    times: list[Time]
    next_days: list[Date]
