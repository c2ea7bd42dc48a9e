"""The figure of the known model's page, drawn from the runs of its experiment."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from muarl.config.load import load_config
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_tools.experiments.reproduce.measuring import Reproduction, measure
from muarl_tools.experiments.reproduce.plan import evaluations
from support.page_examples import module_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def script(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return module_of(repository / "docs" / "draw_known_model.py")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Two seeds of base, cold start and both in one environment; one of ten tasks is done with a violation."""
    own = ["reproduce.unseen=[]", "reproduce.user_traits=[hard]", "reproduce.arms=[cold, both]"]
    runs = tmp_path_factory.mktemp("runs")
    config = load_config("known-model", [f"runs_dir={runs}", *own, "reproduce.further_cold_start=0"])
    solved = {"base": 2, "cold": 4, "both": 8}
    for one in evaluations(config, [0, 1]):
        run = RunDirectory(one.stage.config.runs_dir, one.stage.name)
        run.write_config(one.stage.config.model_dump(mode="json"))
        run.write_status("finished")
        run.write_summary(
            {"do_nothing": 0.1, "always_transfer": 0.0, "audit": {"catastrophic": {"value": 0.3, "n": 10}}}
        )
        turns = [Turn(Message("user", "hi")), Turn(Message("assistant", "bye"))]
        run.write_episodes(
            "eval",
            [
                Episode(
                    f"e{n}",
                    f"retail-generated:{n}",
                    "retail-generated",
                    turns,
                    StopReason.USER_STOP,
                    verdict=Verdict(float(n < solved[one.arm]), audit={"violations": float(n == 0)}),
                )
                for n in range(10)
            ],
        )
    return measure(config, [0, 1])


def test_the_figure_has_a_panel_a_user_and_two_bars_an_arm(script: ModuleType, measured: Reproduction) -> None:
    shown = script.panels(measured)
    assert [panel.title for panel in shown] == ["retail, easy users", "retail, hard users"]
    label, success, clean = shown[0].bars[-1]
    assert (label, success.value, clean.value, shown[0].floor) == ("both", 0.8, 0.7, 0.1)
    drawn = ET.fromstring(script.picture(shown))
    kinds = [shape.get("class") for shape in drawn.iter()]
    assert kinds.count("all") == kinds.count("clean") == 6 and kinds.count("floor") == 2
    assert kinds.count("seed") == 2 * 2 * 2, "the base has one run for all seeds"
    heights = [float(r.get("height", 0)) for r in drawn.iter(f"{SVG}rect") if r.get("class") == "all"]
    assert heights[2] == pytest.approx(4 * heights[0])


def test_the_page_is_written_again_and_nothing_else_of_it(
    script: ModuleType, measured: Reproduction, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{script.BEGIN}\nold\n{script.END}\n\nafter\n")
    script.draw(measured, page)
    first = page.read_text()
    assert first.startswith("# Before\n") and first.endswith("\nafter\n") and "\nold\n" not in first
    assert "| easy | do nothing | 10.0 |" in first
    assert "| easy | both | 80.0 | 49.0 to 94.3 | 80.0, 80.0 | 70.0 | 70.0, 70.0 |" in first
    assert "| easy | both | – | 30.0 | – |" in first
    assert "| both – cold start only | hard | +40.0 (+10.0 to +70.0) |" in first
    script.draw(measured, page)
    assert page.read_text() == first and (tmp_path / script.PICTURE).exists()
    page.write_text("no marks")
    with pytest.raises(ValueError, match="has no lines"):
        script.draw(measured, page)


def test_an_experiment_without_evaluations_is_named(script: ModuleType, tmp_path: Path) -> None:
    config = load_config("known-model", [f"runs_dir={tmp_path}"])
    with pytest.raises(ValueError, match="no evaluation"):
        script.picture(script.panels(measure(config, [0])))
