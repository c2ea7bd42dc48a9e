"""What the owner of a phone wants of its messages and reminders, and how each request is served by the policy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from muarl.domains.kit.declaration import DrawContext, Fact, Identity, Slot, intent, of, one_of, rows, words
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl.domains.kit.records import rows as records_of
from muarl_worlds.acebench import catalogue as cat
from muarl_worlds.acebench.phone import CAPACITY

AGE_KIND = words({"oldest": ["the oldest message"], "latest": ["the latest message"]})
TIME_KIND = words(
    {
        time: [time, f"June {int(time[8:10])} at {time[11:]}"] if time != cat.PHONE_NOW else ["the current time"]
        for time in (*cat.TIMES, cat.PHONE_NOW)
    }
)
THING_KIND = words({thing: [thing] for thing in cat.THINGS})
ASKING = re.compile(cat.ASKED.replace("{}", "(.+)"))

IDENTITY = Identity(
    tool="",
    table="accounts",
    key="name",
    facts=(
        Fact(
            "name",
            "person",
            tells="My name is {name}.",
            asked=r"\b(?:your|full|user|account)[ -]?name|who are you",
            cue="i am|i'm|my name is|this is",
        ),
    ),
    ask=("May I have your name?", "What is your name, please?"),
    say=("I am {name}.", "My name is {name}.", "This is {name}."),
)


def written(drawn: DrawContext, *, to_me: bool, asking: bool | None = False) -> list[dict[str, Any]]:
    """Who wrote to whom: messages to the user, or those between others. ``asking``: for food; None: for anything."""
    names = {person.user_id: person.name for person in records_of(drawn.tables.people)}
    found = []
    for message in records_of(drawn.tables.inbox):
        sender, receiver = names[message.sender_id], names[message.receiver_id]
        mine = receiver == drawn.user.name if to_me else drawn.user.name not in (sender, receiver)
        if mine and asking in (None, ASKING.fullmatch(message.message) is not None):
            found.append({"sender": sender, "reader": receiver, "text": message.message})
    return found


def _things(drawn: DrawContext) -> Iterable[str]:
    """What messages of the user's are about."""
    mine = drawn.tables.people[drawn.user.name].user_id
    texts = [m.message for m in records_of(drawn.tables.inbox) if mine in (m.sender_id, m.receiver_id)]
    return [thing for thing in cat.THINGS if any(thing in text for text in texts)]


def _receivers(drawn: DrawContext) -> list[Record]:
    """The user's contacts, and people who are none; those only where nothing would be deleted for them first."""
    contacts = [person for person in records_of(drawn.tables.people) if person.name != drawn.user.name]
    room = len(records_of(drawn.tables.inbox)) < CAPACITY
    return [*contacts, *(records_of(drawn.tables.strangers) if room else ())]


