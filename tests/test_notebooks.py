"""The notebooks of examples/: small, without outputs, and they run from the first cell to the last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the dev extra")

NAMES = ("train_in_the_shop.ipynb", "judge_two_agents.ipynb")
CELLS = 12


def read(repository: Path, name: str) -> Any:
    return nbformat.read(repository / "examples" / "notebooks" / name, as_version=4)


def test_these_are_all(repository: Path) -> None:
    assert sorted(p.name for p in (repository / "examples" / "notebooks").glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_small_and_hold_no_outputs(repository: Path, name: str) -> None:
    book = read(repository, name)
    nbformat.validate(book)
    assert 5 <= len(book.cells) <= CELLS
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert book.cells[0].cell_type == "markdown"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_they_run(repository: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = pytest.importorskip("nbclient", reason="needs the dev extra")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    for other in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(other, str(tmp_path / other.lower()))
    book = read(repository, name)
    where = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(book, timeout=1800, kernel_name="python3", resources=where).execute()
    outputs = (o.get("text", "") for c in book.cells if c.cell_type == "code" for o in c.outputs)
    printed = " ".join(" ".join(outputs).split())
    wanted = {
        "train_in_the_shop.ipynb": ("step 5 success", "rl success", "assistant"),
        "judge_two_agents.ipynb": (
            "judged-expert hard success",
            "catastrophic failures",
            "judged-expert is better than judged-learner",
        ),
    }[name]
    assert [text for text in wanted if text not in printed] == []
