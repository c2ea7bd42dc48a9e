"""End-to-end and process accuracy, upstream's and mended, on states and messages of our own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl_worlds.acebench.official import scoring
from muarl_worlds.acebench.official.verdicts import figures

TRUTH = [{"BaseApi": {"wifi": True}}, {"MessageApi": {"inbox": {"1": {"message": "a"}, "7": {"message": "b"}}}}]
GOOD = [{"BaseApi": {"wifi": True}}, {"MessageApi": {"inbox": {"1": {"message": "a"}, "7": {"message": "b"}}}}]
STONES = ["[a()]", "[b(x=1)]", "[c()]"]


def official(result, truth=TRUTH):
    return scoring.official(result, [], truth, STONES)


def test_the_right_state_is_valid_and_its_process_whole():
    assert official(GOOD) == scoring.Score(True, 1.0)
    assert scoring.fixed(GOOD, [], TRUTH, STONES) == scoring.Score(True, 1.0)


@pytest.mark.parametrize(
    ("result", "official_error", "fixed_valid"),
    [
        ([], "wrong number of class", False),
        (GOOD[:1], "wrong number of class", False),
        ([GOOD[0], {"Foo": {}}], "", False),  # an answer that no class meets is passed over
        ([{"BaseApi": {}}, GOOD[1]], "", False),  # as is an attribute that the state lacks
        ([{"BaseApi": {"wifi": True, "on": 1}}, GOOD[1]], "class attributes wrong", True),
        ([{"BaseApi": {"wifi": False}}, GOOD[1]], "class attributes wrong", False),
        ([GOOD[0], {"MessageApi": {"inbox": {**GOOD[1]["MessageApi"]["inbox"], "8": {}}}}], "", True),
        (
            [GOOD[0], {"MessageApi": {"inbox": {"1": {"message": "a"}, "9": {"message": "b"}}}}],
            "class attributes wrong",
            True,
        ),
        ([GOOD[0], {"MessageApi": {"inbox": [1]}}], "class attributes wrong", False),
        ([GOOD[0], {"MessageApi": {"inbox": None}}], "class attributes wrong", False),
        (GOOD[::-1], "", True),
    ],
)
def test_what_is_wrong_with_a_state(result, official_error, fixed_valid):
    found = official(result)
    assert (found.valid, found.error_type) == (not official_error, official_error)
    assert scoring.fixed(result, [], TRUTH, STONES).valid is fixed_valid


def test_a_misspelt_answer_is_checked_when_mended():
    truth = [{"BaseAPI": {"wifi": True}}, TRUTH[1]]
    wrong = [{"BaseApi": {"wifi": False}}, GOOD[1]]
    assert official(wrong, truth).valid
    mended = scoring.fixed(wrong, [], truth, STONES)
    assert not mended.valid and mended.errors == ("BaseApi.wifi: differs from the answer",)
    assert scoring.fixed(GOOD, [], truth, STONES).valid


def test_reminders_may_bear_other_numbers_when_mended():
    def reminder(number, title="t"):
        return {str(number): {"reminder_id": number, "title": title}}

    truth = [{"ReminderAPI": {"reminder_list": {"1": {"reminder_id": 1001, "title": "x"}, **reminder(3)}}}]
    there = {"1": {"reminder_id": 1001, "title": "x"}, **reminder(3, "other"), **reminder(4)}
    assert scoring.fixed([{"ReminderApi": {"reminder_list": there}}], [], truth, STONES).valid
    del there["4"]
    assert not scoring.fixed([{"ReminderApi": {"reminder_list": there}}], [], truth, STONES).valid


@pytest.mark.parametrize(
    ("process", "official_share", "fixed_share"),
    [
        (STONES, 1.0, 1.0),
        ([], 0.0, 0.0),
        (["[a()]", "[x()]", " [b(x=1)]\n", "[c()]"], 1.0, 1.0),
        (["[a()]", "[c()]"], 1 / 3, 2 / 3),  # upstream looks for what is missing to the end
        (["[c()]", "[b(x=1)]", "[a()]"], 1 / 3, 1.0),
        (["[a(), b( x = 1 ), c()]"], 0.0, 1.0),
        (["[b(x='1')]"], 0.0, 0.0),
        (["hello"], 0.0, 0.0),
    ],
)
def test_shares_of_milestones(process, official_share, fixed_share):
    assert scoring.official_process(process, STONES) == official_share
    assert scoring.fixed_process(process, STONES) == fixed_share


def test_the_best_of_several_lists_counts_rounded():
    process = ["[a()]", "[b(x=1)]"]
    assert scoring.official_process(process, [["[z()]"], STONES]) == 0.667
    assert scoring.official_process(process, STONES) == 2 / 3
    assert scoring.fixed_process(process, [["[z()]"], STONES]) == 2 / 3


def test_milestones_that_are_not_python_compare_all_the_same():
    stone = "[order(merchant='Domino's', note='Don't')] "
    assert scoring.calls_in(stone) == scoring.calls_in('[order(merchant="Domino\'s", note="Don\'t")]')
    assert scoring.calls_in("no call") == ("no call",)


@given(st.lists(st.sampled_from([*STONES, "[x()]"]), max_size=6), st.lists(st.sampled_from(STONES), max_size=4))
def test_the_mended_share_is_never_below_upstreams(process, stones):
    assert 0 <= scoring.official_process(process, stones) <= scoring.fixed_process(process, stones) <= 1


def test_headline_figures_are_rounded_as_upstream_rounds_them():
    turns, steps = [(1.0, 1.0), (0.0, 1 / 3), (0.0, 0.0)], [(1.0, 1.0), (1.0, 1.0)]
    assert figures({"multi_turn": turns, "multi_step": steps}) == {
        "end_to_end_multi_turn": 0.333,
        "process_multi_turn": 0.444,
        "end_to_end_multi_step": 1.0,
        "process_multi_step": 1.0,
        "agent": 0.666,
    }
    assert figures({"multi_turn": turns})["agent"] == 0.167
    assert figures({}) == {"agent": 0.0}