TO = Slot(
    "to",
    "person",
    ask=["Who should get it?", "To whom shall I send it?", "Who is it for?"],
    say=["It is for {}.", "{} should get it.", "To {}, please."],
    change=["Actually, it is for {}.", "Wait, {} should get it."],
    draw=of(_receivers, "name"),
    asked=r"\bwhom?\b[^?]{0,30}(?:get|send|receive|message)|recipient|to whom|\bwho (?:is it|it is) for",
)
TEXT = Slot(
    "text",
    "quoted",
    ask=["What should the message say?", "What is the text of the message?"],
    say=["It should say {}.", "The text is {}.", "{}."],
    change=["Actually, it should say {}.", "Wait, make it {}."],
    draw=rows("texts", "text"),
    asked=r"(?:what|which)[^?]{0,40}(?:message|text)[^?]{0,30}(?:say|be\b|send|contain)|content"
    r"|what would you like (?:to say|it to say)|(?:text|wording) of",
)
ROOM = Slot(
    "room",
    AGE_KIND,
    ask="Memory is full, which message would you like to delete?",
    noun="message to be deleted if the inbox is full",
    say=["Delete {}, please.", "Please delete {}.", "{} can go."],
    asked=r"(?:memory|inbox|capacity|storage)[^?]{0,60}\bfull\b"
    r"|which message[^?]{0,40}(?:delete|remove)[^?]{0,60}(?:room|space)|(?:room|space)[^?]{0,60}which message",
)
AGE = Slot(
    "age",
    AGE_KIND,
    ask=["Which message is it?", "Which message do you mean?"],
    say=["I mean {}.", "It is {}."],
    change=["Actually, delete {}.", "Wait, I mean {}."],
    asked=r"(?:which|what) (?:message|text|one)\b(?! would)",
)
SENDER = Slot(
    "sender",
    "person",
    ask=["Whose message is it?", "Who wrote it?"],
    say=["I mean {}.", "It is from {}.", "{} wrote it."],
    change=["Actually, I mean the one from {}.", "Wait, the one from {}."],
    draw=of(lambda drawn: written(drawn, to_me=True), "sender"),
    asked=r"whose (?:message|text)|from whom|\bwho (?:sent|wrote)|(?:which|what) (?:person|contact|sender)",
)
THING = Slot(
    "thing",
    THING_KIND,
    ask="What is the message about?",
    say=["It is about {}.", "The one about {}."],
    change=["Actually, the one about {}."],
    draw=of(_things),
    asked="what[^?]*about",
)
WRITER = Slot(
    "writer",
    "person",
    ask="Whose message is it?",
    say="From {}.",
    draw=of(lambda drawn: written(drawn, to_me=False, asking=None), "sender"),
)
READER = Slot(
    "reader",
    "person",
    ask="To whom was it written?",
    say="To {}.",
    draw=of(lambda drawn: [drawn.writer], "reader"),
    cue="wrote to|message to",
    asked="to whom was",
)
TITLE = Slot(
    "title",
    "quoted",
    ask=["What is the title?", "What should the reminder be called?"],
    say=["The title is {}.", "Call it {}."],
    draw=one_of(*cat.TITLES[: cat.TINY_TITLES]),
    cue="reminder|title(?: is)?|titled|called?(?: it)?",
    asked=r"\btitle|be called",
)
NOTE = Slot(
    "note",
    "quoted",
    ask=["What should the reminder say?", "What do you want to be reminded of?"],
    say=["It should say {}.", "That I should remember: {}."],
    draw=one_of(*cat.NOTES),
    cue="saying|says?|remember:",
    asked=r"reminder[^?]{0,20}\bsay|what[^?]{0,30}(?:remind(?:ed)? you|be reminded)|descri(?:be|ption)|content",
)
TIME = Slot(
    "time",
    TIME_KIND,
    ask=["At what time?", "When do you want to be reminded?"],
    phrase="at {}",
    say=["At {}, please.", "{}."],
    change=["Actually, make it {}.", "Wait, {} is better."],
    draw=one_of(*cat.TIMES[: cat.TINY_TIMES], *[cat.PHONE_NOW] * 6),
    asked=r"(?:what|which)[^?]{0,20}\btime|at what|\bwhen\b|\btime (?:for|of) the reminder",
)
REMINDER = Slot(
    "reminder",
    "quoted",
    ask=["Which reminder is it?", "What is the title of the reminder?"],
    say=["It is {}.", "The title is {}."],
    change=["Actually, I mean {}.", "Wait, the one called {}."],
    draw=rows("reminders", "title"),
    asked=r"\btitle|which[^?]{0,20} reminder",
)


def find_message(it: Plan, which: str) -> int:
    """The number of the oldest or the latest message."""
    tool = "get_earliest_message_id" if which == "oldest" else "get_latest_message_id"
    return int(it.look(tool).message_id)


def message_from(it: Plan, sender: str) -> Any:
    """The message that somebody has sent to the user."""
    found = it.look("view_messages_between_users", sender_name=sender, receiver_name=it.user.name)
    return found.messages[0]


def send(it: Plan, to: str, text: str, *, propose: str = "", done: str) -> None:
    """Send a message, having made room for it where that is needed. An empty ``propose``: it was agreed on before."""
    message = {"sender_name": it.user.name, "receiver_name": to, "message": text}
    fails = "is full|does not exist"
    if propose:
        sent = it.write("send_message", **message, propose=propose, done=done, fails=fails)
    else:
        sent = it.then("send_message", **message, done=done, fails=fails)
    if "does not exist" in sent:
        it.unavailable(TO)
    if "is full" in sent:
        it.number = find_message(it, it.room)
        both = f"delete {{room}} and then {propose or 'send it'}"
        it.write("delete_message", message_id=it.number, propose=both, done=done)
        if not it.then("send_message", **message, fails="does not exist"):
            it.refuse("the phone does not know the receiver")


@intent(
    says=["send {to} the message {text}", "send the message {text}", "send a message to {to}", "send a message"],
    slots=[TO, TEXT, ROOM],
    share=2.4,
    because=["I promised it.", "They are waiting for it."],
    heard=r"^(?!.*\border\b).*\bsend\b.*\bmessage\b|\btext [A-Z]",
)
def send_message(it: Plan) -> None:
    send(it, it.to, it.text, propose="send {to} the message {text}", done="The message to {to} is sent.")


@intent(
    says=["delete {age}", "get rid of {age}", "delete a message"],
    slots=[AGE],
    share=0.8,
    heard=r"\b(?:delete|get rid of) (?:a|the (?:oldest|latest)) message\b",
)
def delete_message(it: Plan) -> None:
    it.number = find_message(it, it.age)
    it.write("delete_message", message_id=it.number, propose="delete {age}, number {number}", done="It is deleted.")


