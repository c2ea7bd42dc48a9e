"""The tools of an insurer's service desk, on a small database of members, policies and claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.base import Domain
from muarl.domains.kit.people import made_id, shift
from muarl.domains.tooling import tool
from muarl_worlds.services.insurance.records import (
    AppealReason,
    Cause,
    Claim,
    Claims,
    Document,
    InspectionTimes,
    Member,
    Method,
    Policies,
    Policy,
)

TODAY = "2026-03-14"


class Insurance(Domain):
    """An insurer's service desk."""

    name: ClassVar[str] = "insurance"
    policy: ClassVar[Path | str] = Path("policy.md")

    def _claim(self, claim_id: str, *statuses: str) -> Any:
        """A claim to change. ValueError if there is none, or if it has none of these statuses."""
        if claim_id not in self.db.claims:
            raise ValueError(f"claim {claim_id} not found")
        claim = self.db.claims[claim_id]
        if statuses and claim["status"] not in statuses:
            raise ValueError(f"claim {claim_id} is {claim['status']}")
        return claim

    def _policy(self, policy_id: str) -> Any:
        if policy_id not in self.db.policies:
            raise ValueError(f"policy {policy_id} not found")
        return self.db.policies[policy_id]

    def _own(self, table: str, member_id: str) -> list[Any]:
        if member_id not in self.db.members:
            raise ValueError(f"member {member_id} not found")
        return [r for _, r in self.db[table].scan() if r["member_id"] == member_id]

    def _free(self, date: str) -> list[str]:
        """The inspector's times that nobody has taken yet."""
        if date not in self.db.inspections:
            return []
        taken = {c["inspection"] for _, c in self.db.claims.scan()}
        return [t for t in self.db.inspections.peek(date)["times"] if f"{date} {t}" not in taken]

    @tool
    def identify_member(self, member_id: str, postcode: str) -> Member:
        """Find the member by member number and postcode; both must be right.

        member_id: the member number, such as 'M-123456'
        postcode: five digits
        """
        if member_id in self.db.members and self.db.members.peek(member_id)["postcode"] == postcode.strip():
            return self.db.members.peek(member_id)
        raise ValueError("no member with this number and postcode")

    @tool
    def list_policies(self, member_id: str) -> Policies:
        """The member's policies.

        member_id: the member
        """
        return {"policies": self._own("policies", member_id)}

    @tool
    def get_policy(self, policy_id: str) -> Policy:
        """All details of a policy.

        policy_id: the policy, such as 'N-123456'
        """
        return self._policy(policy_id)

    @tool
    def list_claims(self, member_id: str) -> Claims:
        """The member's claims, without their details.

        member_id: the member
        """
        fields = ("claim_id", "cause", "status")
        return {"claims": [{f: c[f] for f in fields} for c in self._own("claims", member_id)]}  # type: ignore[misc]

    @tool
    def get_claim(self, claim_id: str) -> Claim:
        """All details of a claim.

        claim_id: the claim, such as 'CL-12345'
        """
        return self._claim(claim_id)

    @tool
    def list_inspection_times(self, date: str) -> InspectionTimes:
        """When an inspector can come on a day.

        date: the day, such as '2026-03-20'
        """
        times = self._free(date)
        days = [] if times else [d for d in (shift(date, n) for n in range(1, 15)) if self._free(d)]
        return {"date": date, "times": times, "next_days": days[:3]}

    @tool(writes=True)
    def file_claim(self, policy_id: str, cause: Cause, date_of_loss: str, amount: float) -> Claim:
        """File a new claim. The software asks for photos and a repair estimate or receipts.

        policy_id: the policy that covers the loss
        cause: what happened
        date_of_loss: when, such as '2026-03-01'
        amount: the damage in US dollars
        """
        policy = self._policy(policy_id)
        if policy["status"] != "active":
            raise ValueError(f"policy {policy_id} is {policy['status']}")
        if date_of_loss > TODAY or amount <= 0:
            raise ValueError("date_of_loss must not lie in the future, and amount must be above 0")
        claim: Any = {
            "claim_id": made_id("CL-", 5, policy_id, cause, date_of_loss),
            "policy_id": policy_id,
            "member_id": policy["member_id"],
            "cause": cause,
            "date_of_loss": date_of_loss,
            "amount": float(amount),
            "status": "waiting for documents",
            "documents": [],
            "missing": ["photos", "receipts" if policy["kind"] in ("travel", "pet") else "repair estimate"],
            "decided_on": None,
            "payout_method": "bank transfer",
            "inspection": "none",
        }
        self.db.claims[claim["claim_id"]] = claim
        return claim

    @tool(writes=True)
    def add_document(self, claim_id: str, document: Document) -> Claim:
        """Note that a document has come in. When none is missing any more, the claim is open.

        claim_id: the claim
        document: which one
        """
        claim = self._claim(claim_id, "open", "waiting for documents", "appealed")
        if document in claim["documents"]:
            raise ValueError(f"claim {claim_id} has the {document} already")
        claim["documents"] = [*claim["documents"], document]
        claim["missing"] = [d for d in claim["missing"] if d != document]
        if claim["status"] == "waiting for documents" and not claim["missing"]:
            claim["status"] = "open"
        return claim

    @tool(writes=True)
    def withdraw_claim(self, claim_id: str) -> Claim:
        """Withdraw a claim that has not been decided.

        claim_id: the claim
        """
        claim = self._claim(claim_id, "open", "waiting for documents")
        claim["status"] = "withdrawn"
        return claim

    @tool(writes=True)
    def appeal_claim(self, claim_id: str, reason: AppealReason) -> Claim:
        """Appeal against a rejection.

        claim_id: the claim
        reason: on what grounds
        """
        claim = self._claim(claim_id, "rejected")
        claim["status"] = "appealed"
        return claim

    @tool(writes=True)
    def schedule_inspection(self, claim_id: str, date: str, time: str) -> Claim:
        """Send an inspector; an earlier date is given up.

        claim_id: the claim
        date: the day
        time: one of the free times on it, such as '10:00'
        """
        claim = self._claim(claim_id, "open", "waiting for documents", "appealed")
        if time not in self._free(date):
            raise ValueError(f"no inspector is free on {date} at {time}")
        claim["inspection"] = f"{date} {time}"
        return claim

    @tool(writes=True)
    def set_payout_method(self, claim_id: str, method: Method) -> Claim:
        """Say how a claim is to be paid.

        claim_id: the claim
        method: how
        """
        claim = self._claim(claim_id, "open", "waiting for documents", "approved", "appealed")
        claim["payout_method"] = method
        return claim

    @tool(writes=True)
    def change_deductible(self, policy_id: str, deductible: float) -> Policy:
        """Change what the member bears of each claim, and with it the premium: 4% less for every $250 more.

        policy_id: the policy
        deductible: 250, 500, 750 or 1000 US dollars
        """
        policy = self._policy(policy_id)
        if policy["status"] != "active" or deductible not in (250, 500, 750, 1000):
            raise ValueError("the policy must be active and the deductible 250, 500, 750 or 1000")
        steps = (deductible - policy["deductible"]) / 250
        policy["yearly_premium"] = round(policy["yearly_premium"] * (1 - 0.04 * steps), 2)
        policy["deductible"] = float(deductible)
        return policy

    @tool(writes=True)
    def end_policy(self, policy_id: str) -> Policy:
        """End a policy on its last day, so that it is not renewed.

        policy_id: the policy
        """
        policy = self._policy(policy_id)
        if policy["status"] != "active":
            raise ValueError(f"policy {policy_id} is {policy['status']}")
        policy["status"] = "ended"
        return policy

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the member over to a person.

        summary: what it is about, in one sentence
        """
        return "Transfer successful"
