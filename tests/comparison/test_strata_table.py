"""What a comparison says of kinds of users: a column a run, and a sentence where success differs."""

from __future__ import annotations

from dataclasses import replace

from muarl_tools.compare import tables, text
from muarl_tools.compare.attempts import PlayedTask, Results
from muarl_tools.compare.comparing import compare
from muarl_tools.compare.page import comparison_page


def run(name: str, pressed: int) -> Results:
    """A run in which so many of 40 pressed users were served, and 36 of 40 patient ones."""
    attempts = [
        PlayedTask(f"{value}{n}", 0, n < right, n, strata=(("patience", value),))
        for value, right in (("pressed", pressed), ("patient", 36))
        for n in range(40)
    ]
    return Results(name, name, "run", tuple(attempts))


def test_success_by_kind_of_user_stands_beside_that_of_the_other_run() -> None:
    found = compare([run("fair", 36), run("rude", 10)])
    shown = tables.strata_table(found)
    assert shown is not None
    rows = {str(row[0]): [(cell.text, cell.small) for cell in row[1:]] for row in shown.rows}
    assert rows["patience: pressed"] == [("90.0% (40)", "76.9% – 96.0%"), ("25.0% (40)", "14.2% – 40.2%")]
    assert text.strata_lines(found) == [
        "rude: success differs by patience: pressed 25% (14 to 40, n = 40), patient 90% (77 to 96, n = 40); p < 0.001."
    ]
    page = comparison_page(found)
    assert "Kinds of users" in page and text.strata_lines(found)[0].replace("<", "&lt;") in page
    told = found.to_json()["runs"][1]["strata"]["patience"]
    assert told["values"]["pressed"]["value"] == 0.25 and told["warning"].startswith("success differs by patience")


def test_runs_without_strata_have_no_such_table() -> None:
    plain = [
        replace(r, attempts=tuple(replace(a, strata=()) for a in r.attempts)) for r in (run("a", 36), run("b", 10))
    ]
    found = compare(plain)
    assert tables.strata_table(found) is None and text.strata_lines(found) == []
    assert "Kinds of users" not in comparison_page(found) and "strata" not in found.to_json()["runs"][0]
    beside = tables.strata_table(compare([run("a", 36), plain[1]]))
    assert beside is not None and any(row[2].text == "–" for row in beside.rows)
