"""What users want done with messages and tickets (MessageAPI, TicketAPI)."""

from __future__ import annotations

from typing import Any

from muarl.domains.bfcl import pools
from muarl.domains.bfcl.recipes import NOTHING, Draw, Memory, Missing, Plan, Recipe, Slots, quoted
from muarl.domains.bfcl.recipes_files import FILES, file_in, reads, text_of
from muarl.domains.bfcl.scenes import limited

MESSAGES, TICKETS = "MessageAPI", "TicketAPI"


def new_text(draw: Draw) -> str:
    """Something to be sent, posted or written down."""
    if draw.size.name == "tiny":
        return str(draw.pick(limited(pools.TEXTS, draw.size)))
    return str(draw.pick(pools.TEXTS)) if draw.rng.random() < 0.3 else pools.sentence(draw.rng)


def file_text(draw: Draw) -> Slots:
    """A file whose text can be sent or posted."""
    slots, folder = file_in(draw)
    quoted(text_of(folder, slots["file"]))
    return slots


# messages


def _friend(draw: Draw) -> str:
    return str(draw.pick(list(draw.state[MESSAGES]["user_map"])[1:]))  # the first is the user


def _draw_send(draw: Draw) -> Slots:
    return {"name": _friend(draw), "text": new_text(draw)}


def _send(slots: Slots, memory: Memory) -> Plan:
    found = yield "get_user_id", {"user": slots["name"]}
    yield "send_message", {"receiver_id": found["user_id"], "message": slots["text"]}
    return NOTHING


def _draw_unsend(draw: Draw) -> Slots:
    state = draw.state[MESSAGES]
    told = {receiver for message in state["inbox"] for receiver in message}
    names = [n for n, user in state["user_map"].items() if user in told and user != state["current_user"]]
    return {"name": draw.pick(names)}


def _unsend(slots: Slots, memory: Memory) -> Plan:
    found = yield "get_user_id", {"user": slots["name"]}
    yield "delete_message", {"receiver_id": found["user_id"]}
    return NOTHING


def _draw_contact(draw: Draw) -> Slots:
    known = draw.state[MESSAGES]["user_map"]
    return {"name": draw.pick([n for n in limited(pools.PEOPLE, draw.size) if n not in known]), "text": new_text(draw)}


def _contact(slots: Slots, memory: Memory) -> Plan:
    added = yield "add_contact", {"user_name": slots["name"]}
    yield "send_message", {"receiver_id": added["user_id"], "message": slots["text"]}
    return NOTHING


def _draw_search(draw: Draw) -> Slots:
    texts = [text for message in draw.state[MESSAGES]["inbox"] for text in message.values()]
    return {"word": draw.pick([s for s in pools.SUBJECTS if sum(s in text.lower() for text in texts) == 1])}


def _search(slots: Slots, memory: Memory) -> Plan:
    seen = yield "search_messages", {"keyword": slots["word"]}
    receiver = str(seen["results"][0]["receiver_id"])
    return f"It went to {receiver}.", receiver


def _draw_message_file(draw: Draw) -> Slots:
    return {**file_text(draw), "name": _friend(draw)}


def _message_file(slots: Slots, memory: Memory) -> Plan:
    text = yield from reads(slots, memory)
    found = yield "get_user_id", {"user": slots["name"]}
    yield "send_message", {"receiver_id": found["user_id"], "message": text}
    return NOTHING


def _draw_message_login(draw: Draw) -> Slots:
    return {"user_id": next(iter(draw.state[MESSAGES]["user_map"].values()))}


def _message_login(slots: Slots, memory: Memory) -> Plan:
    yield "message_login", {"user_id": slots["user_id"]}
    return NOTHING


_NO_TEXT = Missing(
    ("send {name} a message", "text {name} for me", "send a message to {name}"),
    "What should the message say?",
    ('The message is "{text}".', 'Write "{text}".', 'It should say "{text}".'),
    ("hello", "how are you"),
)
_NO_NAME = Missing(
    ('send the message "{text}" for me', 'send somebody the message "{text}"'),
    "Who should get it?",
    ("It is for {name}.", "Send it to {name}."),
    ("Anouk", "Bram"),
)

# tickets


def _draw_ticket(draw: Draw) -> Slots:
    titles = [t for t in limited(pools.TITLES, draw.size) if not _tickets(draw, t)]
    return {"title": draw.pick(titles), "level": draw.pick("12345")}


