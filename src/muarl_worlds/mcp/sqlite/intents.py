"""What people at a library's desk want, how they say it, and how each request is served."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from muarl.domains.kit.declaration import DrawContext, RecordDescription, Slot, intent, names, of, one_of, pattern, rows
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl.domains.kit.service import Service
from muarl.domains.mcp.scenario import SIZES
from muarl_worlds.mcp.sqlite.domain import SqliteDomain
from muarl_worlds.mcp.sqlite.rehearsal import SqliteRehearsal
from muarl_worlds.mcp.sqlite.world import CITIES, DAYS, MOST_LOANS, SHELVES, TODAY, make_tables


def rows_of(drawn: DrawContext, *tables: str) -> list[Any]:
    """The records of tables."""
    return [drawn.tables[table][name] for table in tables for name in drawn.tables[table]]


def select(it: Plan, query: str) -> list[Record]:
    """The rows of a query; the server writes them as Python's literals."""
    text = it.look("read_query", query=query)
    try:
        found = ast.literal_eval(text) if isinstance(text, str) else text
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [Record(row) for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def text(value: str) -> str:
    """A user's words as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def by_author(it: Plan, author: str) -> list[str]:
    """The titles of an author's books."""
    return [row.title for row in select(it, f"SELECT id, title FROM books WHERE author = {text(author)}")]


def borrowers(drawn: DrawContext) -> Iterable[Any]:
    """The members who have borrowed the book."""
    lent = {loan.member_id for loan in rows_of(drawn, "loans") if loan.book_id == drawn.title.id}
    return [member for member in rows_of(drawn, "members") if member.id in lent]


def others(drawn: DrawContext) -> Iterable[Any]:
    """The members who have not borrowed the book."""
    lent = {member.id for member in borrowers(drawn)}
    return [member for member in rows_of(drawn, "members") if member.id not in lent]


TITLE = Slot(
    "title",
    "quoted",
    ask="Which book is it?",
    say=["It is {}.", "I mean {}."],
    draw=rows("books", "title"),
    described=RecordDescription(
        kind="person",
        match="author",
        find=by_author,
        phrase="the book by {}",
        say="I forgot the title. It is the book by {}.",
        cue="book by",
    ),
    asked="(which|what|other) (book|title)|title of the book",
)
MEMBER = Slot(
    "member",
    "person",
    ask="Which member is it?",
    say=["The member is {}.", "I mean {}."],
    draw=of(others, "name"),
    noun="member",
    asked="which member|who (is|wants|has|should)|(name of|whose|what) .{0,12}(member|name)|member.s name",
)
BORROWER = replace(MEMBER, name="borrower", draw=of(borrowers, "name"))
LEAVER = replace(MEMBER, name="leaver", draw=rows("members", "name"))
NEWCOMER = replace(
    MEMBER,
    name="newcomer",
    ask="What is the name of the new member?",
    draw=of(lambda drawn: rows_of(drawn, "strangers", "members"), "name"),
)
DUE = Slot(
    "due",
    pattern(r"\d{4}-\d\d-\d\d"),
    ask="Until when?",
    say=["Until {}.", "Make it until {}."],
    change=["Actually, make it until {}.", "Sorry, until {}."],
    draw=one_of(*DAYS),
    asked="(which|what) (date|day)|until when|how long|due date",
    guess=("2026-04-06",),
)
SHELF = Slot(
    "shelf",
    pattern("[A-H][1-9]"),
    ask="Which shelf is it?",
    phrase="shelf {}",
    say=["It is shelf {}.", "Shelf {}, please."],
    change=["Actually, I mean shelf {}.", "Wait, take shelf {}."],
    draw=of(lambda drawn: [shelf for shelf in SHELVES if shelf != drawn.title.shelf]),
    asked="(which|what).{0,8} shelf|where should",
    guess=("A1",),
)
CITY = Slot(
    "city",
    names(CITIES),
    ask="Which city does the member live in?",
    say=["The member is from {}.", "I think from {}."],
    change=["Actually, the member is from {}.", "Sorry, from {}."],
    asked="(which|what) (city|town|place)|where (do|does|is|are)",
)
FIELD = Slot(
    "field",
    names(["shelf", "author"]),
    ask="What would you like to know?",
    say=["I want to know the {}.", "The {}, please."],
    asked="what would you like to know|(which|what) detail",
)


def find_book(it: Plan) -> Record:
    """The row of the book."""
    found = select(it, f"SELECT id, title, author, shelf, copies FROM books WHERE title = {text(it.title)}")
    return found[0] if found else it.missing(TITLE)


def find_member(it: Plan, slot: Slot) -> Record:
    """The row of the member."""
    found = members(it, getattr(it, slot.name))
    return found[0] if found else it.missing(slot)


def members(it: Plan, name: str) -> list[Record]:
    """The rows of the members who are called so."""
    return select(it, f"SELECT id, name, city FROM members WHERE name = {text(name)}")


def find_loan(it: Plan) -> Record:
    """The row of the loan of the book to the borrower."""
    book, member = find_book(it), find_member(it, BORROWER)
    found = select(it, f"SELECT id, due FROM loans WHERE book_id = {book.id} AND member_id = {member.id}")
    return found[0] if found else it.missing(BORROWER)


def loans_of(it: Plan, member: Record) -> list[Record]:
    """The loans of a member."""
    return select(it, f"SELECT due FROM loans WHERE member_id = {member.id}")


@intent(
    says=[
        "find out the due date of the loan of {title} to {borrower}",
        "look up when the loan of {title} to {borrower} is due",
        "find out the due date of the loan of {title}",
        "find out when a loan is due",
    ],
    slots=[TITLE, BORROWER],
    share=0.6,
    heard=r"\b(find out|look up|know (?:the|when)|tell me)\b.*\b(due|loan)\b|\buntil when\b",
)
def question_due(it: Plan) -> None:
    it.loan = find_loan(it)
    it.answer(
        ["The loan of {title} to {borrower} is due on {loan.due}.", "{title} is due on {loan.due}."], tell="{loan.due}"
    )


@intent(
    says=["find out the {field} of {title}", "look up the {field} of {title}", "find out something about {title}"],
    slots=[TITLE, FIELD],
    heard=r"\b(find out|look up|know (?:the|who|which|when|what (?!to))|tell me)\b",
)
def question(it: Plan) -> None:
    it.found = find_book(it)[it.field]
    it.answer(["The {field} of {title} is {found}.", "{title} has the {field} {found}."], tell="{found}")


@intent(
    says=[
        "extend the loan of {title} to {borrower} until {due}",
        "renew the loan of {title} to {borrower} until {due}",
        "extend the loan of {title} to {borrower}",
        "renew the loan of {title}",
        "extend a loan",
    ],
    slots=[TITLE, BORROWER, DUE],
    share=1.2,
    heard=r"\b(extend|prolong|renew)",
)
def extend(it: Plan) -> None:
    it.loan = find_loan(it)
    it.refuse_if(it.loan.due < TODAY, "this loan is overdue since {loan.due}")
    it.write(
        "update_database",
        query=f"UPDATE loans SET due = {text(it.due)} WHERE id = {it.loan.id}",
        propose=["extend the loan of {title} to {borrower} until {due}", "renew {title} for {borrower} until {due}"],
        done=["The loan is extended until {due}.", "Done, {borrower} can keep {title} until {due}."],
    )


@intent(
    says=[
        "return {title} for {borrower}",
        "note that {title} was brought back by {borrower}",
        "note that {title} was brought back",
        "return a book",
    ],
    slots=[TITLE, BORROWER],
    share=1.1,
    heard=r"\b(return|bring|brought|give)\w*\b.*\bback\b|\breturn",
)
def bring_back(it: Plan) -> None:
    it.loan = find_loan(it)
    it.write(
        "update_database",
        query=f"DELETE FROM loans WHERE id = {it.loan.id}",
        propose=["note that {title} is brought back by {borrower}", "return {title} for {borrower}"],
        done=["{title} is back.", "Done, the loan of {title} to {borrower} is ended."],
    )


@intent(
    says=[
        "lend {title} to {member} until {due}",
        "have {title} lent to {member} until {due}",
        "lend {title} to {member}",
        "lend {title}",
        "lend a book",
    ],
    slots=[TITLE, MEMBER, DUE],
    share=1.8,
    heard=r"\b(lend|lent|borrow|check out)",
)
def lend(it: Plan) -> None:
    it.m = find_member(it, MEMBER)
    it.loans = loans_of(it, it.m)
    it.count = len(it.loans)
    it.refuse_if(it.count >= MOST_LOANS, "{member} has {count} loans already")
    it.refuse_if(any(loan.due < TODAY for loan in it.loans), "{member} has a loan that is overdue")
    it.b = find_book(it)
    out = select(it, f"SELECT count(*) AS out FROM loans WHERE book_id = {it.b.id}")
    it.unavailable_if(out and out[0].out >= it.b.copies, TITLE, why="of {title} no copy is left")
    it.write(
        "update_database",
        query=f"INSERT INTO loans (book_id, member_id, due) VALUES ({it.b.id}, {it.m.id}, {text(it.due)})",
        propose=["lend {title} to {member} until {due}", "enter the loan of {title} to {member} until {due}"],
        done=["{title} is lent to {member}.", "Done, {member} has {title} until {due}."],
    )


@intent(
    says=["move {title} to {shelf}", "put {title} on {shelf}", "move {title} to another shelf", "move a book"],
    slots=[TITLE, SHELF],
    share=0.9,
    heard=r"\b(move|put|shelve|place)\b.*\b(shelf|book|\")|\bmov",
)
def shelve(it: Plan) -> None:
    it.b = find_book(it)
    it.write(
        "update_database",
        query=f"UPDATE books SET shelf = {text(it.shelf)} WHERE id = {it.b.id}",
        propose=["move {title} to shelf {shelf}", "move {title} onto shelf {shelf}"],
        done=["{title} is on shelf {shelf} now.", "Done, the shelf of {title} is {shelf}."],
    )


@intent(
    says=["remove {leaver} from the members", "delete the member {leaver}", "remove a member"],
    slots=[LEAVER],
    share=0.8,
    heard=r"\b(delet|remov|strike)",
)
def leave(it: Plan) -> None:
    it.m = find_member(it, LEAVER)
    it.count = len(loans_of(it, it.m))
    it.refuse_if(it.count, "{leaver} still has {count} on loan")
    it.write(
        "update_database",
        query=f"DELETE FROM members WHERE id = {it.m.id}",
        propose=["remove {leaver} from the members", "delete the member {leaver}"],
        done=["{leaver} is removed.", "Done, {leaver} is no longer a member."],
    )


@intent(
    says=[
        "add {newcomer} from {city} as a new member",
        "register {newcomer} from {city} as a member",
        "register {newcomer} as a member",
        "add a new member",
    ],
    slots=[NEWCOMER, CITY],
    share=0.9,
    heard=r"\b(add|register|enter|sign up|new member|join)",
)
def join(it: Plan) -> None:
    it.refuse_if(members(it, it.newcomer), "{newcomer} is a member already")
    it.write(
        "update_database",
        query=f"INSERT INTO members (name, city) VALUES ({text(it.newcomer)}, {text(it.city)})",
        propose=["add {newcomer} from {city} as a new member", "register {newcomer}, {city}, as a member"],
        done=["{newcomer} is a member now.", "Done, {newcomer} is registered."],
    )


SERVICE = Service(
    domain=SqliteDomain,
    rehearsal=SqliteRehearsal,
    about="a small lending library, whose database an assistant keeps for the people at its desk",
    today=TODAY,
    intents=(question_due, question, extend, bring_back, lend, shelve, leave, join),
    tables=make_tables,
    sizes=SIZES,
    free_texts={"members": "city", "books": "shelf"},
    tiny_tools=SqliteDomain.tiny_tools,
    vocabulary=(
        "SELECT id, title, author, shelf, copies FROM books WHERE title = '",
        "SELECT due FROM loans WHERE member_id = ",
        "SELECT id, name, city FROM members WHERE name = '", "SELECT count(*) AS out FROM loans WHERE book_id = ",
        "SELECT id, title FROM books WHERE author = '", "SELECT id, due FROM loans WHERE book_id = ",
        " AND member_id = ", "INSERT INTO loans (book_id, member_id, due) VALUES (", "DELETE FROM loans WHERE id = ",
        "UPDATE loans SET due = '", "UPDATE books SET shelf = '", "' WHERE id = ", "DELETE FROM members WHERE id = ",
        "INSERT INTO members (name, city) VALUES ('", "', '", ", '", "')", "[{'id': ", ", 'title': '", "', 'author': '",
        "', 'shelf': '", "', 'copies': ", ", 'name': '", "', 'city': '", ", 'due': '", "[{'due': '", "[{'out': ", "'}]",
        "}]", "[{'affected_rows': ",
    ),
)  # fmt: skip
