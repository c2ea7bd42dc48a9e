"""What users want done with messages and tickets (MessageAPI, TicketAPI)."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl_worlds.bfcl import pools
from muarl_worlds.bfcl.recipes import Scene, asked, drawn, recipe, slot
from muarl_worlds.bfcl.recipes_files import FILES, FOLDER, QUOTABLE, QUOTED, WORD, reads

MESSAGES, TICKETS = "MessageAPI", "TicketAPI"


def _new_text(scene: Scene) -> str:
    """Something to be sent, posted or written down."""
    if scene.size.name == "tiny":
        return str(scene.pick(scene.few(pools.TEXTS)))
    return str(scene.pick(pools.TEXTS)) if scene.rng.random() < 0.3 else pools.sentence(scene.rng)


def _told(d: Any) -> list[str]:
    """Those whom the user has written to."""
    state = d.tables[MESSAGES]
    told = {receiver for message in state.inbox for receiver in message}
    users = state.user_map
    return [name for name in users if users[name] in told and users[name] != state.current_user]


def _searched(d: Any) -> list[str]:
    texts = [message[receiver].lower() for message in d.tables[MESSAGES].inbox for receiver in message]
    return [s for s in pools.SUBJECTS if sum(s in text for text in texts) == 1]


def _open(d: Any) -> list[Record]:
    return [ticket for ticket in d.tables[TICKETS].ticket_queue if ticket.status == "Open"]


def _mine(d: Any) -> list[Record]:
    return [ticket for ticket in _open(d) if ticket.created_by == d.tables[TICKETS].current_user]


HANDLE = slot("handle", r"\w+", lambda d: pools.HANDLES)
PASSWORD = slot("password", QUOTED, lambda d: pools.PASSWORDS)
TEXT = slot("text", QUOTED, _new_text)
NAME = asked(
    slot("name", r"[A-Z]\w+", lambda d: list(d.tables[MESSAGES].user_map)[1:]),  # the first is the user
    "Who should get it?", "It is for {}.", "Send it to {}.", guess=("Anouk", "Bram"),
)  # fmt: skip
MESSAGE = asked(
    TEXT, "What should the message say?", 'The message is "{}".', 'Write "{}".', 'It should say "{}".',
    guess=("hello", "how are you"),
)  # fmt: skip
TICKET = slot("ticket", r"\d+", _open, "id")
LEVEL = slot("level", "[1-5]", lambda d: list("12345"))
TITLE = asked(
    slot("title", QUOTED, lambda d: [t for t in d.few(pools.TITLES) if t not in [one.title for one in _open(d)]]),
    "What is the ticket about?", 'The title is "{}".', 'Call it "{}".', guess=("New ticket", "Problem"),
)  # fmt: skip
RESOLUTION = asked(
    slot("resolution", QUOTED, lambda d: d.few(pools.RESOLUTIONS)), "How was it resolved?", 'The resolution is "{}".',
    'Put down "{}".', guess=("done", "solved"),
)  # fmt: skip


def user_id(it: Plan) -> str:
    """Look up the user id of the person that a request names."""
    return str(it.look("get_user_id", user=it.name).user_id)


# messages


@recipe(
    MESSAGES, 'send {name} the message "{text}"', 'message {name} "{text}"', 'let {name} know: "{text}"',
    'send a message to {name} that says "{text}"', "send {name} a message", "text {name} for me",
    "send a message to {name}", 'send the message "{text}" for me', 'send somebody the message "{text}"',
    slots=(NAME, MESSAGE), needs="message_login", open=True, tiny=True, weight=1.5,
)  # fmt: skip
def message_send(it: Plan) -> None:
    it.do("send_message", receiver_id=user_id(it), message=it.text)


@recipe(
    MESSAGES, "delete my last message to {name}", "take back the last message to {name}",
    "remove the latest message that {name} got", slots=(drawn(NAME, _told),), needs="message_login", tiny=True,
)  # fmt: skip
def message_delete(it: Plan) -> None:
    it.do("delete_message", receiver_id=user_id(it))


@recipe(
    MESSAGES, 'add {name} as a new contact and send them the message "{text}"',
    'make {name}, who is new, a contact and send the message "{text}" there',
    slots=(drawn(NAME, lambda d: [n for n in d.few(pools.PEOPLE) if n not in d.tables[MESSAGES].user_map]), TEXT),
    needs="message_login", open=True,
)  # fmt: skip
def message_contact(it: Plan) -> None:
    added = it.do("add_contact", user_name=it.name)
    it.do("send_message", receiver_id=added.user_id, message=it.text)


@recipe(
    MESSAGES, "tell me which user id was sent a message about the {word}",
    "find out the user id that got the message about the {word}", slots=(drawn(WORD, _searched),),
    needs="message_login",
)  # fmt: skip
def message_search(it: Plan) -> None:
    it.receiver = it.look("search_messages", keyword=it.word).results[0].receiver_id
    it.answer("It went to {receiver}.", tell="{receiver}")


@recipe(
    (FILES, MESSAGES), "send {name} what {file} in {folder} says, word for word",
    "read {file} in {folder} and send its exact text to {name} as a message", slots=(QUOTABLE, FOLDER, NAME),
    needs="message_login", weight=2.0,
)  # fmt: skip
def message_file(it: Plan) -> None:
    text = reads(it)
    it.do("send_message", receiver_id=user_id(it), message=text)


@recipe(
    MESSAGES, "log me in to messages as {user_id}", "sign in to my messages with the user id {user_id}",
    slots=(slot("user_id", r"USR\d+", lambda d: d.tables[MESSAGES].user_map[next(iter(d.tables[MESSAGES].user_map))]),),
)  # fmt: skip
def message_login(it: Plan) -> None:
    it.do("message_login", user_id=it.user_id)


# tickets


@recipe(
    TICKETS, 'open a ticket "{title}" with priority {level}', 'create a priority {level} ticket titled "{title}"',
    'file a ticket called "{title}", priority {level}', "open a ticket with priority {level}",
    "create a priority {level} ticket", slots=(TITLE, LEVEL), needs="ticket_login", open=True, tiny=True,
)  # fmt: skip
def ticket_create(it: Plan) -> None:
    it.ticket = it.do("create_ticket", title=it.title, priority=int(it.level)).id


@recipe(
    TICKETS, 'open a ticket "{title}" with the description "{text}" and priority {level}',
    'file a priority {level} ticket titled "{title}" and described as "{text}"', slots=(TITLE, LEVEL, TEXT),
    needs="ticket_login", open=True,
)  # fmt: skip
def ticket_report(it: Plan) -> None:
    it.ticket = it.do("create_ticket", title=it.title, description=it.text, priority=int(it.level)).id


@recipe(
    (FILES, TICKETS), 'open a ticket "{title}" whose description is exactly what {file} in {folder} says',
    'read {file} in {folder} and file a ticket titled "{title}" with that text as the description',
    slots=(QUOTABLE, FOLDER, TITLE), needs="ticket_login", open=True, weight=2.0,
)  # fmt: skip
def ticket_file(it: Plan) -> None:
    text = reads(it)
    it.ticket = it.do("create_ticket", title=it.title, description=text).id


@recipe(
    TICKETS, "close ticket {ticket}", "set ticket {ticket} to closed", "see to it that ticket {ticket} is closed",
    slots=(TICKET,), tiny=True,
)  # fmt: skip
def ticket_close(it: Plan) -> None:
    it.do("close_ticket", ticket_id=int(it.ticket))


@recipe(
    TICKETS, 'resolve ticket {ticket} with the note "{resolution}"',
    'mark ticket {ticket} as resolved, the resolution is "{resolution}"', "resolve ticket {ticket}",
    "mark ticket {ticket} as resolved", slots=(TICKET, RESOLUTION), open=True, tiny=True,
)  # fmt: skip
def ticket_resolve(it: Plan) -> None:
    it.do("resolve_ticket", ticket_id=int(it.ticket), resolution=it.resolution)


@recipe(
    TICKETS, 'resolve the ticket you just opened with the note "{resolution}"',
    'mark that new ticket as resolved, the resolution being "{resolution}"', slots=(RESOLUTION,),
    when=lambda d: "ticket" in d.user and d.user.ticket in [one.id for one in _open(d)], narrow=True, weight=2.0,
)  # fmt: skip
def ticket_resolve_last(it: Plan) -> None:
    it.do("resolve_ticket", ticket_id=it.ticket, resolution=it.resolution)


@recipe(
    TICKETS, 'close my open ticket "{title}"', 'look up my ticket titled "{title}" and close it',
    slots=(drawn(TITLE, _mine, "title"),), needs="ticket_login", narrow=True,
)  # fmt: skip
def ticket_close_mine(it: Plan) -> None:
    mine = it.look("get_user_tickets", status="Open")
    it.do("close_ticket", ticket_id=it.pick(mine, title=it.title).id)


@recipe(
    TICKETS, "change the priority of ticket {ticket} to {level}", "give ticket {ticket} priority {level}",
    slots=(TICKET, drawn(LEVEL, lambda d: [n for n in "12345" if int(n) != d.ticket.priority])),
)  # fmt: skip
def ticket_level(it: Plan) -> None:
    it.do("edit_ticket", ticket_id=int(it.ticket), updates={"priority": int(it.level)})


@recipe(
    TICKETS, "tell me the description of ticket {ticket}", "read me what ticket {ticket} says, its description",
    slots=(drawn(TICKET, lambda d: [ticket for ticket in _open(d) if len(ticket.description) > 5], "id"),),
)  # fmt: skip
def ticket_question(it: Plan) -> None:
    it.seen = it.look("get_ticket", ticket_id=int(it.ticket))
    it.answer('Ticket {ticket} says: "{seen.description}"', tell="{seen.description}")


@recipe(
    TICKETS, 'log in to the ticket system as {handle} with the password "{password}"',
    'sign me in for tickets as {handle}, password "{password}"',
    slots=(drawn(HANDLE, lambda d: d.tables[TICKETS].ticket_queue[0].created_by), PASSWORD),
)  # fmt: skip
def ticket_login(it: Plan) -> None:
    it.do("ticket_login", username=it.handle, password=it.password)


@recipe(
    TICKETS, "log me out of the ticket system", "sign me out for tickets",
    when=lambda d: d.tables[TICKETS].current_user, narrow=True,
)  # fmt: skip
def ticket_logout(it: Plan) -> None:
    it.do("logout")