def _draw_full_ticket(draw: Draw) -> Slots:
    return {**_draw_ticket(draw), "text": new_text(draw)}


def _create(slots: Slots, memory: Memory) -> Plan:
    told = {"description": slots["text"]} if "text" in slots else {}
    made = yield "create_ticket", {"title": slots["title"], **told, "priority": int(slots["level"])}
    memory["ticket"] = made["id"]
    return NOTHING


def _create_from_file(slots: Slots, memory: Memory) -> Plan:
    text = yield from reads(slots, memory)
    made = yield "create_ticket", {"title": slots["title"], "description": text}
    memory["ticket"] = made["id"]
    return NOTHING


def _tickets(draw: Draw, title: str | None = None, *, mine: bool = False) -> list[dict[str, Any]]:
    state = draw.state[TICKETS]
    found = [t for t in state["ticket_queue"] if t["status"] == "Open" and title in (None, t["title"])]
    return [t for t in found if not mine or t["created_by"] == state["current_user"]]


def _draw_ticket_id(draw: Draw) -> Slots:
    return {"ticket": str(draw.pick(_tickets(draw))["id"])}


def _close(slots: Slots, memory: Memory) -> Plan:
    yield "close_ticket", {"ticket_id": int(slots["ticket"])}
    return NOTHING


def _draw_resolve(draw: Draw) -> Slots:
    return {**_draw_ticket_id(draw), "resolution": draw.pick(limited(pools.RESOLUTIONS, draw.size))}


def _resolve(slots: Slots, memory: Memory) -> Plan:
    yield "resolve_ticket", {"ticket_id": int(slots["ticket"]), "resolution": slots["resolution"]}
    return NOTHING


def _draw_last_ticket(draw: Draw) -> Slots:
    draw.pick([t for t in _tickets(draw) if t["id"] == draw.memory.get("ticket")])
    return {"resolution": draw.pick(pools.RESOLUTIONS)}


def _resolve_last(slots: Slots, memory: Memory) -> Plan:
    yield "resolve_ticket", {"ticket_id": memory["ticket"], "resolution": slots["resolution"]}
    return NOTHING


def _draw_title(draw: Draw) -> Slots:
    return {"title": draw.pick(_tickets(draw, mine=True))["title"]}


def _close_by_title(slots: Slots, memory: Memory) -> Plan:
    mine = yield "get_user_tickets", {"status": "Open"}
    yield "close_ticket", {"ticket_id": next(t["id"] for t in mine if t["title"] == slots["title"])}
    return NOTHING


def _draw_level(draw: Draw) -> Slots:
    ticket = draw.pick(_tickets(draw))
    return {"ticket": str(ticket["id"]), "level": draw.pick([n for n in "12345" if int(n) != ticket["priority"]])}


def _change_level(slots: Slots, memory: Memory) -> Plan:
    yield "edit_ticket", {"ticket_id": int(slots["ticket"]), "updates": {"priority": int(slots["level"])}}
    return NOTHING


def _draw_described(draw: Draw) -> Slots:
    return {"ticket": str(draw.pick([t for t in _tickets(draw) if len(t["description"]) > 5])["id"])}


def _describe(slots: Slots, memory: Memory) -> Plan:
    ticket = yield "get_ticket", {"ticket_id": int(slots["ticket"])}
    return f'Ticket {slots["ticket"]} says: "{ticket["description"]}"', str(ticket["description"])


def _draw_ticket_login(draw: Draw) -> Slots:
    return {
        "handle": draw.state[TICKETS]["ticket_queue"][0]["created_by"], "password": draw.pick(pools.PASSWORDS)
    }  # fmt: skip


def _ticket_login(slots: Slots, memory: Memory) -> Plan:
    yield "ticket_login", {"username": slots["handle"], "password": slots["password"]}
    return NOTHING


_NO_TITLE = Missing(
    ("open a ticket with priority {level}", "create a priority {level} ticket"),
    "What is the ticket about?",
    ('The title is "{title}".', 'Call it "{title}".'),
    ("New ticket", "Problem"),
)
_NO_RESOLUTION = Missing(
    ("resolve ticket {ticket}", "mark ticket {ticket} as resolved"),
    "How was it resolved?",
    ('The resolution is "{resolution}".', 'Put down "{resolution}".'),
    ("done", "solved"),
)

