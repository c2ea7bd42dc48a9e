"""The marina: its documents, what its tools do, and what boat owners want. All else follows from that."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from muarl import KnowledgeDomain, discoverable, tool
from muarl.kit import (
    Fact,
    Identity,
    Maker,
    Plan,
    Service,
    Slot,
    consult,
    environment,
    intent,
    one_of,
    own,
    pattern,
    words,
)

TODAY = "2026-03-14"

# 1. The documents, and the tools on a database of owners and berths


class MarinaOffice(KnowledgeDomain):
    """Berths, winter places and guests; the rules stand in documents."""

    name = "marina"
    policy = Path("policy.md")  # beside this file
    documents = Path("documents")
    top_k = 3  # documents that a search shows

    @tool
    def find_owner(self, email: str) -> dict[str, Any]:
        """Find an owner by e-mail address, such as 'mia@example.com'."""
        for _, owner in self.db.owners.scan():
            if owner["email"] == email.lower():
                return owner
        raise ValueError("no owner has this e-mail address")

    @tool
    def get_berth(self, berth_id: str) -> dict[str, Any]:
        """All about a berth and its boat, such as 'B-1042'. The length is in metres."""
        if berth_id not in self.db.berths:
            raise ValueError(f"there is no berth {berth_id}")
        return self.db.berths[berth_id]

    @discoverable(writes=True)  # in no list of tools: documents/desk/booking-winter-places.md names it
    def book_winter_place_2283(self, berth_id: str, place: Literal["hall", "yard"]) -> dict[str, Any]:
        """Book a place on land for the winter.

        berth_id: the berth whose boat it is.
        place: where it shall lie.
        """
        berth = self.get_berth(berth_id)
        berth["winter"] = place
        return berth

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the owner over to a person, with a sentence about the matter."""
        return "Transfer successful"


