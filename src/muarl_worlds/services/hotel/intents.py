"""What guests of the hotel group want, how they say it, and how each request is served by the policy."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.auditing import Obligation
from muarl.domains.kit.declaration import (
    Fact,
    Identity,
    RecordDescription,
    Slot,
    days,
    intent,
    names,
    one_of,
    own,
    pattern,
    rows,
    words,
)
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service
from muarl_worlds.services.hotel import catalogue as cat
from muarl_worlds.services.hotel.tools import TODAY, HotelGroup
from muarl_worlds.services.hotel.world import make_tables

# fmt: off
# Wordings stand side by side, and rules below each other.

HOTELS = names(cat.VOCABULARY["hotels"])
ROOMS = words(
    {"standard": ["standard room", "standard"],
     "deluxe": ["deluxe room", "deluxe"],
     "family": ["family room"], "suite": ["suite"]},
)
WISHES = words(
    {"a cot": ["a cot", "a cot for the baby"],
     "a quiet room": ["a quiet room", "a room away from the street"],
     "a high floor": ["a high floor", "a room high up"],
     "a parking space": ["a parking space", "a space for our car"],
     "feather-free pillows": ["feather-free pillows", "pillows without feathers"]},
)

BREAKFAST_PRICE = Obligation(
    "breakfast-price", frozenset({"add_breakfast"}),
    "Before breakfast is added, the guest must be told what it costs.",
    (r"\$\s?\d|\d[\d,.]*\s?(?:dollars|usd)\b|\bfree\b|no (?:extra )?charge",),
    when="before",
)
IDENTITY = Identity(
    tool="identify_guest", table="guests", key="guest_id",
    facts=(Fact("name", "person", tells="My name is {name}."),
           Fact("email", pattern(r"[a-z0-9.]+@[a-z]+\.com"), tells="My e-mail address is {email}.", wrong=True,
                noun=["e-mail", "email"])),
    ask=("May I have your full name and the e-mail address of your profile?",
         "Could you give me your name and your e-mail address, please?",
         "To find you I need your full name and e-mail address, please.",
         "Under which name and e-mail address did you book?"),
    retry=("I could not find you by this name and e-mail address. Could you check the spelling, please?",
           "There is no profile with that name and e-mail address. Would you look again for me?"),
    say=("I'm {name}, {email}.", "My name is {name} and my address is {email}.", "{name}, {email}.",
         "It's {name}; I use {email}.", "This is {name}, you have me under {email}."),
)

BOOKING = Slot(
    "booking", pattern(r"B-\d{5}"),
    ask=["Which booking is it?", "What is the booking number?", "Which of your bookings do you mean?"],
    phrase="booking {}",
    say=["It's booking {}.", "Booking {}.", "The number is {}."],
    draw=own("bookings", "booking_id", mark="rate"),
    described=RecordDescription(
        kind=HOTELS, match="hotel", id="booking_id", look="list_bookings", records="bookings",
        given={"guest_id": "guest_id"},
        phrase="my stay at {}",
        say=["I don't have the number. It's the stay at {}.", "No idea, it is the one at {}.", "The booking at {}."],
        cue="(?:stay|booking|room|one|it's|it is|that|booked) at(?: the)?",
    ),
    noun=["booking", "reservation"],
)
ARRIVAL = Slot(
    "arrival", "date",
    ask=["On which day would you like to arrive?", "What day of arrival would you like?", "From which day on?"],
    say=["On {}.", "{}, please.", "We'd arrive on {}."],
    change=["Actually, make it {}.", "Wait, {} would be better.", "Sorry, we can only come on {}."],
    draw=days(3, 40), noun=["arrival", "arrive", "day", "date"],
)
NIGHTS = Slot(
    "nights", "number",
    ask=["How many nights?", "For how many nights?"],
    phrase="{} nights",
    say=["{} nights.", "For {} nights, please.", "{}."],
    change=["Actually, {} nights.", "Let's say {} nights instead."],
    draw=one_of(2, 2, 3, 3, 4, 5, 16), after="nights", noun="night",
)
ROOM = Slot(
    "room", ROOMS,
    ask=["Which room would you like: standard, deluxe, family or suite?",
         "What sort of room would you like?",
         "Which room should it be?"],
    phrase="a {}",
    say=["A {}, please.", "The {}.", "{}."],
    change=["Actually, I'd prefer a {}.", "Hmm, a {} would be better.", "Wait, we would rather have a {}."],
    asked=r"(?:which|what)[^.?]*\broom",
)
PEOPLE = Slot(
    "people", "number",
    ask=["How many people will stay in the room?", "For how many people is it?"],
    phrase="{} people",
    say=["{} people.", "There will be {} of us.", "{}."],
    change="Actually, there will be {} of us.", draw=one_of(2, 2, 3, 4), after="people|of us",
    noun=["people", "guests", "persons"],
)
RATE = Slot(
    "rate",
    words({"flexible": ["flexible rate", "flexible"], "saver": ["saver rate", "saver"]}),
    ask=["Flexible or saver rate?", "Which rate would you like, flexible or saver?"],
    phrase="the {}",
    say=["The {}.", "{}, please."],
    change=["Let me take the {} after all.", "Actually, the {}."],
)
HOTEL = Slot(
    "hotel", HOTELS,
    ask=["Which hotel would you like?", "In which of our hotels?"],
    say=["{}.", "{}, please.", "At {}."],
    draw=rows("hotels", "name"),
)
UNTIL = Slot(
    "until", "time",
    ask=["Until what time would you like to stay?", "How long would you like to keep the room?"],
    say=["Until {}.", "{}.", "{} would be nice."],
    change=["Actually, {} would be better.", "Could we say {}?"],
    draw=one_of("12:30", "13:00", "14:00", "15:00", "16:00", "17:00"),
    noun=["time", "keep the room", "check-out"],
)
WISH = Slot(
    "wish", WISHES,
    ask=["What should I note for the hotel?", "Which wish should I note?"],
    say=["{}, please.", "We need {}.", "Put down {}."],
    change=["Actually, {} matters more to us.", "Put down {} instead."],
    noun=["wish", "request", "note"],
)


def own_booking(it: Plan) -> None:
    """The guest's booking."""
    it.b = it.look("get_booking", booking_id=it.booking)
    it.refuse_unless(it.b.guest_id == it.user.guest_id, "booking {booking} is not yours")


