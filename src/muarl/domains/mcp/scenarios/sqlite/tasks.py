"""Tasks at the library: books, members and loans from seeds, and what the people at its desk may want.

Train, validation and test differ by the titles of books and the names of members that requests are about.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.domains.base import Action
from muarl.domains.desk.people import FIRST_NAMES, LAST_NAMES
from muarl.domains.drawing import Infeasible, Request
from muarl.domains.mcp.scenario import Desk, several

TODAY = "2026-03-16"
ADJECTIVES = (
    "Silent", "Golden", "Broken", "Distant", "Crimson", "Hidden", "Frozen", "Restless", "Gentle", "Burning", "Hollow",
    "Northern", "Secret", "Paper", "Winter", "Velvet",
)  # fmt: skip
NOUNS = (
    "Harbour", "Garden", "Letter", "Mountain", "River", "Lantern", "Orchard", "Mirror", "Compass", "Island", "Bridge",
    "Forest", "Window", "Station", "Feather", "Market",
)  # fmt: skip
CITIES = ("Boston", "Denver", "Austin", "Seattle", "Chicago", "Phoenix", "Portland", "Miami", "Atlanta", "Detroit")
SHELVES = tuple(f"{letter}{n}" for letter in "ABCDEF" for n in range(1, 7))
MOST_LOANS = 3
CHANGE_OF_MIND, UNAVAILABLE, FORGOT = 0.4, 0.3, 0.15


class SqliteTasks(Desk):
    """Where the library's tasks come from."""

    name = "mcp-sqlite"
    folder = Path(__file__).parent

    def world(self, rng: random.Random, size: str, split: str, kind: str) -> dict[str, dict[str, Any]]:
        """Books, members, and loans that keep to the rules; some are overdue."""
        tiny = size == "tiny"
        titles = several(split, "title", lambda: _title(rng), 5 if tiny else 14)
        names = several(split, "member", lambda: _person(rng), 6 if tiny else 14)
        writers = iter(_many(lambda: _person(rng), len(titles) + len(names) + 4))
        books = {
            str(n): {
                "id": n, "title": title, "author": next(w for w in writers if w not in names),
                "shelf": rng.choice(SHELVES), "copies": rng.randint(1, 2 if tiny else 3),
            }
            for n, title in enumerate(titles, 1)
        }  # fmt: skip
        members = {str(n): {"id": n, "name": name, "city": rng.choice(CITIES)} for n, name in enumerate(names, 1)}
        loans: dict[str, Any] = {}
        for member in members.values():
            for book in rng.sample(list(books.values()), min(len(books), rng.choice((0, 1, 1, 2, MOST_LOANS)))):
                if sum(loan["book_id"] == book["id"] for loan in loans.values()) < book["copies"]:
                    n = len(loans) + 1
                    due = _day(rng, 3, 1, 15) if rng.random() < 0.15 else _day(rng, 3, 17, 28)
                    loans[str(n)] = {"id": n, "book_id": book["id"], "member_id": member["id"], "due": due}
        return {"books": books, "members": members, "loans": loans}

    def request(self, rng: random.Random, tables: Mapping[str, Any], kind: str, split: str, alone: bool) -> Request:
        """One request of a kind."""
        request: Request = getattr(self, f"_{kind}")(_Draw(rng, tables, split))
        if "title" in request.wish and request.fallback is None and rng.random() < FORGOT:
            request.unknown = ["title"]
            for wish in (request.wish, request.then):
                if wish is not None:
                    wish["writer"] = next(b["author"] for b in tables["books"].values() if b["title"] == wish["title"])
        return request

    def _lend(self, draw: _Draw) -> Request:
        rng = draw.rng
        member = rng.choice(draw.some([m for m in draw.members() if draw.may_borrow(m)]))
        books = [b for b in draw.books() if not draw.loan(b, member)]
        left = draw.some([b for b in books if draw.left(b)])
        wish = {"title": rng.choice(left)["title"], "member": member["name"], "due": _day(rng, 4, 1, 28)}
        out = [b for b in books if not draw.left(b)]
        if out and rng.random() < UNAVAILABLE:
            first = {**wish, "title": rng.choice(out)["title"]}
            drop = rng.random() < 0.2
            fallback = {"drop": True} if drop else wish
            return Request("lend", first, fallback=fallback, final=None if drop else wish, intent="lend_none_left")
        then = {**wish, "due": _day(rng, 4, 1, 28)} if rng.random() < CHANGE_OF_MIND else None
        then = then if then != wish else None
        return Request("lend", wish, then=then, final=then or wish)

    def _bring_back(self, draw: _Draw) -> Request:
        book, member, _ = draw.rng.choice(draw.some(draw.lent()))
        wish = {"title": book["title"], "member": member["name"]}
        return Request("bring_back", wish, final=wish)

    def _extend(self, draw: _Draw) -> Request:
        rng = draw.rng
        book, member, _ = rng.choice(draw.some([x for x in draw.lent() if x[2]["due"] >= TODAY]))
        wish = {"title": book["title"], "member": member["name"], "due": _day(rng, 4, 1, 14)}
        then = {**wish, "due": _day(rng, 4, 15, 28)} if rng.random() < CHANGE_OF_MIND else None
        return Request("extend", wish, then=then, final=then or wish)

    def _shelve(self, draw: _Draw) -> Request:
        book = draw.rng.choice(draw.some(draw.books()))
        first, second = draw.rng.sample([s for s in SHELVES if s != book["shelf"]], 2)
        wish = {"title": book["title"], "shelf": first}
        then = {**wish, "shelf": second} if draw.rng.random() < CHANGE_OF_MIND else None
        return Request("shelve", wish, then=then, final=then or wish)

    def _join(self, draw: _Draw) -> Request:
        known = {m["name"] for m in draw.tables["members"].values()}
        known |= {b["author"] for b in draw.tables["books"].values()}
        names = [n for n in several(draw.split, "member", lambda: _person(draw.rng), 6) if n not in known]
        first, second = draw.rng.sample(CITIES, 2)
        wish = {"member": draw.some(names)[0], "city": first}
        then = {**wish, "city": second} if draw.rng.random() < CHANGE_OF_MIND else None
        return Request("join", wish, then=then, final=then or wish)

    def _leave(self, draw: _Draw) -> Request:
        wish = {"member": draw.rng.choice(draw.some([m for m in draw.members() if not draw.loans_of(m)]))["name"]}
        return Request("leave", wish, final=wish)

    def _question(self, draw: _Draw) -> Request:
        if draw.rng.random() < 0.4:
            book, member, loan = draw.rng.choice(draw.some(draw.lent()))
            return Request("question_due", {"title": book["title"], "member": member["name"]}, answer=loan["due"])
        book, field = draw.rng.choice(draw.some(draw.books())), draw.rng.choice(("shelf", "author"))
        return Request("question", {"field": field, "title": book["title"]}, answer=book[field])

    def _forbidden(self, draw: _Draw) -> Request:
        rng, variant = draw.rng, draw.rng.choice(("lend", "extend", "leave", "join"))
        if variant == "lend":
            member = rng.choice(draw.some([m for m in draw.members() if not draw.may_borrow(m)]))
            books = [b for b in draw.books() if draw.left(b) and not draw.loan(b, member)]
            wish = {
                "title": rng.choice(draw.some(books))["title"],
                "member": member["name"],
                "due": _day(rng, 4, 1, 28),
            }
        elif variant == "extend":
            book, member, _ = rng.choice(draw.some([x for x in draw.lent() if x[2]["due"] < TODAY]))
            wish = {"title": book["title"], "member": member["name"], "due": _day(rng, 4, 1, 28)}
        elif variant == "leave":
            wish = {"member": rng.choice(draw.some([m for m in draw.members() if draw.loans_of(m)]))["name"]}
        else:
            wish = {"member": rng.choice(draw.some(draw.members()))["name"], "city": rng.choice(CITIES)}
        return Request(variant, wish, intent="forbidden")

    def gold(self, tables: Mapping[str, Any], requests: Sequence[Request]) -> list[Action]:
        """The calls of an expert: the row that a request is about, and the write."""
        actions: list[Action] = []
        for request in requests:
            wish = request.final or request.wish
            ids: dict[str, int] = {}
            if "title" in wish:
                book = next(b for b in tables["books"].values() if b["title"] == wish["title"])
                ids["book"] = book["id"]
                actions.append(Action("read_query", {"query": find_book(wish["title"])}))
            if "member" in wish:
                actions.append(Action("read_query", {"query": find_member(wish["member"])}))
                ids["member"] = next((m["id"] for m in tables["members"].values() if m["name"] == wish["member"]), 0)
            if request.final is not None:
                for loan in tables["loans"].values():
                    if (loan["book_id"], loan["member_id"]) == (ids.get("book"), ids.get("member")):
                        ids["loan"] = loan["id"]
                actions.append(Action("update_database", {"query": write_of(request.kind, wish, ids)}))
        return actions


