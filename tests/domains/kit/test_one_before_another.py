"""A request that the policy allows only after another thing, as docs/kit.md declares it: pay the fines, then renew."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from muarl.environments.registry import load_reference
from support import kit

BEFORE = '''
from muarl import Domain, tool
from muarl.kit import Fact, Identity, Plan, Service, Slot, environment, intent, own, pattern


class Desk(Domain):
    name = "desk"
    policy = "Loans are renewed once the fines are paid. Say what you will do, and wait for a yes."

    @tool
    def find_member(self, email: str) -> dict[str, object]:
        """Find a member by e-mail address."""
        return next(member for member in self.db.members.values() if member["email"] == email.lower())

    @tool
    def get_fines(self, member_id: str) -> dict[str, object]:
        """What a member owes."""
        return {"fines": self.db.members[member_id]["fines"]}

    @tool(writes=True)
    def pay_fines(self, member_id: str) -> dict[str, object]:
        """Take all fines from the member's card."""
        self.db.members[member_id]["fines"] = 0
        return self.db.members[member_id]

    @tool(writes=True)
    def renew_loan(self, loan_id: str) -> dict[str, object]:
        """Renew a loan."""
        loan = self.db.loans[loan_id]
        if self.db.members[loan["member_id"]]["fines"]:
            raise ValueError("the fines must be paid first")
        loan["renewals"] += 1
        return loan
'''
BEHIND = """
def tables(make):
    members, loans = {}, {}
    for _ in range(make.people):
        member = make.id("member", "M-", 4)
        email = f"{make.name().replace(' ', '.').lower()}@example.org"
        members[member] = {"member_id": member, "email": email, "fines": make.rng.choice((0, 12.5))}
        for loan in (make.id("loan", "L-", 4) for _ in range(2)):
            loans[loan] = {"loan_id": loan, "member_id": member, "renewals": 0}
    return {"members": members, "loans": loans}


EMAIL = Fact("email", pattern(r"[a-z0-9.]+@example[.]org"), tells="My e-mail address is {email}.")
MEMBER = Identity(
    tool="find_member", table="members", key="member_id", facts=(EMAIL,), ask="E-mail address?", say="It's {email}."
)
DESK = environment(
    Service(domain=Desk, about="a desk", today="2026-03-14", intents=(renew_when_paid,), identity=MEMBER, tables=tables)
)
"""


def test_the_pages_plan_proposes_writes_and_solves_both(repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs" / "kit.md").read_text()
    (plan,) = re.findall(r"^### One thing before another$.*?^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    file = tmp_path / "desk.py"
    file.write_text(f"{BEFORE}\n\n{plan}\n\n{BEHIND}")
    desk = load_reference(f"{file}:DESK")
    tasks = desk.make_tasks("test", 40, size="small")
    writes = Counter(
        tuple(a.name for a in task.actions or () if a.name in ("pay_fines", "renew_loan")) for task in tasks
    )
    assert writes["pay_fines", "renew_loan"] >= 10 and writes["renew_loan",] >= 10 and len(writes) <= 3
    episodes = kit.expert(desk, tasks, "small")
    assert kit.mean(episodes) == 1.0
    both = [e for e in episodes if kit.calls(e, "pay_fines") and kit.calls(e, "renew_loan")]
    assert len(both) >= 10
    for episode in both:
        proposals = [text for text in kit.said(episode) if "fines from your card" in text or "renew loan L-" in text]
        assert len(proposals) >= 2, "a yes for each"
    unasked = kit.expert(desk, tasks, "small", skip_confirmation=1.0)
    assert kit.mean(unasked) < 0.9
