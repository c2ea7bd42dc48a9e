"""One description of a table, printed three ways."""

from __future__ import annotations

import io

import pytest

from muarl.observe.screen import Screen
from muarl.pages.markup import tag
from muarl.pages.table import Cell, ShownColumn, ShownTable, table, to_html, to_markdown, to_terminal
from support.pages import Page

HOSTILE = "<script>a|b</script> [x](javascript:y) \\| \x1b[2J\u202e"


def shown(given: ShownTable, **how: bool) -> str:
    out = io.StringIO()
    Screen(file=out, width=100).print(to_terminal(given, **how))
    return out.getvalue()


RUNS = table(
    ["run", ShownColumn("success", right=True, small="95% interval"), ShownColumn("", page=True), "n"],
    [
        [
            Cell("one", link="runs/one", strong=True),
            Cell("91.0%", small="80.0% – 97.0%"),
            Cell("", page=tag("i")),
            "3",
        ],
        ["two", Cell("–", kind="soft"), "", "12"],
    ],
    title="Scores",
    about="Of two runs.",
    notes=["Nothing was left out."],
)


def test_html_has_all_of_it() -> None:
    page = Page(to_html(RUNS))
    assert page.shown == ("ScoresOf two runs.runsuccess95% intervalnone91.0% 80.0% – 97.0%3two–12Nothing was left out.")
    assert ("a", {"href": "runs/one"}) in page.tags
    assert ("td", {"class": "n soft"}) in page.tags and ("td", {"class": "n"}) in page.tags
    assert [name for name, _ in page.tags].count("i") == 1
    assert ("th", {"scope": "row"}) in page.tags, "the first cell names the row"


def test_markdown_aligns_figures_and_leaves_drawings_out() -> None:
    assert to_markdown(RUNS) == (
        "## Scores\n\nOf two runs.\n\n"
        "| run | success (95% interval) | n |\n"
        "| --- | ---: | ---: |\n"
        "| [**one**](<runs/one>) | 91.0% (80.0% – 97.0%) | 3 |\n"
        "| two | – | 12 |\n\n"
        "Nothing was left out.\n"
    )


def test_a_terminal_has_small_print_on_a_line_of_its_own() -> None:
    text = shown(RUNS)
    lines = [line.strip("│┃ ") for line in text.splitlines()]
    assert lines[:2] == ["Scores", "Of two runs."] and lines[-1] == "Nothing was left out."
    assert [line.split() for line in lines if line.startswith("one")] == [["one", "│", "91.0%", "│", "3"]]
    assert "80.0% – 97.0%" in text and "95% interval" in text
    assert "│" not in shown(RUNS, lines=False)


def test_what_others_wrote_is_text_everywhere() -> None:
    given = table([HOSTILE, HOSTILE], [[HOSTILE, Cell(HOSTILE, small=HOSTILE)]], title=HOSTILE, about=HOSTILE,
                  notes=[HOSTILE])  # fmt: skip
    assert not {"script", "a"} & {name for name, _ in Page(to_html(given)).tags}
    written = to_markdown(given)
    assert "<script" not in written and "](" not in written and "\x1b" not in written and "\u202e" not in written
    rows = [line for line in written.splitlines() if line.startswith("| ")]
    assert all(line.replace("\\\\", "").replace("\\|", "").count("|") == 3 for line in rows)
    for text in (shown(given), to_html(given)):
        assert "\x1b" not in text and "\u202e" not in text and "\\u202e" in text


@pytest.mark.parametrize("link", ["javascript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "http://[", ""])
def test_links_go_to_the_web_or_nowhere(link: str) -> None:
    given = table(["a"], [[Cell("text", link=link)]])
    assert "<a" not in to_html(given) and "](" not in to_markdown(given)


def test_lines_of_a_cell() -> None:
    given = table(["a", "b"], [["x", "one\ntwo"]])
    assert "<div>one</div><div>two</div>" in to_html(given)
    assert "| x | one two |" in to_markdown(given)


def test_rows_have_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="has not 2 cells"):
        table(["a", "b"], [["x"]])


def test_numbers_are_no_texts() -> None:
    with pytest.raises(TypeError, match="a table shows text or a Cell, not 3"):
        table(["a", "b"], [["x", 3]])
