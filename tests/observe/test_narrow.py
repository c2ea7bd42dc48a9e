"""Tables on narrow terminals keep the names that tell their rows apart."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from muarl.environments.registry import names
from muarl.observe.screen import print_narrow
from muarl_tools.commands import domains

HEAD = ("run", "kind", "success", "began")
ROWS = [("a-run-with-a-long-name-1", "quickstart", "74.3% (69–79)", "2026-11-26 11:56")] * 2


def printed(width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_narrow(console, HEAD, ROWS, first_to_go=("began", "kind"), right=("success",))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(("width", "gone"), [(80, []), (60, ["began"]), (40, ["kind", "began"])])
def test_columns_go_whole_and_are_named(width: int, gone: list[str]) -> None:
    head, first, *rest = printed(width).splitlines()
    assert head.split() == [name for name in HEAD if name not in gone]
    assert first.startswith("a-run-with-a-long-name-1 ") and "74.3% (69–79)" in first and "…" not in first
    said = " ".join(" ".join(rest[1:]).split())
    assert said == (f"A wider terminal also shows: {', '.join(name for name in HEAD if name in gone)}." if gone else "")


def test_where_not_even_the_names_fit_they_are_folded() -> None:
    assert "…" not in printed(20) and "".join(printed(20).split()).count("a-run") == 2


def test_the_list_of_domains_has_whole_names_on_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domains, "PIPE", 80)
    domains._print()
    said = capsys.readouterr().out
    assert all(any(line.startswith(f"{name} ") for line in said.splitlines()) for name in names())
    assert "also shows: sizes" in said