def own_flexible_booking(it: Plan, done: str) -> None:
    """A booking of the guest's that may still be changed or cancelled, as ``done`` says."""
    own_booking(it)
    only = f"only confirmed bookings can be {done}"
    it.refuse_unless(it.b.status == "confirmed", "booking {booking} is {b.status}, and " + only)
    never = f"which cannot be {done}"
    it.refuse_if(it.b.rate == "saver", "booking {booking} was made at the saver rate, " + never)


@intent(
    says=["cancel {booking}", "call off {booking}", "cancel {booking}, since we cannot come", "cancel a booking"],
    slots=[BOOKING], share=1.4,
    because=["The children are ill.", "Something has come up at the office.",
             "We had been looking forward to it so much."],
)
def cancel_booking(it: Plan) -> None:
    own_flexible_booking(it, "cancelled")
    it.refuse_if(
        it.b.check_in < "2026-03-16",
        ("booking {booking} begins on {b.check_in|date}, and bookings can be cancelled until two days before the "
         "arrival"),
    )
    it.transfer_if(it.b.total > 1500, "The guest wants to cancel booking {booking}, which is worth more than $1,500.")
    it.write(
        "cancel_booking", booking_id=it.booking,
        propose=["cancel booking {booking} at {b.hotel} from {b.check_in|date}, free of charge",
                 "cancel {booking}, your {b.nights} nights at {b.hotel}; nothing will be charged"],
        done=["Booking {booking} is cancelled, nothing is charged.",
              "I have cancelled booking {booking} at {b.hotel}."],
    )


@intent(
    says=["move {booking} to {arrival} for {nights}", "change the dates of {booking} to {arrival} for {nights}",
          "postpone {booking} to {arrival}", "move {booking} to other days", "change the dates of {booking}",
          "change the dates of a booking"],
    slots=[BOOKING, ARRIVAL, NIGHTS],
    share=1.6,
    because=["Our train does not run on that day.", "My boss would not give me the days off.",
             "The wedding has been put off."],
)
def change_dates(it: Plan) -> None:
    own_flexible_booking(it, "changed")
    it.refuse_if(
        it.b.check_in < "2026-03-16",
        "booking {booking} begins on {b.check_in|date}, and bookings can be changed until two days before the arrival",
    )
    it.refuse_if(it.nights > 14, "nobody can stay for more than 14 nights")
    it.offer = it.look("check_rooms", hotel_id=it.b.hotel_id, check_in=it.arrival, nights=it.nights)
    it.room = it.pick(it.offer.rooms, room_type=it.b.room_type) or it.refuse("the hotel has no such rooms any more")
    it.unavailable_if(not it.room.free, ARRIVAL, it.room.next_free)
    it.write(
        "change_dates", booking_id=it.booking, check_in=it.arrival, nights=it.nights,
        propose=[("change booking {booking} at {b.hotel} to {nights} nights from {arrival} at "
                  "{room.price_per_night|money} a night"),
                 ("change the dates of {booking}: arrival {arrival}, {nights} nights, {room.price_per_night|money} "
                  "each")],
        done=["Booking {booking} now begins on {arrival}; the new total is {result.total|money}.",
              "Done, you are expected at {b.hotel} on {arrival}."],
    )


