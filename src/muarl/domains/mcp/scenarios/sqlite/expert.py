"""The scripted agent of the library."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.mcp.scenario import read_files
from muarl.domains.mcp.scenarios.sqlite.tasks import MOST_LOANS, TODAY, find_book, find_member, write_of
from muarl.domains.mcp.serving import DeskExpert, Say, Write
from muarl.domains.mcp.talk import Frame

TALK = read_files(Path(__file__).parent).talk
Row = dict[str, Any]


class SqliteExpert(DeskExpert):
    """Serves one conversation at the library."""

    talk = TALK
    guesses: ClassVar[Mapping[str, str]] = {"due": "2026-04-06", "shelf": "A1"}

    def serve(self, frame: Frame) -> Write | Say:
        """What a request needs."""
        step: Write | Say = getattr(self, f"_{frame.intent}")(frame)
        return step

    def _question(self, frame: Frame) -> Say:
        field = self.need(frame, "field")
        book = self._book(frame)
        return Say(f'The {field} of "{book["title"]}" is {book.get(field, "not known")}.')

    def _question_due(self, frame: Frame) -> Say:
        book, member = self._book(frame), self._member(frame)
        loan = self._loan(frame, book, member)
        return Say(f'The loan of "{book["title"]}" to {member["name"]} is due on {loan["due"]}.')

    def _lend(self, frame: Frame) -> Write:
        member = self._member(frame)
        loans = self._rows(f"SELECT due FROM loans WHERE member_id = {member['id']}")
        if len(loans) >= MOST_LOANS:
            self.refuse(frame, f"{member['name']} has {len(loans)} loans already")
        elif any(loan["due"] < TODAY for loan in loans):
            self.refuse(frame, f"{member['name']} has a loan that is overdue")
        book = self._book(frame)
        out = self._rows(f"SELECT count(*) AS out FROM loans WHERE book_id = {book['id']}")
        if out and out[0]["out"] >= book["copies"]:
            self.gone(frame, "title", f'of "{book["title"]}" no copy is left', "Which other book should it be?")
        self.need(frame, "due")
        return self._update(frame, {"book": book["id"], "member": member["id"]})

    def _bring_back(self, frame: Frame) -> Write:
        book, member = self._book(frame), self._member(frame)
        return self._update(frame, {"loan": self._loan(frame, book, member)["id"]})

    def _extend(self, frame: Frame) -> Write:
        book, member = self._book(frame), self._member(frame)
        loan = self._loan(frame, book, member)
        if loan["due"] < TODAY:
            self.refuse(frame, f"this loan is overdue since {loan['due']}")
        self.need(frame, "due")
        return self._update(frame, {"loan": loan["id"]})

    def _shelve(self, frame: Frame) -> Write:
        book = self._book(frame)
        self.need(frame, "shelf")
        return self._update(frame, {"book": book["id"]})

    def _leave(self, frame: Frame) -> Write:
        member = self._member(frame)
        loans = self._rows(f"SELECT due FROM loans WHERE member_id = {member['id']}")
        if loans:
            self.refuse(frame, f"{member['name']} still has {len(loans)} on loan")
        return self._update(frame, {"member": member["id"]})

    def _join(self, frame: Frame) -> Write:
        name = self.need(frame, "member")
        if self._rows(find_member(name)):
            self.refuse(frame, f"{name} is a member already")
        self.need(frame, "city")
        return self._update(frame, {})

    def _update(self, frame: Frame, ids: Mapping[str, int]) -> Write:
        return self.propose(frame, ("update_database", {"query": write_of(frame.intent, frame.slots, ids)}))

    def _book(self, frame: Frame) -> Row:
        if "title" not in frame.slots and "writer" in frame.slots:
            written = self._rows(f"SELECT id, title FROM books WHERE author = '{frame.slots['writer']}'")
            del frame.slots["writer"]
            frame.slots |= {"title": written[0]["title"]} if len(written) == 1 else {}
        title = self.need(frame, "title")
        found = self._rows(find_book(_plain(title)))
        return found[0] if found else self.gone(frame, "title", f'there is no book "{title}"')

    def _member(self, frame: Frame) -> Row:
        name = self.need(frame, "member")
        found = self._rows(find_member(_plain(name)))
        return found[0] if found else self.gone(frame, "member", f"there is no member {name}")

    def _loan(self, frame: Frame, book: Row, member: Row) -> Row:
        where = f"book_id = {book['id']} AND member_id = {member['id']}"
        found = self._rows(f"SELECT id, due FROM loans WHERE {where}")
        return found[0] if found else self.gone(frame, "member", f'there is no loan of "{book["title"]}" to them')

    def _rows(self, query: str) -> list[Row]:
        """The rows of a query; the server writes them as Python's literals."""
        text = self.look("read_query", query=query).text
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return []
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []

    def slipped(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """A table's name with its last letter missing."""
        query = str(arguments["query"])
        return {"query": query.replace(" FROM books ", " FROM book ").replace(" FROM members ", " FROM member ")}


def _plain(text: str) -> str:
    """A caller's words as they may stand between quotation marks of SQL."""
    return text.replace("'", "''")
