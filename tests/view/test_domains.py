"""Runs with several domains in the viewer: curves, stages and episodes by domain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from muarl.observe.rundir import RunDirectory
from muarl_tools.view import queries
from muarl_tools.view.queries import Filter
from support.viewing import indexed, play, writing_tasks
from support.viewing_pages import look

NAMES = ("retail-generated", "clinic")


def make_mixed(root: Path, name: str, solved: tuple[float, float]) -> RunDirectory:
    """A run whose episodes are of two domains; ``solved``: the shares at its end."""
    with RunDirectory(root, name) as run:
        run.write_config({"name": name, "domain": [{"name": n} for n in NAMES], "rl": {"steps": 2}})
        for file, good in (("eval-before", 0.0), ("eval-after", 1.0)):
            episodes = []
            for n, task in enumerate(writing_tasks("test", 4)):
                share = solved[n % 2]
                episode = play(task, good * share > n / 4, f"evaluation/{task.id}")
                episode.tags["domain"] = NAMES[n % 2]
                episodes.append(episode)
            run.write_episodes(file, episodes)
        for step in range(2):
            figures = {f"domain/{n}/success": 0.1 * step + 0.2 * i for i, n in enumerate(NAMES)}
            run.log({"success": 0.2, "reward": 0.2, "episodes": 8.0, **figures}, phase="rl", step=step)
    return run


def test_the_overview_has_curves_and_stages_by_domain(tmp_path: Path) -> None:
    run = make_mixed(tmp_path, "mixed", (1.0, 1.0))
    page = look(indexed(tmp_path, run.path))
    section = page.html[page.html.index('id="domains"') :].partition("</section>")[0]
    assert all(name in section for name in NAMES)
    assert "path" in section and "d0" in section and "d1" in section
    links = re.findall(r'href="([^"]*domain=[^"]*)"', section)
    assert any("stage=after" in link and "domain=clinic" in link for link in links)


def test_episodes_are_filtered_by_domain(tmp_path: Path) -> None:
    run = make_mixed(tmp_path, "mixed", (1.0, 1.0))
    library = indexed(tmp_path, run.path)
    with library.runs[0].store.reading() as db:
        assert queries.count(db, Filter.of({"domain": "clinic"})) == 4
        assert dict(queries.facets(db)["domain"]) == {"clinic": 4, "retail-generated": 4}
        assert {domain for domain, _ in queries.stages_by_domain(db)} == set(NAMES)


@pytest.mark.slow
def test_several_runs_are_compared_by_domain(tmp_path: Path) -> None:
    runs = [make_mixed(tmp_path, "first", (1.0, 0.0)), make_mixed(tmp_path, "second", (1.0, 1.0))]
    page = look(indexed(tmp_path, *(run.path for run in runs)))
    section = page.html[page.html.index('id="domains"') :].partition("</section>")[0]
    assert "Held-out tasks solved" in section and "first" in section and "second" in section


def test_a_run_of_one_domain_has_no_such_section(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, "plain") as run:
        run.write_config({"name": "plain", "domain": {"name": "retail-generated"}})
        run.log({"success": 0.2, "episodes": 8.0}, phase="rl", step=0)
    assert 'id="domains"' not in look(indexed(tmp_path, run.path)).html
