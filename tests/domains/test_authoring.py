"""Mistakes that a domain's author makes: refused, or warned of once, with the tool and the remedy."""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import logging
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from muarl.basics.errors import ConfigError, DataError
from muarl.domains import authoring
from muarl.domains.authoring import AuthoringWarning
from muarl.domains.base import Domain, World
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.rewards.gold import check_tasks
from muarl.types.chat import ToolCall

BOOKS = {"books": {"b": {"title": "Emma", "lent": False}}}


@pytest.fixture(autouse=True)
def nothing_told_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authoring, "_told", set())


def call(world: World, name: str, /, **arguments: Any) -> Any:
    return world.call("assistant", ToolCall("1", name, arguments))


def written(tmp_path: Path, body: str, head: str = "") -> type[Domain]:
    """The class Own of a module of one's own, with ``body`` as its tools."""
    path = tmp_path / "own.py"
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    path.write_text(
        f"from __future__ import annotations\nfrom pathlib import Path\nfrom muarl.domains.base import Domain, tool\n"
        f"{head}\nclass Own(Domain):\n    database = {BOOKS!r}\n{indented}\n"
    )
    spec = importlib.util.spec_from_file_location("own_for_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = ModuleType("own_for_tests")
    module.__file__ = str(path)
    sys.modules["own_for_tests"] = module
    spec.loader.exec_module(module)
    found: type[Domain] = module.Own
    return found


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("own_for_tests", None)


WARNED = {
    "no docstring": ("@tool\ndef get(self, book: str) -> str:\n    return book", "tool get: it has no docstring"),
    "no hint": ('@tool\ndef get(self, book, n: int):\n    """Get."""\n    return book', "'book' without a type hint"),
    "another name": (
        '@tool\ndef get(self, book_id: str) -> str:\n    """Get.\n\n    bookid: which.\n    """\n    return book_id',
        r"describes the parameter 'bookid', which it does not have; it takes book_id; did you mean 'book_id'\?",
    ),
    "another name in a field": (
        '@tool\ndef get(self, book: str) -> str:\n    """Get.\n\n    :param boook: which.\n    """\n    return book',
        r"'boook'.*did you mean 'book'\?",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WARNED)
def test_what_can_be_played_on_with_is_warned_of_once_at_the_tool(mistake: str, tmp_path: Path) -> None:
    body, said = WARNED[mistake]
    own = written(tmp_path, body)
    with pytest.warns(AuthoringWarning, match=said) as caught:
        own()
    assert [(Path(w.filename).name, w.lineno) for w in caught] == [("own.py", 7)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own().world()


REFUSED = {
    "misspelt": ("book: Strng", r"parameter 'book' has the type hint 'Strng', which is not .*did you mean 'str'\?"),
    "not imported": ("book: list[Book]", "parameter 'book' has the type hint 'Book', which is not defined"),
    "own class": ("book: Shelf", "parameter 'book' has the type hint Shelf, which JSON has no form for.*dataclass"),
    "old TypedDict": ("book: Shape", "parameter 'book': Please use `typing_extensions.TypedDict`"),
    "broken": ("book: list[", "its type hints cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", [m for m in REFUSED if m != "old TypedDict" or sys.version_info < (3, 12)])
def test_hints_that_mean_nothing_are_refused_with_the_tool(mistake: str, tmp_path: Path) -> None:
    parameter, said = REFUSED[mistake]
    if mistake == "broken":
        parameter = "book: 'list['"
    body = f'@tool\ndef get(self, {parameter}) -> str:\n    """Get."""\n    return ""'
    head = "from typing import TypedDict\nclass Shelf:\n    pass\nclass Shape(TypedDict):\n    width: int\n"
    own = written(tmp_path, body, head)
    with pytest.raises(ConfigError, match=rf"tool get \(own\.py, line \d+\): {said}"):
        own()


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_tools_that_yield_are_refused(kind: str, tmp_path: Path) -> None:
    own = written(tmp_path, f'@tool\n{kind} get(self):\n    """Get."""\n    yield 1')
    with pytest.raises(ConfigError, match="tool get .*it yields.*return a list"):
        own()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('@tool\ndef get(book: str) -> str:\n    """Get."""\n    return book', "tool get .*first parameter is self"),
        ('@tool\ndef get() -> str:\n    """Get."""\n    return ""', "tool get .*first parameter is self"),
        (
            '@staticmethod\n@tool\ndef get(book: str) -> str:\n    """Get."""\n    return ""',
            "must be an ordinary method",
        ),
        ('@tool\n@staticmethod\ndef get(book) -> str:\n    """Get."""', "must be an ordinary method"),
        ('@tool\ndef world(self) -> str:\n    """Get."""\n    return ""', "cannot be called 'world'"),
        ('@tool\ndef db(self) -> str:\n    """Get."""\n    return ""', "own: a tool cannot be called 'db'"),
    ],
)
def test_tools_that_could_not_be_called_are_refused(body: str, said: str, tmp_path: Path) -> None:
    own = written(tmp_path, body)
    with pytest.raises(ConfigError, match=said):
        own()


@dataclass
class Loan:
    book: str
    days: int = 7


class Reader(BaseModel):
    name: str


class Desk(Domain):
    """Tools whose hints ask for more than JSON has."""

    database = BOOKS

    @tool
    def due(self, day: date) -> str:
        """When a book is due."""
        return f"{day.year}/{day.month}"

    @tool
    def lend(self, loan: Loan, reader: Reader, tags: set[str], pair: tuple[int, int], fee: Decimal) -> str:
        """Lend."""
        return f"{loan.days} {reader.name} {sorted(tags)} {pair} {fee + 1}"


def test_tools_get_what_their_hints_ask_for() -> None:
    world = Desk().world()
    assert call(world, "due", day="2026-11-22").content == "2026/11"
    assert "must be a string" in call(world, "due", day=3).content
    for wrong in ("tomorrow", "2026-02-31"):
        answer = call(world, "due", day=wrong)
        assert answer.error and answer.content.startswith("Error: argument 'day': ") and wrong in answer.content
        assert "\n" not in answer.content and "pydantic" not in answer.content
    given = {"loan": {"book": "b"}, "reader": {"name": "Ann"}, "tags": ["x", "x"], "pair": [1, 2], "fee": "1.5"}
    assert call(world, "lend", **given).content == "7 Ann ['x'] (1, 2) 2.5"
    assert "lacks the field 'book'" in call(world, "lend", **given | {"loan": {}}).content


class Careless(Domain):
    """Reads that change things, and results that are no JSON."""

    database = BOOKS

    @tool
    def lend(self, book: str, really: bool = True) -> dict[str, Any]:
        """Lend a book."""
        record = self.db.books[book]
        if really:
            record["lent"] = True
        return record

    @tool
    def add(self, book: str) -> str:
        """Add a book."""
        self.db.books[book] = {"title": "New"}
        return "added"

    @tool
    def drop(self, book: str) -> str:
        """Drop a book."""
        del self.db.books[book]
        return "dropped"

    @tool(kind="generic")
    def stamp(self) -> str:
        """Stamp all books."""
        for record in self.db.books.values():
            record["stamp"] = 1
        return "done"

    @tool
    def look(self, book: str) -> dict[str, Any]:
        """Look at a copy."""
        record = copy.deepcopy(self.db.books[book])
        record["title"] = record["title"].upper()
        return record

    @tool
    def words(self) -> Any:
        """All words."""
        return {"words": {"Emma"}, "day": date(2026, 11, 22), "price": Decimal("1.50")}

    @tool(writes=True)
    def mark(self, book: str) -> str:
        """Mark."""
        self.db.books[book]["marked"] = True
        return "marked"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("lend", {"book": "b"}, r"table 'books', record 'b'\).*not marked as writing.*is undone.*@tool\(writes=True\)"),
        ("add", {"book": "c"}, r"record 'c'\).*is undone"),
        ("drop", {"book": "b"}, r"record 'b'\).*is undone"),
        ("stamp", {}, r"record 'b'\).*is kept, but counts as no write"),
    ],
)
def test_a_change_by_a_tool_that_is_not_marked_is_told_once(name: str, arguments: dict[str, Any], said: str) -> None:
    domain = Careless()
    domain._tools[name].watched = 5
    world = domain.world()
    before = world.digest()
    with pytest.warns(AuthoringWarning, match=rf"tool {name}: it changes the database \(.*{said}") as caught:
        assert not call(world, name, **arguments).error
    assert len(caught) == 1 and Path(caught[0].filename).name == "test_authoring.py"
    assert (world.digest() == before) == (name != "stamp")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(domain.world(), name, **arguments)


