"""What members of the insurance want, how they say it, and how each request is served by the policy."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.kit.declaration import intent
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service
from muarl_worlds.services.insurance.slots import (
    AMOUNT,
    CAUSE,
    CLAIM,
    DATE,
    DAY,
    DEDUCTIBLE,
    DOCUMENT,
    IDENTITY,
    KIND,
    METHOD,
    REASON,
    TIME,
)
from muarl_worlds.services.insurance.tools import TODAY, Insurance
from muarl_worlds.services.insurance.world import make_tables

# fmt: off
# Wordings stand side by side, and rules below each other.

def own_claim(it: Plan) -> None:
    """The member's claim."""
    it.c = it.look("get_claim", claim_id=it.claim)
    it.refuse_unless(it.c.member_id == it.user.member_id, "claim {claim} is not yours")


def own_policy(it: Plan) -> None:
    """The member's policy of the kind that is spoken of."""
    it.all = it.look("list_policies", member_id=it.user.member_id)
    it.p = it.pick(it.all.policies, kind=it.kind) or it.unavailable(KIND, [r.kind for r in it.all.policies])


@intent(
    says=["file a claim on {kind}: {cause} on {date}, damage {amount}",
          "report a loss on {kind}, {cause}, that happened on {date}", "file a claim on {kind} for {cause}",
          "file a claim on {kind}", "make a new claim", "report some damage"],
    slots=[KIND, CAUSE, DATE, AMOUNT],
    share=1.9,
    because=["It gave us quite a shock.", "Luckily nobody was hurt.", "I have never had to do that before."],
)
def file_claim(it: Plan) -> None:
    own_policy(it)
    it.refuse_unless(it.p.status == "active", "your {kind} is {p.status}")
    it.refuse_if(it.cause not in it.p.covers, "your {kind} does not cover {cause}")
    it.refuse_if(it.date < "2026-02-12", "the loss was on {date}, and claims can be filed for 30 days")
    it.transfer_if(it.amount > 10000, "The member wants to file a claim of {amount}, which is above $10,000.")
    it.refuse_if(
        it.amount <= it.p.deductible,
        "{amount} is not above the deductible of {p.deductible|money}, so that nothing would be paid",
    )
    it.write(
        "file_claim", policy_id=it.p.policy_id, cause=it.cause, date_of_loss=it.date, amount=it.amount,
        propose=[("file a claim of {amount|money} on your {kind} for {cause} on {date}; {p.deductible|money} of it "
                  "are yours to bear"),
                 "file this on {p.policy_id}: {cause}, {date}, {amount|money}, deductible {p.deductible|money}"],
        done=["Your claim is {result.claim_id}. We still need: {result.missing|list}.",
              "Claim {result.claim_id} is filed; please send {result.missing|list}."],
    )


@intent(
    says=["hand in {document} for {claim}", "send in {document} for {claim}", "add {document} to {claim}",
          "hand in a document for {claim}", "hand in a document"],
    slots=[CLAIM, DOCUMENT], share=1.3,
    because=["It took me some time to get it.", "I have just scanned it."],
    heard=r"\bhand in\b|\bsend in\b|\badd (?:the|a) (?:document|police|repair|photos|receipts|medical)|\bdocument",
)
def add_document(it: Plan) -> None:
    own_claim(it)
    it.refuse_unless(
        it.c.status in ("open", "waiting for documents", "appealed"),
        "claim {claim} is {c.status} and takes no further documents",
    )
    it.refuse_if(it.document in it.c.documents, "we have the {document} for {claim} already")
    it.write(
        "add_document", claim_id=it.claim, document=it.document,
        propose=["add the {document} to claim {claim}", "add the {document} to the papers of {claim} ({c.cause})"],
        done=["The {document} is with claim {claim}; still missing: {result.missing|list}.",
              "I have noted the {document}. Claim {claim} is {result.status}."],
    )


