"""The zoo: what its tools do, which worlds they work on, and what visitors want. All else follows from that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from muarl import Domain, tool
from muarl.kit import Fact, Identity, Maker, Plan, Service, Slot, days, environment, intent, own, pattern, shift

TODAY = "2026-03-14"

# 1. The tools, on a database of visitors, bookings and days


class ZooDesk(Domain):
    """Bookings of visits: looked up, moved and cancelled."""

    name = "zoo"
    policy = Path("policy.md")  # beside this file

    @tool
    def find_visitor(self, email: str) -> dict[str, Any]:
        """Find a visitor by e-mail address, such as 'mia@example.com'."""
        for _, visitor in self.db.visitors.scan():
            if visitor["email"] == email.lower():
                return visitor
        raise ValueError("no visitor has this e-mail address")

    @tool
    def get_booking(self, booking_id: str) -> dict[str, Any]:
        """All about a booking, such as 'V-1042'."""
        if booking_id not in self.db.bookings:
            raise ValueError(f"there is no booking {booking_id}")
        return self.db.bookings[booking_id]

    @tool
    def get_free_days(self) -> dict[str, Any]:
        """The days on which there is room."""
        return {"days": [day for day, one in self.db.days.scan() if one["room"]]}

    @tool(writes=True)
    def move_booking(self, booking_id: str, day: str) -> dict[str, Any]:
        """Move a booking to a day on which there is room, such as '2026-03-20'."""
        if day not in self.get_free_days()["days"]:
            raise ValueError(f"there is no room on {day}")
        booking = self.get_booking(booking_id)
        booking["day"] = day
        return booking

    @tool(writes=True)
    def cancel_booking(self, booking_id: str) -> dict[str, Any]:
        """Cancel a booking."""
        booking = self.get_booking(booking_id)
        booking["status"] = "cancelled"
        return booking

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the visitor over to a person, with a sentence about the matter."""
        return "Transfer successful"


# 2. The worlds that tasks take place in, made from chance


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world; a tiny one takes its names and ids from short lists."""
    fortnight = [shift(TODAY, number) for number in range(1, 15)]
    visitors, bookings = {}, {}
    for _ in range(make.people):
        visitor, name = make.id("visitor", "M-", 4), make.name()
        email = f"{name.lower().replace(' ', '.')}@example.com"
        visitors[visitor] = {"visitor_id": visitor, "name": name, "email": email}
        for _ in range(make.rng.randint(1, 3)):
            booking, status = make.id("booking", "V-", 4), make.rng.choice(("booked", "booked", "booked", "cancelled"))
            record = {"booking_id": booking, "visitor_id": visitor, "day": make.rng.choice(fortnight), "status": status}
            bookings[booking] = record | {"total": make.rng.choice((24.0, 36.5, 52.0, 240.0))}
    room = {day: {"day": day, "room": make.chance(0.6)} for day in fortnight}
    return {"visitors": visitors, "bookings": bookings, "days": room}


# 3. Who calls, and what they are asked for

VISITOR = Identity(
    tool="find_visitor",
    table="visitors",
    key="visitor_id",
    facts=(Fact("email", pattern(r"[a-z.]+@[a-z]+\.com"), tells="My e-mail address is {email}.", wrong=True),),
    ask="May I have your e-mail address?",
    say=("My e-mail address is {email}.", "It's {email}."),
)
THE_BOOKING = Slot(
    "booking",
    pattern(r"V-\d{4}"),
    ask="Which booking is it?",
    phrase="booking {}",
    draw=own("bookings", "booking_id"),
)
THE_DAY = Slot(
    "day",
    "date",
    ask="To which day?",
    say=("To {}.", "{}, please."),
    change=("Actually, {} would be better.", "Wait, make it {}."),
    draw=days(1, 14),
)

# 4. What they want, and how the policy serves it


def look_up(it: Plan) -> None:
    """The booking that a request is about."""
    it.b = it.look("get_booking", booking_id=it.booking)
    it.refuse_unless(it.b.visitor_id == it.user.visitor_id, "booking {booking} is not yours", rule=2)
    it.refuse_if(it.b.status == "cancelled", "booking {booking} is cancelled", rule=5)


@intent(says=("cancel {booking}", "call off {booking}", "cancel a booking"), slots=[THE_BOOKING])
def cancel(it: Plan) -> None:
    look_up(it)
    worth = "The visitor wants to cancel booking {booking}, which is worth more than $200."
    it.transfer_if(it.b.total > 200, worth, rule=5)
    propose, done = "cancel booking {booking} for {b.day|date}", "Booking {booking} is cancelled."
    it.write("cancel_booking", booking_id=it.booking, propose=propose, done=done)


@intent(says=("move {booking} to {day}", "move {booking}", "move a booking"), slots=[THE_BOOKING, THE_DAY])
def move(it: Plan) -> None:
    look_up(it)
    it.free = it.look("get_free_days")
    it.unavailable_if(it.day not in it.free.days, THE_DAY, it.free.days[:3], rule=6)
    propose, done = "move booking {booking} to {day}", "You are expected on {day}."
    it.write("move_booking", booking_id=it.booking, day=it.day, propose=propose, done=done)


@intent(says=("know what {booking} costs", "know what a booking costs"), slots=[THE_BOOKING])
def price(it: Plan) -> None:
    look_up(it)
    it.answer("Booking {booking} costs {b.total|money}.", tell="{b.total|plain}")


ZOO = environment(
    Service(
        domain=ZooDesk,
        about="The zoo: visits are booked, moved and cancelled.",
        today=TODAY,
        identity=VISITOR,
        intents=(cancel, move, price),
        tables=make_tables,
        outside=("a job here", "something that I have lost"),
        open_tools=("get_free_days",),
        rules={  # those of policy.md that stand in no plan: what keeps them
            1: "identity",
            3: "the reward: what was not looked up is wrong",
            4: "consent",
            7: "the refusals and hand-overs above",
        },
    )
)