RECIPES = (
    Recipe(
        "message_send", (MESSAGES,), _draw_send, _send,
        (
            'send {name} the message "{text}"', 'message {name} "{text}"', 'let {name} know: "{text}"',
            'send a message to {name} that says "{text}"',
        ),
        needs="message_login", open=True, tiny=True, weight=1.5, missing={"text": _NO_TEXT, "name": _NO_NAME},
    ),
    Recipe(
        "message_delete", (MESSAGES,), _draw_unsend, _unsend,
        (
            "delete my last message to {name}", "take back the last message to {name}",
            "remove the latest message that {name} got",
        ),
        needs="message_login", tiny=True,
    ),
    Recipe(
        "message_contact", (MESSAGES,), _draw_contact, _contact,
        (
            'add {name} as a new contact and send them the message "{text}"',
            'make {name}, who is new, a contact and send the message "{text}" there',
        ),
        needs="message_login", open=True,
    ),
    Recipe(
        "message_search", (MESSAGES,), _draw_search, _search,
        (
            "tell me which user id was sent a message about the {word}",
            "find out the user id that got the message about the {word}",
        ),
        needs="message_login",
    ),
    Recipe(
        "message_file", (FILES, MESSAGES), _draw_message_file, _message_file,
        (
            "send {name} what {file} in {folder} says, word for word",
            "read {file} in {folder} and send its exact text to {name} as a message",
        ),
        needs="message_login", weight=2.0,
    ),
    Recipe(
        "ticket_create", (TICKETS,), _draw_ticket, _create,
        (
            'open a ticket "{title}" with priority {level}', 'create a priority {level} ticket titled "{title}"',
            'file a ticket called "{title}", priority {level}',
        ),
        needs="ticket_login", open=True, tiny=True, missing={"title": _NO_TITLE},
    ),
    Recipe(
        "ticket_report", (TICKETS,), _draw_full_ticket, _create,
        (
            'open a ticket "{title}" with the description "{text}" and priority {level}',
            'file a priority {level} ticket titled "{title}" and described as "{text}"',
        ),
        needs="ticket_login", open=True,
    ),
    Recipe(
        "ticket_file", (FILES, TICKETS), lambda draw: {**file_text(draw), "title": _draw_ticket(draw)["title"]},
        _create_from_file,
        (
            'open a ticket "{title}" whose description is exactly what {file} in {folder} says',
            'read {file} in {folder} and file a ticket titled "{title}" with that text as the description',
        ),
        needs="ticket_login", open=True, weight=2.0,
    ),
    Recipe(
        "ticket_close", (TICKETS,), _draw_ticket_id, _close,
        ("close ticket {ticket}", "set ticket {ticket} to closed", "see to it that ticket {ticket} is closed"),
        tiny=True,
    ),
    Recipe(
        "ticket_resolve", (TICKETS,), _draw_resolve, _resolve,
        (
            'resolve ticket {ticket} with the note "{resolution}"',
            'mark ticket {ticket} as resolved, the resolution is "{resolution}"',
        ),
        open=True, tiny=True, missing={"resolution": _NO_RESOLUTION},
    ),
    Recipe(
        "ticket_resolve_last", (TICKETS,), _draw_last_ticket, _resolve_last,
        (
            'resolve the ticket you just opened with the note "{resolution}"',
            'mark that new ticket as resolved, the resolution being "{resolution}"',
        ),
        narrow=True, weight=2.0,
    ),
    Recipe(
        "ticket_close_mine", (TICKETS,), _draw_title, _close_by_title,
        ('close my open ticket "{title}"', 'look up my ticket titled "{title}" and close it'),
        needs="ticket_login", narrow=True,
    ),
    Recipe(
        "ticket_level", (TICKETS,), _draw_level, _change_level,
        ("change the priority of ticket {ticket} to {level}", "give ticket {ticket} priority {level}"),
    ),
    Recipe(
        "ticket_question", (TICKETS,), _draw_described, _describe,
        ("tell me the description of ticket {ticket}", "read me what ticket {ticket} says, its description"),
    ),
)  # fmt: skip

LOGINS = (
    Recipe(
        "message_login", (MESSAGES,), _draw_message_login, _message_login,
        ("log me in to messages as {user_id}", "sign in to my messages with the user id {user_id}"),
    ),
    Recipe(
        "ticket_login", (TICKETS,), _draw_ticket_login, _ticket_login,
        (
            'log in to the ticket system as {handle} with the password "{password}"',
            'sign me in for tickets as {handle}, password "{password}"',
        ),
    ),
)  # fmt: skip