@intent(
    says=["change the room of {booking} to {room}", "get {room} for {booking} instead", "switch {booking} to {room}",
          "get another room for {booking}", "change the room of a booking"],
    slots=[BOOKING, ROOM], share=1.3,
    because=["My mother will come along after all.", "We would like some more space.", "It is our anniversary."],
    heard=(r"^(?!.*check.?out).*(?:\bupgrade|\banother room\b|\broom (?:of|in) (?:booking|my|a)|\bchange the room"
           r"|\b(?:change|switch) (?:booking|my stay)[^.]* to (?:a|the)\b|\bget a [^.]*\bfor (?:booking|my stay))"),
)
def change_room(it: Plan) -> None:
    own_flexible_booking(it, "changed")
    it.refuse_if(it.b.room_type == it.room, "booking {booking} already has a {room}")
    it.offer = it.look("check_rooms", hotel_id=it.b.hotel_id, check_in=it.b.check_in, nights=it.b.nights)
    it.new = it.pick(it.offer.rooms, lambda r: r.sleeps >= it.b.people, room_type=it.room, free=True) or it.unavailable(
        ROOM,
        [r.room_type for r in it.offer.rooms if r.free and r.sleeps >= it.b.people and r.room_type != it.b.room_type],
    )
    it.write(
        "change_room", booking_id=it.booking, room_type=it.room,
        propose=["change booking {booking} to a {room} at {new.price_per_night|money} a night",
                 "change the room of {booking} at {b.hotel} to a {room} ({new.price_per_night|money} a night)"],
        done=["Booking {booking} now has a {room}; the total is {result.total|money}.",
              "Done, you will have a {room} at {b.hotel}."],
    )


@intent(
    says=["add breakfast to {booking}", "have breakfast included in {booking}", "get breakfast with {booking}",
          "add breakfast to a booking"],
    slots=[BOOKING],
    because=["The reviews of it are wonderful.", "We have to leave early every day."],
    heard=r"\bbreakfast",
)
def add_breakfast(it: Plan) -> None:
    own_booking(it)
    it.refuse_unless(it.b.status in ("confirmed", "checked in"), "booking {booking} is {b.status}")
    it.refuse_if(it.b.breakfast, "booking {booking} includes breakfast already")
    it.found = it.look("find_hotels", name=it.b.hotel)
    it.place = it.pick(it.found.hotels, hotel_id=it.b.hotel_id) or it.refuse("the hotel serves no breakfast")
    it.write(
        "add_breakfast", booking_id=it.booking,
        propose=["add breakfast to booking {booking} at {place.breakfast_price|money} for each person and morning",
                 "add breakfast for {b.people} to {booking}, {place.breakfast_price|money} each a day"],
        done=["Breakfast is added; the total of booking {booking} is now {result.total|money}.",
              "Booking {booking} now includes breakfast."],
    )


@intent(
    says=["have a late check-out at {until} for {booking}", "keep the room until {until} on the last day of {booking}",
          "get a late check-out for {booking}", "leave later on the last day of {booking}", "have a late check-out"],
    slots=[BOOKING, UNTIL], share=1.2,
    because=["Our flight only goes in the evening.", "I would like to sleep in for once."],
)
def late_checkout(it: Plan) -> None:
    own_booking(it)
    it.refuse_unless(it.b.status in ("confirmed", "checked in"), "booking {booking} is {b.status}")
    it.refuse_if(it.user.tier == "basic", "late check-out is for silver and gold members")
    it.refuse_if(it.user.tier == "silver" and it.until > "14:00", "silver members can stay until 14:00 at the latest")
    it.refuse_if(it.until > "16:00", "gold members can stay until 16:00 at the latest")
    it.write(
        "set_late_checkout", booking_id=it.booking, until=it.until,
        propose=["set a late check-out at {until} for booking {booking}",
                 "set the check-out of {booking} at {b.hotel} to {until}, free of charge"],
        done=["You can keep the room of booking {booking} until {until}.",
              "Late check-out at {until} is noted for {booking}."],
    )