@intent(
    says=["delete the message from {sender}", "get rid of what {sender} sent me"],
    slots=[SENDER],
    share=0.8,
    heard=r'\bdelete the message (?:"" )?from\b|\bget rid of what\b',
)
def delete_message_from(it: Plan) -> None:
    it.m = message_from(it, it.sender)
    it.write(
        "delete_message",
        message_id=it.m.id,
        propose='delete the message "{m.message}" from {sender}',
        done="The message from {sender} is deleted.",
    )


@intent(
    says=["delete the message about {thing}", "get rid of the message about {thing}"],
    slots=[THING],
    share=0.5,
    heard=r"\b(?:delete|get rid of) the message about\b",
)
def delete_message_about(it: Plan) -> None:
    it.found = it.look("search_messages", user_name=it.user.name, keyword=it.thing)
    it.m = it.found.messages[0]
    it.write(
        "delete_message",
        message_id=it.m.id,
        propose='delete the message about {thing}: "{m.message}"',
        done="The message about {thing} is deleted.",
    )


@intent(
    says=["know what {writer} wrote to {reader}", "read the message that {writer} wrote to {reader}"],
    slots=[WRITER, READER],
    share=0.6,
    heard=r"\bwrote to (?!me\b)",
)
def read_message_of_others(it: Plan) -> None:
    it.refuse_unless(it.user.name in (it.writer, it.reader), "I show no messages of other people")
    it.found = it.look("view_messages_between_users", sender_name=it.writer, receiver_name=it.reader)
    it.m = it.found.messages[0]
    it.answer('{writer} wrote to {reader}: "{m.message}"', tell="{m.message}")


@intent(
    says=["know what {sender} wrote to me", "read what {sender} wrote to me", "know what somebody wrote to me"],
    slots=[SENDER],
    share=0.8,
    heard=r"\bwrote to me\b",
)
def read_message(it: Plan) -> None:
    it.m = message_from(it, it.sender)
    it.answer(['{sender} wrote: "{m.message}"', 'The message from {sender} says "{m.message}"'], tell="{m.message}")


@intent(
    says=[
        "add a reminder {title} {time} saying {note}",
        "add a reminder {title} {time}",
        "add a reminder {title}",
        "add a reminder",
    ],
    slots=[TITLE, TIME, NOTE],
    share=1.2,
    because=["I forget everything.", "It is rather important."],
    heard=r"\badd (?:a|the) reminder\b(?!.*\bthe message\b)",
)
def add_reminder(it: Plan) -> None:
    it.write(
        "add_reminder",
        title=it.title,
        description=it.note,
        time=it.time,
        propose="add the reminder {title} at {time} saying {note}",
        done="The reminder {title} is added.",
    )


@intent(
    says=[
        "add a reminder {title} {time} with the message from {sender}",
        "add a reminder {title} with the message from {sender}",
    ],
    slots=[TITLE, TIME, SENDER],
    share=0.7,
    heard=r"\badd (?:a|the) reminder\b.*\bwith the message\b",
)
def remind_of_message(it: Plan) -> None:
    it.m = message_from(it, it.sender)
    it.write(
        "add_reminder",
        title=it.title,
        description=it.m.message,
        time=it.time,
        propose='add the reminder {title} at {time} with the message from {sender}, "{m.message}"',
        done="The reminder {title} is added.",
    )


def find_reminder(it: Plan) -> Any:
    """The reminder that the user means."""
    return it.look("view_reminder_by_title", title=it.reminder).reminder


@intent(
    says=["know what my reminder {reminder} says", "read my reminder {reminder}", "know what one of my reminders says"],
    slots=[REMINDER],
    share=0.5,
    heard=r"\bwhat (?:my|one of my) reminders?\b|\bread my reminder\b",
)
def read_reminder(it: Plan) -> None:
    it.r = find_reminder(it)
    it.answer('It says "{r.description}"', tell="{r.description}")


@intent(
    says=["delete my reminder {reminder}", "get rid of my reminder {reminder}", "delete a reminder"],
    slots=[REMINDER],
    share=0.7,
    because=["That is settled.", "I do not need it any more."],
    heard=r"\b(?:delete|get rid of) (?:my|a|the) reminder\b",
)
def delete_reminder(it: Plan) -> None:
    it.r = find_reminder(it)
    it.write(
        "delete_reminder",
        reminder_id=it.r.reminder_id,
        propose="delete the reminder {reminder} for {r.time}",
        done="The reminder {reminder} is deleted.",
    )


INTENTS = (
    send_message, delete_message, delete_message_from, delete_message_about, read_message_of_others, read_message,
    add_reminder, remind_of_message, read_reminder, delete_reminder,
)  # fmt: skip
