"""The table that a finished quickstart ends with."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from muarl.report.last_screen import before_and_after


def block(success: float, low: float, high: float, **behaviour: float) -> dict[str, Any]:
    return {"success": success, "interval": [low, high], "tasks": 300, "behaviour": behaviour}


def shown(**summary: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(before_and_after(summary))
    return out.getvalue()


def test_both_scores_stand_side_by_side_within_eighty_columns() -> None:
    text = shown(
        cold_start=block(0.567, 0.51, 0.622, writes_without_consent=0.469, turns=8.13)
        | {"success_without_violation": {"value": 0.5, "interval": [0.44, 0.56], "n": 300}},
        rl=block(0.883, 0.842, 0.915, writes_without_consent=0.02, turns=9.0),
        rl_greedy={"success": 0.903, "success_without_violation": {"value": 0.85, "interval": [0.8, 0.9], "n": 300}},
        audit={"rl": {"catastrophic": {"value": 0.01, "interval": [0.003, 0.029], "n": 300}}},
        do_nothing=0.08,
        always_transfer={"success": 0.05},
    )
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert rows == [
        ["success", "56.7%", "88.3%"],
        ["95% interval", "51.0% – 62.2%", "84.2% – 91.5%"],
        ["without any violation", "50.0%", "not checked"],
        ["95% interval", "44.0% – 56.0%", ""],
        ["success, greedy decoding", "", "90.3%"],
        ["without any violation", "", "85.0%"],
        ["catastrophic failures", "not checked", "1.0%"],
        ["95% interval", "", "0.3% – 2.9%"],
        ["writes without consent", "47%", "2.0%"],
        ["agent turns", "8.1", "9.0"],
    ]
    assert "300 held-out tasks" in text
    assert "Baselines on the same tasks: do nothing 8.0%, always transfer 5.0%" in text


def test_each_domain_has_a_row_with_what_doing_nothing_earns_there() -> None:
    def both(**success: float) -> dict[str, Any]:
        return block(0.5, 0.4, 0.6) | {"by_domain": {name: block(share, 0, 1) for name, share in success.items()}}

    text = shown(
        cold_start=both(bank=0.4, food_delivery_generated=0.6),
        rl=both(bank=0.8, food_delivery_generated=0.9),
        do_nothing=0.07,
        by_domain={"bank": {"do_nothing": 0.04, "rl": 0.8}, "food_delivery_generated": {"rl": 0.9}},
    )
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert rows == [
        ["success", "50.0%", "50.0%", "7.0%"],
        ["95% interval", "40.0% – 60.0%", "40.0% – 60.0%", ""],
        ["without any violation", "not checked", "not checked", ""],
        ["bank", "40.0%", "80.0%", "4.0%"],
        ["without any violation", "not checked", "not checked", ""],
        ["food_delivery_generated", "60.0%", "90.0%", "–"],
        ["without any violation", "not checked", "not checked", ""],
        ["catastrophic failures", "not checked", "not checked", ""],
    ]
    assert "do nothing" in text.splitlines()[2]
    assert max(map(len, text.splitlines())) <= 80


def test_what_was_not_measured_has_no_row() -> None:
    text = shown(cold_start=block(0.5, 0.4, 0.6), rl=block(0.6, 0.5, 0.7, turns=3.0))
    assert "greedy" not in text and "Baselines" not in text
    assert "–" in next(line for line in text.splitlines() if "agent turns" in line)