@intent(
    says=["ask the hotel for {wish}, for {booking}", "add a special request to {booking}: {wish}",
          "add a special request to {booking}", "leave a special request"],
    slots=[BOOKING, WISH],
    because=["It would make things much easier.", "Last time that worked very well."],
)
def special_request(it: Plan) -> None:
    own_booking(it)
    it.refuse_unless(it.b.status in ("confirmed", "checked in"), "booking {booking} is {b.status}")
    it.write(
        "set_special_request", booking_id=it.booking, request=it.wish,
        propose=["set the request '{wish}' for booking {booking}", "set a note on {booking} for {b.hotel}: {wish}"],
        done=["The hotel knows: {wish} for booking {booking}.", "Your wish is noted for {booking}."],
    )


@intent(
    says=["book {room} at {hotel} from {arrival} for {nights}, for {people}, at {rate}",
          "book {room} at {hotel} from {arrival}, staying for {nights}",
          "book a room at {hotel} from {arrival}",
          "reserve a room at {hotel}",
          "book a stay"],
    slots=[HOTEL, ARRIVAL, NIGHTS, ROOM, PEOPLE, RATE],
    share=1.7,
    because=["A friend told us about it.", "We have never been there.", "It is a surprise for my husband."],
)
def book_room(it: Plan) -> None:
    it.found = it.look("find_hotels", name=it.hotel)
    it.place = it.pick(it.found.hotels, name=it.hotel) or it.unavailable(HOTEL, [r.name for r in it.found.hotels])
    it.refuse_if(it.nights > 14, "nobody can stay for more than 14 nights")
    it.offer = it.look("check_rooms", hotel_id=it.place.hotel_id, check_in=it.arrival, nights=it.nights)
    it.new = it.pick(it.offer.rooms, lambda r: r.sleeps >= it.people, room_type=it.room, free=True) or it.unavailable(
        ROOM, [r.room_type for r in it.offer.rooms if r.free and r.sleeps >= it.people]
    )
    it.write(
        "book_room", guest_id=it.user.guest_id, hotel_id=it.place.hotel_id, room_type=it.room, check_in=it.arrival,
        nights=it.nights, people=it.people, rate=it.rate,
        propose=[("book a {room} at {hotel} for {people} people, {nights} nights from {arrival}, at the {rate} "
                  "(full price {new.price_per_night|money} a night)"),
                 "book {hotel}: {room}, arrival {arrival}, {nights} nights, {people} people, {rate}"],
        done=["Your booking is {result.booking_id}; the total is {result.total|money}.",
              "Booked: {result.booking_id} at {hotel} for {result.total|money}."],
    )


@intent(
    says=["know how much {booking} comes to in total", "find out the total of {booking}", "check what {booking} costs",
          "know the total of one of my bookings"],
    slots=[BOOKING], share=0.8,
    because=["I have to tell my company.", "We are making a plan for our budget."],
)
def ask_total(it: Plan) -> None:
    own_booking(it)
    it.answer(
        ["Booking {booking} at {b.hotel} comes to {b.total|money}.",
         "The total of {booking} is {b.total|money} for {b.nights} nights."],
        tell="{b.total|plain}",
    )


@intent(
    says=["know what parking at {hotel} costs", "find out the parking fee of {hotel}",
          "park our car at {hotel}, and know the price of that", "know what parking costs at one of your hotels"],
    slots=[HOTEL], share=0.6,
    because=["We will come by car.", "The streets around there seem to be narrow."],
    heard=r"\bparking (?:at|costs?|fee)|\bpark (?:my|our|the) car",
)
def ask_parking(it: Plan) -> None:
    it.found = it.look("find_hotels", name=it.hotel)
    it.place = it.pick(it.found.hotels, name=it.hotel) or it.unavailable(HOTEL, [r.name for r in it.found.hotels])
    it.answer(
        ["Parking at {hotel} costs {place.parking_fee|money} a day.",
         "{hotel} charges {place.parking_fee|money} for a day's parking."],
        tell="{place.parking_fee|plain}",
    )


SERVICE = Service(
    domain=HotelGroup, about="the reservations desk of a hotel group", today=TODAY, identity=IDENTITY,
    intents=(cancel_booking, change_dates, change_room, add_breakfast, late_checkout, special_request, book_room,
             ask_total, ask_parking),
    tables=make_tables,
    outside=("a wedding party of sixty people", "a scarf that I left in the room", "noise during my last stay",
             "a bill that I do not agree with", "a job at the reception",
             "points that are missing from my loyalty account"),
    open_tools=("find_hotels", "check_rooms"),
    tiny_tools=("identify_guest", "list_bookings", "get_booking", "find_hotels", "check_rooms", "cancel_booking",
                "change_room", "add_breakfast", "set_late_checkout", "transfer_to_human_agents"),
    policy_compact=Path("policy_compact.md"),
    texts=("late_checkout", "request"),
    obligations=(BREAKFAST_PRICE,),
)
