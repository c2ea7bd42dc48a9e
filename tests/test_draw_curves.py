"""The picture of training curves on the results page, drawn from run folders."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from muarl.observe.rundir import RunDirectory
from support.page_examples import module_of


@pytest.fixture
def script(repository: Path) -> ModuleType:
    return module_of(repository / "docs" / "draw_curves.py")


@pytest.fixture
def runs(tmp_path: Path) -> list[RunDirectory]:
    made = []
    for seed, success in enumerate((0.6, 0.9, 0.3)):
        run = RunDirectory(tmp_path, f"x-seed{seed}")
        for step in range(20):
            run.log(
                {"success": success * step / 20, "turns": 5.0 + step, "entropy": 2.0 - 0.05 * step},
                phase="rl",
                step=step,
            )
        run.log({"success": success}, phase="validation", step=19)
        run.write_summary({"rl": {"success": success}, "seed": seed})
        made.append(run)
    return made


def test_curves_are_one_picture_with_a_band_for_the_seeds(script: ModuleType, runs: list[RunDirectory]) -> None:
    svg = ET.fromstring(script.picture(runs))
    ns = {"s": "http://www.w3.org/2000/svg"}
    titles = [t.text for t in svg.findall("s:text", ns) if t.get("class") == "title"]
    assert len(titles) == 3 and len(svg.findall("s:svg", ns)) == 3
    bands = [p for p in svg.iter("{http://www.w3.org/2000/svg}path") if "spread" in p.get("class", "")]
    assert len(bands) == 4, "three metrics in training, one on held-out tasks"
    assert "href" not in script.picture(runs), "it needs no other file"


def test_the_page_gets_the_picture_and_scores_and_keeps_the_rest(
    script: ModuleType, runs: list[RunDirectory], tmp_path: Path
) -> None:
    page = tmp_path / "docs" / "results.md"
    page.parent.mkdir()
    page.write_text(f"# Results\n\n{script.BEGIN}\nNot drawn yet.\n{script.END}\n\nMore.\n")
    for _ in range(2):  # drawing again replaces it
        script.draw(runs, page)
        text = page.read_text()
        assert text.startswith("# Results\n") and text.endswith("\n\nMore.\n") and "Not drawn yet" not in text
        assert text.count("![Training curves, seeds 0, 1, 2](images/training-curves.svg)") == 1
        assert "| Held-out success after RL | 60% | 30% to 90% |" in text
    assert (page.parent / "images" / "training-curves.svg").is_file()


def test_what_cannot_be_drawn_is_said_and_nothing_is_written(
    script: ModuleType, runs: list[RunDirectory], tmp_path: Path
) -> None:
    page = tmp_path / "results.md"
    page.write_text("# Results\n")
    with pytest.raises(ValueError, match="has no lines"):
        script.draw(runs, page)
    page.write_text(f"{script.BEGIN}\n{script.END}\n")
    with pytest.raises(ValueError, match="training steps"):
        script.draw([RunDirectory(tmp_path, "empty")], page)
    assert not (tmp_path / "images").exists()


def test_the_results_page_has_a_place_for_the_curves(script: ModuleType) -> None:
    text = script.PAGE.read_text(encoding="utf-8")
    assert text.index(script.BEGIN) < text.index(script.END)