# 2. The worlds that tasks take place in, made from chance


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world."""
    owners, berths = {}, {}
    for _ in range(make.people):
        owner, name = make.id("owner", "M-", 4), make.name()
        owners[owner] = {"owner_id": owner, "name": name, "email": f"{name.lower().replace(' ', '.')}@example.com"}
        for _ in range(make.rng.randint(1, 2)):
            berth = make.id("berth", "B-", 4)
            boat = {"length": make.rng.choice((6, 7, 8, 9, 10, 11, 12)), "hull": make.rng.choice(("plastic", "wood"))}
            fee, winter = "unpaid" if make.chance(0.15) else "paid", "hall" if make.chance(0.15) else "not booked"
            berths[berth] = {"berth_id": berth, "owner_id": owner, **boat, "fee": fee, "winter": winter}
    return {"owners": owners, "berths": berths}


# 3. Who calls, and what they are asked for

OWNER = Identity(
    tool="find_owner",
    table="owners",
    key="owner_id",
    facts=(Fact("email", pattern(r"[a-z.]+@[a-z]+\.com"), tells="My e-mail address is {email}.", wrong=True),),
    ask="May I have your e-mail address?",
    say=("My e-mail address is {email}.", "It's {email}."),
)
THE_BERTH = Slot(
    "berth",
    pattern(r"B-\d{4}"),
    ask="Which berth is it?",
    phrase="berth {}",
    draw=own("berths", "berth_id"),
)
THE_PLACE = Slot(
    "place",
    words({"hall": ("in the hall", "under the roof"), "yard": ("in the yard", "in the open")}),
    ask="In the hall or in the yard?",
    change=("Actually, I would rather have it {}.", "Wait, put it {}."),
)
THE_LENGTH = Slot(
    "length",
    pattern(r"\d+ m"),
    ask="How long is the boat?",
    noun=("length", "long"),
    draw=one_of("7 m", "8 m", "9 m", "10 m", "11 m", "13 m"),
)

# 4. What they want, and how the documents have it served


@intent(
    says=("have the boat of {berth} {place} this winter", "book a winter place for {berth}", "book a winter place"),
    slots=[THE_BERTH, THE_PLACE],
)
def winter(it: Plan) -> None:
    it.b = it.look("get_berth", berth_id=it.berth)
    it.refuse_unless(it.b.owner_id == it.user.owner_id, "berth {berth} is not yours")
    it.most = int(consult(it, "winter/places", "winter places hall yard", r"boats of up to (\d+) m"))
    consult(it, "fees/unpaid", "unpaid fees winter place", r"owes the fee of a berth gets nothing new")
    it.refuse_if(it.b.fee == "unpaid", "the fee of berth {berth} is unpaid")
    it.refuse_if(it.b.winter != "not booked", "berth {berth} has a winter place already")
    if it.b.hull == "wood":
        it.most = int(consult(it, "winter/wooden-boats", "wooden boats hall", r"up to a length of (\d+) m"))
    it.unavailable_if(it.place == "hall" and it.b.length > it.most, THE_PLACE, ["yard"])
    tool = consult(it, "desk/booking-winter-places", "booking a winter place tool", r"with the tool `(\w+)`")
    it.look("unlock_discoverable_agent_tool", agent_tool_name=tool)
    arguments = json.dumps({"berth_id": it.berth, "place": it.place})
    propose, done = "book a place {place} for the boat of berth {berth}", "The place {place} is booked."
    it.write("call_discoverable_agent_tool", agent_tool_name=tool, arguments=arguments, propose=propose, done=done)


@intent(says=("know what a guest night costs for {length}", "know the price of a guest night"), slots=[THE_LENGTH])
def guest_night(it: Plan) -> None:
    it.prices = consult(it, "fees/guest-nights", "prices of guest nights", r"(?s)\| up to.*\|")
    steps = [(int(most), price) for most, price in re.findall(r"up to (\d+) m \| \$(\d+)", it.prices)]
    longer = re.findall(r"longer \| \$(\d+)", it.prices)
    it.price = next((price for most, price in steps if int(it.length.removesuffix(" m")) <= most), longer[0])
    it.answer("A night for a boat of {length} costs ${price}.", tell="{price}")


@intent(says=("know on which days the crane works", "know when boats are lifted"), heard=r"\bcrane\b|\blifted\b")
def crane(it: Plan) -> None:
    it.days = consult(it, "desk/crane", "crane days", r"in and out on (\w+ and \w+),")
    it.answer("The crane works on {days}.", tell="{days}")


@intent(
    says=("lend {berth} to a friend", "let somebody else use {berth}", "lend my berth"),
    slots=[THE_BERTH],
    forbidden=True,
)
def lend(it: Plan) -> None:
    consult(it, "berths/lending", "lending a berth", r"cannot lend or sublet")
    it.refuse("a berth cannot be lent to somebody else")


# 5. For a tiny model (`muarl base`): a shorter policy, fewer tools, and each line of the documents as one token

COMPACT = (
    "You work at the office of the marina. Find the owner by e-mail address. Only their own berths. Search the "
    "documents before you answer or act; what is in force today, 2026-03-14, holds. Unlock the tool that a document "
    "names, then call it. Before a change, say what you will do and wait for a yes. Refuse what the documents forbid. "
    "Transfer what no document speaks of."
)
TOOLS = (
    "find_owner",
    "get_berth",
    "KB_search",
    "unlock_discoverable_agent_tool",
    "call_discoverable_agent_tool",
    "transfer_to_human_agents",
)


def lines() -> tuple[str, ...]:
    """All lines of the documents, as searches show them."""
    documents = MarinaOffice(database={}).knowledge.documents
    found = (line for one in documents for line in (one.title, f"ID: {one.id}", *one.content.splitlines()))
    return tuple(dict.fromkeys(line for line in found if len(line) > 3))


MARINA = environment(
    Service(
        domain=MarinaOffice,
        about="The marina: berths, winter places and guests, by rules that stand in documents.",
        today=TODAY,
        identity=OWNER,
        intents=(winter, guest_night, crane, lend),
        tables=make_tables,
        outside=("a job here", "something that I have lost"),
        open_tools=("KB_search", "grep"),
        unlocks=("unlock_discoverable_agent_tool",),
        policy_compact=COMPACT,
        tiny_tools=TOOLS,
        vocabulary=lines(),
    )
)
