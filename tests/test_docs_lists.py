"""Lists on pages are those of the code: a name that is added or taken away is so on the page too."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path
from typing import Any, get_args

from rich.console import Console

from muarl import kit
from muarl.cli.main import subcommands
from muarl.config.load import all_presets
from muarl.domains.kit.declaration import BuiltInKind
from muarl.environments.registry import built_in, find
from muarl.pages.table import to_terminal
from muarl.report.difficulty import difficulty_table
from muarl.report.last_screen import before_and_after
from support.environments import MADE, ON_SERVERS


def table_under(page: Path, heading: str) -> list[list[str]]:
    """The cells of each row of the first table below a heading."""
    _, _, below = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert below, f"{page.name} has no heading {heading!r}"
    section = below.partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


def names(rows: list[list[str]], prefix: str = "") -> list[str]:
    """What the first column names in backquotes."""
    return [name.removeprefix(prefix) for row in rows for name in re.findall(r"`([^`]+)`", row[0])]


def commands() -> list[str]:
    return list(subcommands())


def test_the_domains_with_tasks_from_seeds(repository: Path) -> None:
    listed = names(table_under(repository / "docs" / "domains.md", "Generated domains"))
    assert sorted(listed) == sorted((*MADE, *ON_SERVERS))


def test_the_benchmarks(repository: Path) -> None:
    benchmarks = sorted(name for name in built_in() if find(name).is_benchmark)
    assert sorted(names(table_under(repository / "docs" / "evaluation.md", "Benchmarks"))) == benchmarks


def test_the_commands(repository: Path) -> None:
    listed = names(table_under(repository / "docs" / "index.md", "Commands"), "muarl ")
    assert sorted(listed) == sorted(commands())


def test_the_reference_of_the_kit(repository: Path) -> None:
    page = (repository / "docs" / "kit.md").read_text()
    for declared in (kit.Service, kit.Slot, kit.Intent, kit.Fact, kit.Identity, kit.RecordDescription):
        fields = [field.name for field in dataclasses.fields(declared)]
        assert [f for f in fields if not re.search(rf"\b{f}\b", page)] == [], declared.__name__
    methods = [name for name in vars(kit.Plan) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}(" not in page] == []
    assert [name for name in get_args(BuiltInKind) if f'`"{name}"`' not in page] == []
    assert [name for name in kit.__all__ if name not in page] == []


def test_the_quickstart_page_has_what_is_printed(repository: Path) -> None:
    """Row by row: what its tables call a figure, and the figure."""
    behaviour = ("writes_without_consent", "needless_transfers", "tool_error_rate", "truncated", "turns")

    def share(value: float, low: float, high: float) -> dict[str, Any]:
        return {"value": value, "interval": [low, high], "n": 300}

    def block(success: float, low: float, high: float, clean: dict[str, Any], *figures: float) -> dict[str, Any]:
        seen = dict(zip(behaviour, figures, strict=True))
        whole = {"success": success, "interval": [low, high], "tasks": 300, "episodes": 300, "behaviour": seen}
        return whole | {"success_without_violation": clean}

    def level(
        success: float, low: float, high: float, clean: dict[str, Any], unasked: float, worst: dict[str, Any]
    ) -> dict[str, Any]:
        own = {"success": success, "interval": [low, high], "tasks": 300, "episodes": 300}
        return own | {
            "success_without_violation": clean, "behaviour": {"writes_without_consent": unasked}, "catastrophic": worst,
        }  # fmt: skip

    measured = {  # muarl quickstart --seed 0, two cores
        "cold_start": block(0.71, 0.656, 0.758, share(0.63, 0.574, 0.683), 0.194, 0.066, 0.093, 0.01, 8.2),
        "rl": block(0.933, 0.899, 0.956, share(0.927, 0.891, 0.951), 0.0, 0.004, 0.056, 0.003, 9.6),
        "rl_greedy": {"success": 0.957, "success_without_violation": share(0.947, 0.915, 0.967)},
        "harder_users": {
            "typical": level(0.877, 0.835, 0.909, share(0.847, 0.802, 0.883), 0.027, share(0.01, 0.003, 0.029)),
            "hard": level(0.79, 0.74, 0.832, share(0.753, 0.702, 0.799), 0.025, share(0.027, 0.014, 0.052)),
        },
        "do_nothing": 0.113,
        "always_transfer": 0.113,
        "audit": {
            "cold_start": {"catastrophic": share(0.013, 0.005, 0.034)},
            "rl": {"catastrophic": share(0.013, 0.005, 0.034)},
        },
    }
    difficulty = difficulty_table(measured)
    assert difficulty is not None
    out = io.StringIO()
    console = Console(file=out, width=80)
    console.print(before_and_after(measured))
    console.print(to_terminal(difficulty))
    page = (repository / "docs" / "quickstart.md").read_text(encoding="utf-8")
    rows = {cells[0]: cells[1:] for line in page.splitlines() if len(cells := _cells(line, "|")) > 2}
    printed = [cells for line in out.getvalue().splitlines() if len(cells := _cells(line, "│")) > 2 and cells[0]]
    assert len(printed) > 12
    above = ""
    for label, *figures in printed:
        if label != "95% interval":
            shown = " ".join([*rows[label], *rows.get(above, ())])  # the page has some figures in the row above
            above = label
            assert [figure for figure in figures if figure.rstrip("%") not in shown] == [], label


def _cells(line: str, between: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip(between).split(between)]


def test_every_preset_says_what_it_is_and_is_on_the_page(repository: Path) -> None:
    known = all_presets()
    rows = table_under(repository / "docs" / "configuration.md", "Presets")
    assert names(rows) == [p.name for p in known]
    for preset in known:
        assert preset.command in commands(), preset.name
        assert 10 < len(preset.text) <= 90 and preset.text.endswith("."), preset.name


def test_the_index_links_to_every_page(repository: Path) -> None:
    text = (repository / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {Path(target).name for target in re.findall(r"\]\(([^)#]+\.md)", text)}
    missing = {p.name for p in (repository / "docs").glob("*.md")} - linked - {"index.md"}
    assert not missing