@intent(
    says=["withdraw {claim}", "take back {claim}", "drop {claim}", "withdraw a claim"],
    slots=[CLAIM], share=1.1,
    because=["It turned out to be a trifle.", "The other side has paid for it."],
    heard=r"\bwithdraw|\btake back\b|\bdrop (?:claim|my claim|a claim)|\bcancel (?:claim|my claim|a claim)",
)
def withdraw(it: Plan) -> None:
    own_claim(it)
    it.refuse_unless(
        it.c.status in ("open", "waiting for documents"),
        "claim {claim} is {c.status}, and only undecided claims can be withdrawn",
    )
    it.write(
        "withdraw_claim", claim_id=it.claim,
        propose=["withdraw claim {claim} of {c.amount|money} for {c.cause}",
                 "withdraw {claim}, the {c.cause} of {c.date_of_loss|date}"],
        done=["Claim {claim} is withdrawn.", "Done, we will not look into {claim} any further."],
    )


@intent(
    says=["appeal against the rejection of {claim}, {reason}", "appeal against the decision on {claim}",
          "object to the rejection of {claim}", "appeal against a decision"],
    slots=[CLAIM, REASON], share=1.2,
    because=["I was quite surprised by your letter.", "My neighbour got everything for the same thing."],
)
def appeal(it: Plan) -> None:
    own_claim(it)
    it.refuse_unless(it.c.status == "rejected", "claim {claim} is {c.status}, and only rejections can be appealed")
    it.refuse_if(
        it.c.decided_on < "2026-01-13",
        "claim {claim} was rejected on {c.decided_on|date}, and appeals are possible for 60 days",
    )
    it.refuse_if(it.reason == "unfair", "an appeal needs new evidence, or an amount or a cause that is wrong")
    it.write(
        "appeal_claim", claim_id=it.claim, reason=it.reason,
        propose=["appeal the rejection of claim {claim}; reason: {reason}",
                 "appeal {claim} ({c.cause}, {c.amount|money}) because {reason}"],
        done=["The appeal against the rejection of {claim} is on its way.",
              "Claim {claim} is appealed; you will hear from us within two weeks."],
    )


@intent(
    says=["have an inspection for {claim} on {day} at {time}",
          "make a date for the inspection of {claim}, {day} if possible",
          "get an inspector for {claim}",
          "schedule an inspection"],
    slots=[CLAIM, DAY, TIME], share=1.5,
    because=["The damage is still as it was.", "I can be at home nearly any day."],
    heard=r"\binspect",
)
def inspection(it: Plan) -> None:
    own_claim(it)
    it.refuse_unless(
        it.c.status in ("open", "waiting for documents", "appealed"),
        "claim {claim} is {c.status}, and there is nothing to inspect any more",
    )
    it.refuse_if(
        it.c.cause in ("lost luggage", "cancelled trip", "medical emergency", "surgery", "poisoning"),
        "{c.cause} needs no inspection",
    )
    it.free = it.look("list_inspection_times", date=it.day)
    it.unavailable_if(not it.free.times, DAY, it.free.next_days)
    it.slot = it.pick(it.free.times, lambda r: r == it.time) or it.unavailable(TIME, list(it.free.times))
    it.write(
        "schedule_inspection", claim_id=it.claim, date=it.day, time=it.time,
        propose=["schedule an inspection for claim {claim} on {day} at {time}",
                 "schedule the inspector for {claim} ({c.cause}): {day} at {time}"],
        done=["The inspector comes on {day} at {time} for claim {claim}.",
              "Done, the inspection of {claim} is on {day} at {time}."],
    )


@intent(
    says=["have {claim} paid by {method}", "change the way {claim} is paid to {method}",
          "change the payout method of {claim}", "change how a claim is paid out"],
    slots=[CLAIM, METHOD],
    because=["I have changed my bank.", "I am hardly ever at home."],
    heard=r"\bpaid (?:by|for|out)|\bpay(?:out|ment) (?:method|of)|\bway [^.]*paid",
)
def payout(it: Plan) -> None:
    own_claim(it)
    it.refuse_unless(
        it.c.status in ("open", "waiting for documents", "approved", "appealed"),
        "claim {claim} is {c.status}, so that there is nothing to be paid",
    )
    it.refuse_if(
        it.method == "prepaid card" and it.c.amount > 500,
        "prepaid cards hold $500 at most, and claim {claim} is above that",
    )
    it.write(
        "set_payout_method", claim_id=it.claim, method=it.method,
        propose=["set the payout of claim {claim} to {method}",
                 "set {method} for {claim} instead of {c.payout_method}"],
        done=["Claim {claim} will be paid by {method}.", "Done: {method} for {claim}."],
    )


