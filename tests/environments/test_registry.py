"""Environments are found by name: muarl's own, installed plug-ins, and code that the person has named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from muarl.basics.errors import ConfigError
from muarl.environments import registry
from muarl.environments.environment import Environment

LIBRARY = '''
from muarl.domains.tasks import Action, Task
from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment


class Library(Domain):
    """Books are lent."""

    name = "library"
    policy = "Lend a book to a member who asks for it."
    database = {"books": {"B1": {"lent_to": None}}}

    @tool(kind="write")
    def lend(self, book: str, member: str) -> str:
        """Lend a book.

        Args:
            book: Its id.
            member: Who takes it.
        """
        self.db["books"][book]["lent_to"] = member
        return "lent"


def task(split: str, index: int) -> Task:
    member = f"M{index}"
    return Task(
        id=f"library-{split}-{index}", domain="library", scenario=f"You are {member} and want to borrow book B1.",
        actions=(Action("lend", {"book": "B1", "member": member}),),
    )


LIBRARY = Environment(name="library", domain=Library, tasks=task)
'''


@pytest.fixture(autouse=True)
def own_approvals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test approves counts for it alone."""
    monkeypatch.setattr(registry, "_approved", set())
    registry._plugins.cache_clear()
    yield
    registry._plugins.cache_clear()


def write(path: Path, text: str = LIBRARY) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", registry.built_in())
def test_every_environment_of_muarl_is_found_by_its_name_and_says_what_it_is(name: str) -> None:
    found = registry.find(name)
    assert found.name == name and found.about.endswith(".")
    assert found.practice is None or found.practice in registry.built_in()


def test_listing_names_imports_none_of_them() -> None:
    code = """
        import sys
        from muarl.environments.registry import names
        assert "retail-generated" in names() and "tau2-telecom" in names()
        found = [m for m in sys.modules if m.startswith(("torch", "transformers", "muarl.domains", "muarl.users"))]
        assert not found, found
    """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True, timeout=120)


def test_finding_one_environment_imports_neither_torch_nor_other_domains() -> None:
    code = """
        import sys
        from muarl.environments.registry import find
        find("clinic-generated").make_tasks("train", 1)
        others = ("scenarios.hotel", "airline", "bfcl")
        wrong = ("torch", "transformers", *(f"muarl.domains.{name}" for name in others))
        found = [m for m in sys.modules if m.startswith(wrong)]
        assert not found, found
    """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True, timeout=120)


def test_a_file_is_found_once_the_person_has_named_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "library.py")
    monkeypatch.chdir(tmp_path)
    reference = registry.approve("./library.py:LIBRARY")
    assert reference == f"{tmp_path.resolve() / 'library.py'}:LIBRARY"
    found = registry.find("library.py:LIBRARY")
    assert isinstance(found, Environment) and found.name == "library"
    assert registry.find(reference) is found and registry.approved() == (reference,)
    first, second = found.make_tasks("train", 2, start=3)
    assert (first.id, second.id) == ("library-train-3", "library-train-4")
    assert found.make_domain().world(first).digest()


def test_code_that_nobody_has_approved_is_never_imported(tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    file = write(tmp_path / "hostile.py", f"open({str(mark)!r}, 'w').close()\n{LIBRARY}")
    with pytest.raises(ConfigError, match=r"--domain .*hostile.py:LIBRARY on the command line"):
        registry.find(f"{file}:LIBRARY")
    registry.approve(f"{file}:OTHER")  # another name of the same file is another thing
    with pytest.raises(ConfigError, match="code that would be imported"):
        registry.find(f"{file}:LIBRARY")
    assert not mark.exists()
    registry.load_reference(f"{file}:LIBRARY")
    assert mark.exists()


def test_a_module_is_found_by_its_dotted_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "my_library" / "books.py")
    write(tmp_path / "my_library" / "__init__.py", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="code that would be imported"):
        registry.find("my_library.books:LIBRARY")
    assert "my_library" not in sys.modules
    assert registry.load_reference("my_library.books:LIBRARY").name == "library"