def test_reads_of_copies_and_marked_writes_are_not_told() -> None:
    domain = Careless()
    for known in domain._tools.values():
        known.watched = 5
    world = domain.world()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "EMMA" in call(world, "look", book="b").content
        assert call(world, "mark", book="b").content == "marked"
        assert '"marked": true' in call(world, "lend", book="b", really=False).content, "after a change of its own"


def test_records_that_are_objects_are_compared_as_such() -> None:
    class Shelves(BaseModel):
        readers: dict[str, Reader] = {"r": Reader(name="Ann")}

    class Library(Domain):
        database = Shelves

        @tool
        def read(self) -> str:
            """Read."""
            return str(self.db.readers["r"].name)

        @tool
        def rename(self) -> str:
            """Rename."""
            self.db.readers["r"].name = "Bea"
            return "renamed"

    world = Library().world()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(world, "read").content == "Ann"
    with pytest.warns(AuthoringWarning, match="tool rename: it changes the database"):
        call(world, "rename")
    assert call(world, "read").content == "Ann"


@pytest.mark.filterwarnings("ignore:tool lend:muarl.domains.authoring.AuthoringWarning")
def test_gold_actions_whose_changes_are_undone_are_refused() -> None:
    task = Task("t", "careless", "", (Action("look", {"book": "b"}), Action("lend", {"book": "b"})))
    with pytest.raises(
        DataError, match=r"task t: actions\[1\], lend\(.*'books', record 'b'.*not marked @tool\(writes=True"
    ):
        check_tasks(Careless(), [task])
    allowed = Careless()
    allowed.allow_failing_gold = True
    check_tasks(allowed, [task])
    check_tasks(Careless(), [Task("u", "careless", "", (Action("look", {"book": "b"}),))])
    check_tasks(Careless(), [Task("v", "careless", "", (Action("mark", {"book": "b"}), Action("lend", {"book": "b"})))])