@intent(
    says=["change the deductible of {kind} to {deductible}", "have a deductible of {deductible} on {kind}",
          "change the deductible of {kind}", "change a deductible"],
    slots=[KIND, DEDUCTIBLE], share=1.1,
    because=["I would like to pay less every year.", "We have hardly ever had a claim."],
    heard=r"\bdeductible",
)
def deductible(it: Plan) -> None:
    own_policy(it)
    it.refuse_unless(it.p.status == "active", "your {kind} is {p.status}")
    it.refuse_unless(it.deductible in (250, 500, 750, 1000), "the deductible can be $250, $500, $750 or $1,000")
    it.refuse_if(it.p.deductible == it.deductible, "the deductible of your {kind} is {deductible} already")
    it.refuse_if(
        it.p.ends_on < "2026-04-13",
        "your {kind} ends on {p.ends_on|date}, and nothing is changed in its last 30 days",
    )
    it.write(
        "change_deductible", policy_id=it.p.policy_id, deductible=it.deductible,
        propose=["change the deductible of your {kind} from {p.deductible|money} to {deductible|money}",
                 "change {p.policy_id}, your {kind}, to a deductible of {deductible|money}"],
        done=["The deductible is {deductible|money} now, and the premium {result.yearly_premium|money} a year.",
              "Done, your {kind} now costs {result.yearly_premium|money} a year."],
    )


@intent(
    says=["end {kind}", "terminate {kind}", "not renew {kind}", "end a policy"],
    slots=[KIND],
    because=["We sold it.", "I have found something cheaper."],
    heard=r"\bend my\b|\bend (?:a|the) policy|\bterminate|\bnot renew|\bcancel my (?:car|home|travel|pet)",
)
def end_policy(it: Plan) -> None:
    own_policy(it)
    it.refuse_unless(it.p.status == "active", "your {kind} is {p.status} already")
    it.refuse_if(
        it.p.ends_on < "2026-04-13",
        "your {kind} ends on {p.ends_on|date}, and notice must be given 30 days before",
    )
    it.write(
        "end_policy", policy_id=it.p.policy_id,
        propose=["end your {kind} on {p.ends_on|date}",
                 "end {p.policy_id}, your {kind}, when its year is over on {p.ends_on|date}"],
        done=["Your {kind} ends on {p.ends_on|date}.", "Done, your {kind} will not be renewed."],
    )


@intent(
    says=["find out the amount of {claim}", "know how much I claimed, the amount of {claim}",
          "know the amount of a claim"],
    slots=[CLAIM], share=0.7,
    because=["My husband wrote it and I cannot find our copy.", "I need it for the tax office."],
)
def ask_amount(it: Plan) -> None:
    own_claim(it)
    it.answer(
        ["Claim {claim} is about {c.amount|money}; it is {c.status}.", "The amount of {claim} is {c.amount|money}."],
        tell="{c.amount|plain}",
    )


@intent(
    says=["know the yearly premium of {kind}", "find out the premium of {kind}", "know the premium of a policy"],
    slots=[KIND], share=0.7,
    because=["I am comparing a few offers.", "It must have gone up again."],
)
def ask_premium(it: Plan) -> None:
    own_policy(it)
    it.answer(
        ["Your {kind} costs {p.yearly_premium|money} a year.",
         "The yearly premium of your {kind} is {p.yearly_premium|money}."],
        tell="{p.yearly_premium|plain}",
    )


SERVICE = Service(
    domain=Insurance, about="the service desk of an insurer", today=TODAY, identity=IDENTITY,
    intents=(file_claim, add_document, withdraw, appeal, inspection, payout, deductible, end_policy, ask_amount,
             ask_premium),
    tables=make_tables,
    outside=("a lawyer whom I need", "a fraud that I have seen", "life insurance",
             "an accident in which somebody was badly hurt", "a broker who gave me bad advice",
             "a letter from a court"),
    open_tools=("list_inspection_times",),
    tiny_tools=("identify_member", "list_policies", "list_claims", "get_claim", "list_inspection_times",
                "add_document", "withdraw_claim", "appeal_claim", "schedule_inspection", "end_policy",
                "transfer_to_human_agents"),
    policy_compact=Path("policy_compact.md"),
    texts=("postcode", "inspection"),
)
