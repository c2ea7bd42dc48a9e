"""Search by regular expressions, also by hostile ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.grep import GrepSearch, MatchCounter
from muarl.retrieval.search import SearchError
from support.small_bank import bank, use

TEXTS = ("The ATM fee is $3. A fee may be refunded: CO₂ is free.", "Credit card\nand debit card rules.", "", "aaaa b²")
KNOWN = Knowledge(Document(str(n), "t", text) for n, text in enumerate(TEXTS))
PIECES = st.sampled_from([
    "fee", "card", "a", "A", ".", "*", "+", "?", "|", "(", ")", "[", "]", "^", "$", r"\b", r"\w", r"\s", r"\1", "{2}",
    "{e}", "[[:alpha:]]", "(?:", "(?i)", "(?P<n>", r"\p{L}", "₂", "ſ", "K", "++", "(?=",
])  # fmt: skip


def expected(pattern, case_sensitive=False):
    """As upstream's description has it, with ``re`` in this process."""
    flags = re.NOFLAG if case_sensitive else re.IGNORECASE
    try:
        wanted = re.compile(pattern, flags)
    except re.error:
        wanted = re.compile(re.escape(pattern), flags)
    counts = [(str(n), float(len(wanted.findall(text)))) for n, text in enumerate(TEXTS)]
    return sorted((c for c in counts if c[1]), key=lambda c: -c[1])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=5).map("".join), st.booleans())
def test_what_is_found_is_what_re_finds(pattern, case_sensitive):
    hits = GrepSearch(KNOWN, case_sensitive=case_sensitive).search(pattern)
    assert [(hit.document.id, hit.score) for hit in hits] == expected(pattern, case_sensitive)


@pytest.mark.parametrize("pattern", [r"(.*)*$x", "(a|a)*" * 4 + "c"])
def test_a_pattern_that_backtracks_without_end_is_stopped(pattern):
    matching = MatchCounter(seconds=0.02)
    try:
        with pytest.raises(SearchError, match=r"stopped after 0\.02 s: the pattern backtracks too much"):
            matching.counts("k", ["a" * 40], pattern, ignore_case=True)
        assert matching.counts("k", ["a" * 40], "a+", ignore_case=True) == [1]
    finally:
        matching.close()


def test_a_pattern_that_cannot_be_compiled_for_its_size_is_refused():
    for pattern in ("a{99999999999}", "(" * 5000 + ")" * 5000):
        with pytest.raises(SearchError):
            GrepSearch(KNOWN).search(pattern)
    assert GrepSearch(KNOWN).search("(((a{100}){100}){100}){100}") == []


def test_a_process_that_somebody_killed_is_started_again():
    matching = MatchCounter()
    try:
        assert matching.counts("k", TEXTS, "fe+", ignore_case=False) == [2, 0, 0, 0]
        matching._process.kill()
        matching._process.wait()
        assert matching.counts("k", TEXTS, "fe+", ignore_case=False) == [2, 0, 0, 0]
        assert matching.counts("other", TEXTS[:2], "c.*d", ignore_case=True) == [0, 2]
    finally:
        matching.close()


def test_only_so_many_collections_are_kept(monkeypatch):
    monkeypatch.setattr("muarl.retrieval.grep.KEPT", 2)
    matching = MatchCounter()
    try:
        for turn in range(2):
            for n in range(4):
                assert matching.counts(n, ["a" * n], "a?a", ignore_case=False) == [(n + 1) // 2], turn
        assert list(matching._sent) == [2, 3]
    finally:
        matching.close()


def test_a_pattern_that_python_warns_of_leaves_the_terminal_alone(capfd):
    matching = MatchCounter()
    try:
        assert matching.counts("k", ["a:"], "[[:alpha:]]", ignore_case=False) == [0]
    finally:
        matching.close()
    assert capfd.readouterr() == ("", "")


def test_plain_words_need_no_process():
    matching = MatchCounter()
    assert matching.counts("k", TEXTS, "FEE|card", ignore_case=True) == [2, 2, 0, 0] and matching._process is None


@pytest.mark.parametrize(("pattern", "letter"), [("|" * 64, "x"), ("a|" * 32, "x"), ("a" * 63 + "b", "a")])
def test_a_short_pattern_over_much_text_is_counted_where_it_can_be_stopped(pattern, letter):
    matching = MatchCounter(seconds=0.05)
    try:
        with pytest.raises(SearchError, match="stopped"):
            matching.counts("k", [letter * 3_000_000], pattern, ignore_case=True)
    finally:
        matching.close()


def test_an_agent_is_told_that_its_pattern_was_too_much(monkeypatch):
    hostile = MatchCounter(seconds=0.02)
    monkeypatch.setattr("muarl.retrieval.grep.MATCHING", hostile)
    try:
        documents = [Document("d", "D", "a" * 40)]
        for semantics in ("fixed", "official"):
            result = use(bank(semantics, documents=documents).world(), "grep", pattern="(a|a)*c")
            assert result.error and result.content.startswith("Error: the search was stopped after 0.02 s")
    finally:
        hostile.close()
