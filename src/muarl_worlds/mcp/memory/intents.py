"""What the people of a firm want of its contacts, how they say it, and how each request is served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from muarl.domains.kit.declaration import DrawContext, RecordDescription, Slot, intent, names, of, pattern, rows
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl.domains.kit.service import Service
from muarl.domains.mcp.scenario import SIZES
from muarl_worlds.mcp.memory.domain import MemoryDomain
from muarl_worlds.mcp.memory.rehearsal import MemoryRehearsal
from muarl_worlds.mcp.memory.world import CITY, COMPANIES, FACTS, LOCKED, PHONE, WORKS, make_tables

PHONE_KIND = pattern(r"555-\d{4}")
COMPANY_KIND = names(COMPANIES)


def contact(name: str, observations: list[str], relations: list[Any]) -> Record:
    """What is known of a person: number, city, notes, company ("" where there is none), and whether it is locked."""
    work = [link["to"] for link in relations if link["from"] == name and link["relationType"] == WORKS]
    phone, city = (next((o for o in observations if o.startswith(start)), "") for start in (PHONE, CITY))
    return Record(
        {
            "name": name,
            "phone": phone.removeprefix(PHONE),
            "city": city.removeprefix(CITY),
            "notes": [o for o in observations if o not in (phone, city, LOCKED)],
            "company": work[0] if work else "",
            "locked": LOCKED in observations,
        }
    )


# where values come from


def rows_of(drawn: DrawContext, *tables: str) -> list[Any]:
    """The records of tables."""
    return [drawn.tables[table][name] for table in tables for name in drawn.tables[table]]


def people(drawn: DrawContext) -> list[Any]:
    """All people."""
    entities, relations = drawn.tables.entities, rows_of(drawn, "relations")
    persons = [name for name in entities if entities[name].entityType == "person"]
    return [contact(name, entities[name].observations, relations) for name in persons]


def fields_of(drawn: DrawContext) -> Iterable[str]:
    """What may be asked about a person."""
    return ["phone number", "city", *(["company"] if drawn.person.company else [])]


def graph_of(answer: Any) -> Record:
    """The entities and relations that a tool answers."""
    whole = isinstance(answer, Record) and "entities" in answer and "relations" in answer
    return answer if whole else Record({"entities": [], "relations": []})


def by_number(it: Plan, number: str) -> list[str]:
    """The people who have a number."""
    graph = graph_of(it.look("search_nodes", query=number))
    return [entity.name for entity in graph.entities if f"{PHONE}{number}" in entity.observations]


PERSON = Slot(
    "person",
    "person",
    ask="Which person is it?",
    say=["I mean {}.", "The person is {}."],
    draw=of(people, "name"),
    described=RecordDescription(
        kind=PHONE_KIND,
        match="phone",
        find=by_number,
        phrase="the person with the number {}",
        say="I forgot the name. It is the person with the number {}.",
        cue="person with the number",
    ),
    asked="(which|what).{0,12} (person|contact)|who is it|who do you mean|(whose|name of)",
)
NEWCOMER = replace(
    PERSON, name="newcomer", noun="person", draw=of(lambda drawn: [p for p in people(drawn) if not p.company], "name")
)
NEW_PERSON = Slot(
    "new_person",
    "person",
    ask="What is the name of the new contact?",
    say=["The name is {}.", "I mean {}."],
    draw=of(lambda drawn: [*rows_of(drawn, "strangers"), *people(drawn)], "name"),
    asked="(which|what).{0,12} (person|contact|name)|who is it|who do you mean|(whose|name of)",
)
FACT = Slot(
    "fact",
    "quoted",
    ask="What should the note say?",
    say=["The note is {}.", "It says {}."],
    change=["Actually, the note is {}.", "Wait, it should say {}."],
    draw=of(lambda drawn: [fact for fact in FACTS if fact not in drawn.person.notes]),
    asked="(which|what).{0,16} note|what should (i|it|the note) (write|say|note)",
    guess=("needs a reminder",),
)
OLD_FACT = Slot(
    "old_fact",
    "quoted",
    ask="Which note is it?",
    say=["The note is {}.", "It says {}."],
    draw=of(lambda drawn: drawn.person.notes),
    asked="(which|what).{0,16} note|what does (it|the note) say",
)
NUMBER = Slot(
    "number",
    PHONE_KIND,
    ask="What is the phone number?",
    say=["The number is {}.", "It is {}."],
    change=["Actually, the number is {}.", "Sorry, it is {}."],
    draw=rows("free_numbers", "number"),
    asked="(which|what).{0,20} (phone|number)",
)
COMPANY = Slot(
    "company",
    COMPANY_KIND,
    ask="Which company is it?",
    say=["The company is {}.", "I mean {}."],
    change=["Actually, I mean {}.", "Sorry, the company is {}."],
    draw=of(lambda drawn: [{"name": name} for name in COMPANIES + 20 * companies(drawn)], "name"),
    asked="(which|what|other).{0,12} (company|firm)|where (does|do)",
)
EMPLOYER = Slot(
    "employer",
    COMPANY_KIND,
    ask="Which company was it?",
    say=["The company is {}.", "I mean {}."],
    draw=of(lambda drawn: [{"name": drawn.person.company}] if drawn.person.company else [], "name"),
    asked="(which|what).{0,12} (company|firm)|where (does|do|did)",
)
FIELD = Slot(
    "field",
    names(["phone number", "company", "city"]),
    ask="What would you like to know?",
    say=["I want to know the {}.", "The {}, please."],
    draw=of(fields_of),
    asked="what would you like to know|(which|what) detail",
)


def companies(drawn: DrawContext) -> tuple[str, ...]:
    """The companies that are entered."""
    entities = drawn.tables.entities
    return tuple(name for name in entities if entities[name].entityType == "company")


# how requests are served


def find(it: Plan, name: str) -> Record | None:
    """What is known of a person or company of that name."""
    graph = graph_of(it.look("open_nodes", names=[name]))
    entity = it.pick(graph.entities, name=name)
    return None if entity is None else contact(name, entity.observations, graph.relations)


def to_change(it: Plan, slot: Slot) -> None:
    """Look the person up, who must not be locked."""
    it.p = find(it, getattr(it, slot.name)) or it.missing(slot)
    it.refuse_if(it.p.locked, f"{{p.name}} is marked: {LOCKED}")


def observations(it: Plan, *texts: str) -> list[dict[str, Any]]:
    """New observations of the person."""
    return [{"entityName": it.person, "contents": list(texts)}]


def deletions(it: Plan, text: str) -> list[dict[str, Any]]:
    """An observation of the person's that is deleted."""
    return [{"entityName": it.person, "observations": [text]}]


