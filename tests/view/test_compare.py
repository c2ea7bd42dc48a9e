"""Runs beside each other: what sets them apart, and how each did on held-out tasks."""

from __future__ import annotations

from pathlib import Path

from muarl_tools.view.compare import differing
from muarl_tools.view.layout import ServerLinks
from muarl_tools.view.overview import overview
from muarl_tools.view.routes import page_of
from support.viewing import indexed, make_run


def test_only_settings_that_differ_are_named() -> None:
    one = {"name": "a", "seed": 0, "rl": {"lr": 1e-4, "clip": 0.2}, "tags": []}
    two = {"name": "b", "seed": 1, "rl": {"lr": 1e-4, "clip": 0.3, "new": True}, "tags": []}
    assert differing([one, two]) == {"seed": ["0", "1"], "rl.clip": ["0.2", "0.3"], "rl.new": [None, "true"]}
    assert differing([one, {**one, "name": "c", "runs_dir": "x"}]) == {}


def test_a_section_of_one_side_alone_is_one_row() -> None:
    asked = {"model": "m", "timeout": 300.0, "retry": {"attempts": 6}}
    sampled, served = {"eval": {"endpoint": None, "tasks": 20}}, {"eval": {"endpoint": asked, "tasks": 20}}
    whole = '{"model": "m", "timeout": 300.0, "retry": {"attempts": 6}}'
    assert differing([sampled, served]) == {"eval.endpoint": ["null", whole]}
    assert differing([{"eval": {"tasks": 20}}, served]) == {"eval.endpoint": [None, whole]}
    other = {"eval": {"endpoint": {**asked, "model": "n"}, "tasks": 20}}
    assert differing([served, other]) == {"eval.endpoint.model": ['"m"', '"n"']}


def test_compared_runs_show_their_settings_and_held_out_success(tmp_path: Path) -> None:
    first, second = make_run(tmp_path, "one"), make_run(tmp_path, "two")
    config = second.read_config().replace("tiny", "small")
    (second.path / "config.yaml").write_text(config)
    library = indexed(tmp_path, first.path, second.path)
    page = overview(ServerLinks(), library)
    assert "Settings that differ" in page and "domain.size" in page and "&quot;small&quot;" in page
    table = page[page.index('id="settings"') :]
    assert 'class="n"' not in table[: table.index("</table>")], "heads stand over their values, which are no numbers"
    assert "one, held out" in page and "two, held out" in page
    assert "Settings that differ" not in overview(ServerLinks(), library, library.runs[0])


def test_a_run_that_only_validated_has_a_held_out_figure(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, name) for name in ("one", "two")]
    for run in runs:
        for name in ("eval-before", "eval-after"):
            (run.episodes / f"{name}.jsonl").unlink()
        run.log({"success": 0.625}, phase="validation", step=3)
    assert "62%" in overview(ServerLinks(), indexed(tmp_path, *(run.path for run in runs)))


def test_the_address_of_a_run_is_its_own_overview(tmp_path: Path) -> None:
    library = indexed(tmp_path, *(make_run(tmp_path, name).path for name in ("one", "two")))
    page = page_of(ServerLinks(), library, ["runs", "two"], {})
    assert page is not None and "<h1>two</h1>" in page
    assert page_of(ServerLinks(), library, ["runs", "three"], {}) is None
