"""`muarl domains check` on documents: what is wrong with a folder is told, and nothing where nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muarl import Action, Database, Environment, KnowledgeDomain, Task, discoverable, load_environment, tool
from muarl.basics.errors import DataError
from muarl.domains.checking import CheckReport
from muarl.retrieval.documents import Document
from muarl_tools.checks.environment.documents import documents
from muarl_tools.checks.environment.samples import CheckContext


class Marina(KnowledgeDomain):
    """Berths."""

    name = "marina"
    policy = "Search the documents."
    database = Database({"boats": {"a": {"place": "water"}}})
    top_k = 2

    @tool
    def get_boat(self, boat_name: str) -> dict[str, Any]:
        """A boat."""
        return self.db.boats[boat_name]

    @discoverable(writes=True)
    def move_boat_17(self, boat_name: str) -> str:
        """Move a boat."""
        return "moved"


def found(folder: Path | tuple[Document, ...], files: dict[str, str] | None = None) -> list[str]:
    """The problems of a folder with these files."""
    for name, text in (files or {}).items():
        assert isinstance(folder, Path)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    tasks = {"test": [Task("t", "marina", "say hello", (Action("get_boat", {"boat_name": "a"}),))]}
    place = Environment(name="marina", domain=Marina(documents=folder), tasks=tasks)
    return [str(problem) for problem in documents(CheckContext(place)).problems]


FINE = {
    "desk/moving.md": "# Moving boats\n\nBy `move_boat_17`, for `boat_name` of `get_boat(boat_name)`.",
    "crane.md": "# Crane days\n\nOn Fridays. See [moving](desk/moving.md), [[Moving boats]], [web](https://e.org/a.md).",
    "old.md": "---\ntitle: Prices\neffective_until: 2025-12-31\n---\nA day costs $4.",
    "new.md": "---\ntitle: Prices\neffective_from: 2026-01-01\nreplaces: old\n---\nA day costs $5.",
}


def test_nothing_is_wrong_with_a_sound_folder(tmp_path: Path) -> None:
    assert found(tmp_path, FINE) == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"x.md": "# Pumps\n\nCall `pump_out_99` then."},
            "document x.md: it names the tool 'pump_out_99', which there is",
        ),
        (
            {"x.md": "# Pumps\n\nThe tool move_boat_71 does."},
            "'move_boat_71', which there is not; did you mean 'move_boat",
        ),
        ({"x.md": "# Pumps\n\nThen `move_boats_17`."}, "did you mean 'move_boat_17'?"),
        ({"x.md": "# Pumps\n\nDone by `pump(boat)`."}, "it names the tool 'pump'"),
        ({"desk/moving.md": "# Moving boats\n\nBy hand."}, "tool move_boat_17 (test_documents.py, line"),
        (
            {"x.md": "# Pumps\n\n[a](../crane.md) [b](desk/moving.markdown)"},
            "it links to ../crane.md, which there is not",
        ),
        ({"x.md": "# Pumps\n\n[[Pumping out]]"}, "it links to [[Pumping out]], which there is not"),
        ({"x.md": "---\nreplaces: older\n---\n# Pumps"}, "replaces 'older', which there is not; did you mean 'old'?"),
        ({"x.md": "---\nreplaces: x\n---\n# Pumps"}, "it replaces itself"),
        (
            {"x.md": "---\nEffective-From: 2026-01-01\n---\n# Pumps"},
            "has 'Effective-From', which means nothing here. Write",
        ),
        (
            {"a/x.md": "# Pumps\n\nA", "b/x.md": "# pumps\n\nB"},
            "document a/x.md: has the same title as b/x, and nothing",
        ),
    ],
)
def test_what_is_wrong_is_told_with_the_file(files: dict[str, str], said: str, tmp_path: Path) -> None:
    told = found(tmp_path, FINE | files)
    assert any(said in one for one in told), told
    assert all("crane.md:" not in one for one in told)


def test_a_document_that_others_hide_is_told(tmp_path: Path) -> None:
    same = {f"fees/{n}.md": f"---\ntitle: Fees {n}\nversion: {n}\n---\n" + "fees " * 40 for n in range(4)}
    hidden = {"fees/late.md": "---\ntitle: Fees\nversion: 9\n---\nAbout late ones.\n" + "word " * 400}
    told = found(tmp_path, FINE | same | hidden)
    assert ["document fees/late.md: no search with words of its title, 'Fees', shows it" in one for one in told] == [
        True
    ]


def test_documents_that_are_made_are_checked_as_well() -> None:
    made = (
        Document("a", "Moving", "Moving is done with move_boat_17."),
        Document("b", "Crane", "On Fridays."),
        Document("c", "Prices", "A day costs $5."),
    )
    told = found(made)
    assert [one.split(":")[0] for one in told] == ["document b", "document c"]
    assert all("no search with words of its title" in one for one in told)


def test_two_documents_with_one_id_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="crane.markdown and crane.md have the same id, 'crane'"):
        found(tmp_path, {**FINE, "crane.markdown": "# More"})


def test_what_has_no_documents_has_nothing_wrong_with_them() -> None:
    assert documents(CheckContext(load_environment("retail-generated"))) == CheckReport("none")