class _Draw:
    """What requests are drawn from: books and members, and who has what."""

    def __init__(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> None:
        self.rng, self.tables, self.split = rng, tables, split

    def some(self, found: list[Any]) -> list[Any]:
        """The list, if it is not empty; else Infeasible."""
        if not found:
            raise Infeasible
        return found

    def books(self) -> list[Any]:
        """All books."""
        return list(self.tables["books"].values())

    def members(self) -> list[Any]:
        """All members."""
        return list(self.tables["members"].values())

    def loans_of(self, member: Mapping[str, Any]) -> list[Any]:
        """A member's loans."""
        return [loan for loan in self.tables["loans"].values() if loan["member_id"] == member["id"]]

    def may_borrow(self, member: Mapping[str, Any]) -> bool:
        """Whether the rules let a member borrow."""
        loans = self.loans_of(member)
        return len(loans) < MOST_LOANS and all(loan["due"] >= TODAY for loan in loans)

    def left(self, book: Mapping[str, Any]) -> bool:
        """Whether a copy is there."""
        return bool(sum(n["book_id"] == book["id"] for n in self.tables["loans"].values()) < book["copies"])

    def loan(self, book: Mapping[str, Any], member: Mapping[str, Any]) -> bool:
        """Whether a member has a book."""
        return any(loan["book_id"] == book["id"] for loan in self.loans_of(member))

    def lent(self) -> list[tuple[Any, Any, Any]]:
        """(book, member, loan) of all loans."""
        return [
            (book, member, loan)
            for book in self.books()
            for member in self.members()
            for loan in self.tables["loans"].values()
            if (loan["book_id"], loan["member_id"]) == (book["id"], member["id"])
        ]


def find_book(title: str) -> str:
    """The query for a book."""
    return f"SELECT id, title, author, shelf, copies FROM books WHERE title = '{title}'"


def find_member(name: str) -> str:
    """The query for a member."""
    return f"SELECT id, name, city FROM members WHERE name = '{name}'"


def write_of(kind: str, wish: Mapping[str, str], ids: Mapping[str, int]) -> str:
    """The statement that fulfils a wish. ``ids``: of the book, the member and the loan, where there are such."""
    if kind == "lend":
        values = f"({ids['book']}, {ids['member']}, '{wish['due']}')"
        return f"INSERT INTO loans (book_id, member_id, due) VALUES {values}"
    if kind == "bring_back":
        return f"DELETE FROM loans WHERE id = {ids['loan']}"
    if kind == "extend":
        return f"UPDATE loans SET due = '{wish['due']}' WHERE id = {ids['loan']}"
    if kind == "shelve":
        return f"UPDATE books SET shelf = '{wish['shelf']}' WHERE id = {ids['book']}"
    if kind == "leave":
        return f"DELETE FROM members WHERE id = {ids['member']}"
    return f"INSERT INTO members (name, city) VALUES ('{wish['member']}', '{wish['city']}')"


def _many(make: Any, count: int) -> list[str]:
    """Some of what ``make`` makes, each once."""
    return list(dict.fromkeys(make() for _ in range(2 * count)))[:count]


def _title(rng: random.Random) -> str:
    return f"The {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"


def _person(rng: random.Random) -> str:
    return f"{rng.choice(FIRST_NAMES[:30])} {rng.choice(LAST_NAMES[:30])}"


def _day(rng: random.Random, month: int, first: int, last: int) -> str:
    return f"2026-{month:02d}-{rng.randint(first, last):02d}"