def test_an_installed_plug_in_is_simply_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "library_env.py")
    write(
        tmp_path / "library_env-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: library-env\nVersion: 1.0\n"
    )
    points = "[muarl.environments]\nlibrary = library_env:LIBRARY\nretail-generated = library_env:LIBRARY\n"
    write(tmp_path / "library_env-1.0.dist-info" / "entry_points.txt", points)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._plugins.cache_clear()
    assert "library" in registry.names() and "library_env" not in sys.modules
    assert registry.find("library").name == "library"
    assert registry.find("retail-generated").name == "retail-generated"  # a plug-in takes no name of muarl's own
    assert registry.names().count("retail-generated") == 1


def test_two_plug_ins_of_one_name_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("one", "two"):
        info = tmp_path / f"{package}-1.0.dist-info"
        write(info / "METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        write(info / "entry_points.txt", f"[muarl.environments]\nlibrary = {package}:LIBRARY\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._plugins.cache_clear()
    with pytest.raises(
        ConfigError, match="two installed packages have an environment 'library': (one and two|two and one)"
    ):
        registry.find("library")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import absent_module_of_mine", r"broken.py:LIBRARY cannot be imported: ModuleNotFoundError: .*\(line 1\)"),
        ("x = 1\ndef (", r"cannot be imported: SyntaxError: .*\(line 2\)"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        (LIBRARY.replace("LIBRARY =", "BOOKS ="), "there is no LIBRARY in .*; it has BOOKS"),
        ("x = 1", "there is no LIBRARY in .*; it defines no Environment"),
        ("LIBRARY = 3", "LIBRARY is a int, not an Environment"),
        ("from muarl.domains.base import Domain\nclass LIBRARY(Domain): ...", "is a Domain, which has no tasks yet"),
        (LIBRARY.replace(", tasks=task", ""), "environment library: tasks are missing"),
        (LIBRARY.replace('name="library", domain', 'name="my library", domain'), "a word without spaces"),
        (LIBRARY.replace("domain=Library", "domain=3"), "environment library: domain must be a Domain class"),
    ],
)
def test_what_is_wrong_with_the_authors_file_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        registry.load_reference(f"{write(tmp_path / 'broken.py', text)}:LIBRARY")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("retial-generated", "did you mean retail-generated"),
        ("clinic.py", "say which of its environments: clinic.py:NAME"),
        ("a b:c d", "must be FILE.py:NAME or package.module:NAME"),
        ("clinic.py:", "must be FILE.py:NAME or package.module:NAME"),
        ("os system:x", "must be FILE.py:NAME or package.module:NAME"),
    ],
)
def test_a_name_that_nobody_has_gets_the_nearest_one_or_the_form(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        registry.find(name)


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        registry.load_reference(f"{tmp_path / 'absent.py'}:X")


def test_a_file_may_import_what_lies_beside_it_and_nothing_else_can(tmp_path: Path) -> None:
    for place, said in (("one", "first"), ("two", "second")):
        write(tmp_path / place / "wording.py", f"ABOUT = {said!r}")
        text = "from wording import ABOUT\n" + LIBRARY.replace(
            'name="library", domain', 'name="library", about=ABOUT, domain'
        )
        write(tmp_path / place / "library.py", text)
    before = list(sys.path)
    first, second = (registry.load_reference(f"{tmp_path / p / 'library.py'}:LIBRARY") for p in ("one", "two"))
    assert (first.about, second.about) == ("first", "second")
    assert sys.path == before


def test_a_module_without_a_file_is_the_place_of_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_foreign", [ModuleType("namespace")])
    with pytest.raises(KeyError) as raised:
        {}["elsewhere"]
    assert registry.place_in_code(raised.value) is None