@intent(
    says=["find out the {field} of {person}", "look up the {field} of {person}", "find out something about {person}"],
    slots=[PERSON, FIELD],
    heard=r"\b(find out|look up|know (?:the|who|which|when|what (?!to))|tell me)\b",
)
def question(it: Plan) -> None:
    it.p = find(it, it.person) or it.missing(PERSON)
    it.found = it.p["phone" if it.field == "phone number" else it.field] or "not known"
    it.answer(["The {field} of {person} is {found}.", "{person} has the {field} {found}."], tell="{found}")


@intent(
    says=[
        "delete the note {old_fact} of {person}",
        "remove the note {old_fact} from {person}",
        "delete the note {old_fact}",
        "delete a note that is wrong",
    ],
    slots=[PERSON, OLD_FACT],
    heard=r"\b(delete|remove|forget|strike)\b.*\bnote\b",
)
def forget(it: Plan) -> None:
    to_change(it, PERSON)
    if it.old_fact not in it.p.notes:
        it.missing(OLD_FACT)
    it.write(
        "delete_observations",
        deletions=deletions(it, it.old_fact),
        propose=["delete the note {old_fact} of {person}", "remove {old_fact} from what is noted on {person}"],
        done=["The note is deleted.", "Done, the note {old_fact} of {person} is gone."],
    )


@intent(
    says=[
        "note that {person} no longer works at {employer}",
        "have it known that {person} left {employer}",
        "note that {person} no longer works there",
        "have it known that somebody left",
    ],
    slots=[PERSON, EMPLOYER],
    share=0.9,
    heard=r"\bno longer work|\bleft\b|\bdelet\w*\b.*\blink\b",
)
def leave(it: Plan) -> None:
    to_change(it, PERSON)
    if it.employer != it.p.company:
        it.missing(EMPLOYER)
    it.write(
        "delete_relations",
        relations=[{"from": it.person, "to": it.employer, "relationType": WORKS}],
        propose=[
            "delete the link that says {person} works at {employer}",
            "note that {person} no longer works at {employer}",
        ],
        done=["The link is deleted.", "Done, {person} no longer works at {employer}."],
    )