def test_results_that_are_no_json_are_told_once() -> None:
    world = Careless().world()
    with pytest.warns(
        AuthoringWarning, match=r"tool words: it returns a set, .* agent reads .*Emma.*: return"
    ) as caught:
        content = call(world, "words").content
    assert len(caught) == 1 and '"2026-11-22"' in content and '"1.50"' in content
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(world, "words")


COROUTINE = "the tool gave back a coroutine: define it, and whatever decorates it, with async def"


class Buggy(Domain):
    database = BOOKS

    @tool
    def attribute(self, book: str) -> str:
        """A typo."""
        return self.db.books[book].titel

    @tool
    def table(self) -> str:
        """A table that is not there."""
        return str(self.db["bookz"])

    @tool
    def wrapped(self) -> Any:
        """A coroutine in disguise."""
        return asyncio.sleep(0)

    @tool
    def refuse(self) -> str:
        """Refuse."""
        raise ValueError("the library is closed")

    @tool
    def helper(self) -> str:
        """A bug in a helper."""
        return self._helper(None)

    def _helper(self, text: Any) -> str:
        return "a" + text


@pytest.mark.parametrize(
    ("name", "arguments", "observed", "logged"),
    [
        ("attribute", {"book": "b"}, "'dict' object has no attribute 'titel'", "AttributeError"),
        ("attribute", {"book": "z"}, "'z'", "KeyError"),
        ("table", {}, "'bookz'", "The database has the tables books."),
        (
            "wrapped",
            {},
            "the tool gave back a coroutine: define it, and whatever decorates it, with async def",
            "base.py",
        ),
        ("helper", {}, 'can only concatenate str (not "NoneType") to str', "in _helper"),
    ],
)
def test_a_bug_in_a_tool_reaches_its_author_once(
    name: str, arguments: dict[str, Any], observed: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = Buggy().world()
    for _ in range(3):
        assert call(world, name, **arguments).content == f"Error: {observed}", "what the model reads stays as it was"
    records = [r for r in caplog.records if r.name == "muarl.domains.authoring"]
    assert len(records) == 1 and records[0].levelno == logging.ERROR
    assert f"Buggy.{name} raised" in records[0].getMessage() and "raise ValueError" in records[0].getMessage()
    assert "Traceback" in caplog.text and logged in caplog.text


def test_a_refusal_is_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    world = Buggy().world()
    assert call(world, "refuse").content == "Error: the library is closed"
    assert call(world, "refuse", book=1).error and call(world, "refus").error
    assert not caplog.records