@intent(
    says=[
        "note that {newcomer} works at {company} now",
        "connect {newcomer} with the company {company}",
        "connect {newcomer} with a company",
        "note that somebody works at a company now",
    ],
    slots=[NEWCOMER, COMPANY],
    heard=r"(?<!this )\b(?-i:works)\b|\bwork (at|for)\b|\bjoined\b|\bconnect|\blink",
)
def hire(it: Plan) -> None:
    to_change(it, NEWCOMER)
    it.unavailable_if(find(it, it.company) is None, COMPANY, why="there is no company {company}")
    it.write(
        "create_relations",
        relations=[{"from": it.newcomer, "to": it.company, "relationType": WORKS}],
        propose=["create the link that says {newcomer} works at {company}", "note that {newcomer} works at {company}"],
        done=["The link is there.", "Done, {newcomer} works at {company} now."],
    )


@intent(
    says=[
        "create a new contact {new_person} with the phone number {number}",
        "enter {new_person} as a new contact with the phone number {number}",
        "enter {new_person} as a new contact",
        "create a new contact",
    ],
    slots=[NEW_PERSON, NUMBER],
    heard=r"\b(create|make|enter|new)\b.*\b(contact|person)\b",
)
def new(it: Plan) -> None:
    it.refuse_if(find(it, it.new_person), "{new_person} is among the contacts already")
    it.write(
        "create_entities",
        entities=[{"name": it.new_person, "entityType": "person", "observations": [f"{PHONE}{it.number}"]}],
        propose=[
            "create the contact {new_person} with the phone number {number}",
            "enter {new_person}, phone {number}",
        ],
        done=["{new_person} is among the contacts now.", "Done, {new_person} is entered."],
    )


@intent(
    says=[
        "change the phone number of {person} to {number}",
        "update the phone number of {person} to {number}",
        "change the phone number of {person}",
        "change a phone number",
    ],
    slots=[PERSON, NUMBER],
    share=1.1,
    heard=r"\b(change|update|replace)\b.*\b(phone|number)\b",
)
def phone(it: Plan) -> None:
    to_change(it, PERSON)
    it.write(
        "delete_observations",
        deletions=deletions(it, f"{PHONE}{it.p.phone}"),
        propose=[
            "change the phone number of {person}, that is, delete the old one and add {number}",
            "replace the phone number of {person}: the new one is {number}",
        ],
        done=["The phone number is changed.", "Done, the number of {person} is {number} now."],
    )
    it.then("add_observations", observations=observations(it, f"{PHONE}{it.number}"))


@intent(
    says=["delete the contact {person}", "remove {person} from the contacts", "delete a contact"],
    slots=[PERSON],
    share=0.5,
    heard=r"\b(delete|remove)\b",
)
def remove(it: Plan) -> None:
    to_change(it, PERSON)
    it.refuse_if(it.p.company, "{person} works at {p.company}")
    it.write(
        "delete_entities",
        entityNames=[it.person],
        propose=["delete the contact {person}", "remove {person} from the contacts"],
        done=["The contact {person} is deleted.", "Done, {person} is no longer among the contacts."],
    )


@intent(
    says=[
        "add the note {fact} to {person}",
        "write down the note {fact} for {person}",
        "add the note {fact}",
        "add a note that I have",
    ],
    slots=[PERSON, FACT],
    share=1.1,
    heard=r"\bnote\b|\bremember\b|\bwrite down\b",
)
def note(it: Plan) -> None:
    to_change(it, PERSON)
    it.write(
        "add_observations",
        observations=observations(it, it.fact),
        propose=["add the note {fact} to {person}", "write down for {person}: {fact}"],
        done=["The note is added.", "Done, the note {fact} is added to {person}."],
    )


SERVICE = Service(
    domain=MemoryDomain,
    rehearsal=MemoryRehearsal,
    about="a firm's contacts: people, their phone numbers and notes, and companies",
    today="2026-03-16",
    intents=(question, forget, leave, hire, new, phone, remove, note),
    tables=make_tables,
    sizes=SIZES,
    free_texts={"entities": "observations"},
    tiny_tools=MemoryDomain.tiny_tools,
    vocabulary=(
        '{\n  "entities": [\n    {\n      "name": "',
        '",\n      "entityType": "person",\n      "observations": [\n        "',
        '",\n        "', '"\n      ]\n    }\n  ],\n  "relations": [', '\n    {\n      "from": "', '",\n      "to": "',
        '",\n      "relationType": "works_at"\n    }', '\n  ]\n}', ']\n}', '{\n  "entities": [],\n  "relations": []\n}',
        "phone 555-0", "555-0", "lives in ", '", "entityType": "person", "observations": ["', '", "observations": ["',
        '", "relationType": "works_at"}]', '[{"entityName": "', '", "contents": ["', '"]}]', '[{"name": "',
        '[{"from": "', '", "to": "',
    ),
)  # fmt: skip
