"""Does success differ between kinds of users? The test over the values of each stratum, and where it is told."""

from __future__ import annotations

import itertools
import random

import pytest

from muarl.accounts.breakdowns import results_by_stratum, strata_json
from muarl.accounts.evaluation_report import EvaluationReport, evaluate_summary
from muarl.accounts.strata import Outcome, StratumResult, randomisation_p, strata_of
from muarl.report.report_tables import ReportStage, kinds_section
from muarl.types.episode import Episode, StopReason, Verdict


def exact_p(values: list[str], outcomes: list[bool]) -> float:
    """The share of all exchanges of values whose chi-square is at least the observed one."""

    def statistic(drawn: tuple[str, ...]) -> float:
        whole = sum(outcomes) / len(outcomes)
        total = 0.0
        for value in set(values):
            own = [o for v, o in zip(drawn, outcomes, strict=True) if v == value]
            total += (sum(own) - len(own) * whole) ** 2 / len(own)
        return total

    observed = statistic(tuple(values)) - 1e-9
    every = list(itertools.permutations(values))
    return sum(statistic(drawn) >= observed for drawn in every) / len(every)


@pytest.mark.parametrize(
    ("values", "outcomes"),
    [
        ("aaaabbbb", [1, 1, 1, 1, 0, 0, 0, 1]),
        ("aaabbbcc", [1, 1, 1, 0, 0, 0, 1, 0]),
        ("aabbbbbb", [0, 0, 1, 1, 1, 1, 1, 1]),
        ("abababab", [1, 1, 0, 0, 1, 1, 0, 0]),
    ],
)
def test_the_p_value_is_that_of_all_exchanges(values: str, outcomes: list[int]) -> None:
    plain = [bool(o) for o in outcomes]
    found = randomisation_p([*values], plain, range(len(values)))
    assert found == pytest.approx(exact_p([*values], plain), abs=0.025)


def test_where_values_make_no_difference_few_p_values_are_small() -> None:
    rng = random.Random(4)
    found = []
    for _ in range(200):
        values = rng.choices("abc", k=60)
        found.append(randomisation_p(values, [rng.random() < 0.7 for _ in values], range(60)) or 1.0)
    assert sum(p <= 0.05 for p in found) <= 20
    assert sum(p <= 0.5 for p in found) > 60, "nor are they all large"


def test_copies_of_an_attempt_are_no_evidence() -> None:
    values, outcomes = [*"aaaabbbb"], [True, True, True, False, False, False, True, False]
    once = randomisation_p(values, outcomes, range(8))
    copied = randomisation_p(values * 10, outcomes * 10, [*range(8)] * 10)
    apart = randomisation_p(values * 10, outcomes * 10, range(80))
    assert once is not None and copied == pytest.approx(once, abs=0.03)
    assert apart is not None and apart < 0.01


@pytest.mark.parametrize(("values", "outcomes"), [("", []), ("aaa", [True, False, True]), ("aab", [True] * 3)])
def test_with_one_value_or_one_outcome_there_is_nothing_to_test(values: str, outcomes: list[bool]) -> None:
    assert randomisation_p([*values], outcomes, range(len(values))) is None


def outcomes(patience: dict[str, tuple[int, int]], style: str = "terse") -> list[Outcome]:
    """So many right of so many attempts, one a task."""
    out = []
    for value, (right, tried) in patience.items():
        for n in range(tried):
            persona = {"patience": value, "style": style if n % 2 else "chatty"}
            out.append(Outcome(f"{value}{n}", n < right, persona))
    return out


def test_a_stratum_by_which_success_differs_is_warned_of_in_one_sentence() -> None:
    found = results_by_stratum(outcomes({"pressed": (40, 100), "patient": (80, 100)}))
    assert found["patience"].warning == (
        "success differs by patience: pressed 40% (31 to 50, n = 100), patient 80% (71 to 87, n = 100); p < 0.001"
    )
    assert found["style"].warning is None
    told = strata_json(found)
    assert told["patience"]["values"]["pressed"]["n"] == 100 and told["style"]["warning"] is None
    assert found["patience"].adjusted == pytest.approx(2 * (found["patience"].p or 0)), "one of two strata"


def test_the_correction_counts_the_strata() -> None:
    """What is just significant alone is not among several strata."""
    rows = outcomes({"pressed": (13, 20), "patient": (19, 20)})
    alone = results_by_stratum([Outcome(o.task, o.success, {"patience": o.strata["patience"]}) for o in rows])
    assert alone["patience"].warning is not None
    more = [Outcome(o.task, o.success, {**o.strata, **{f"s{k}": "ab"[i >> k & 1] for k in range(3)}})
            for i, o in enumerate(rows)]  # fmt: skip
    assert results_by_stratum(more)["patience"].warning is None


def episodes(tags: dict[str, object], right: int, tried: int) -> list[Episode]:
    out = []
    for n in range(tried):
        episode = Episode(f"e{n}{tags}", f"t{n}", "d", [], StopReason.USER_STOP, tags=dict(tags))
        episode.verdict = Verdict(float(n < right))
        out.append(episode)
    return out


def test_an_evaluation_tells_success_by_stratum() -> None:
    played = episodes({"strata": {"patience": "pressed"}}, 10, 40) + episodes(
        {"strata": {"patience": "patient"}}, 36, 40
    )
    report = EvaluationReport.of(played)
    assert [row[:2] for row in report.rows() if "patience" in row[0]] == [
        ("user's patience: patient (40)", "90.0%"), ("user's patience: pressed (40)", "25.0%"),
    ]  # fmt: skip
    (warning,) = report.warnings()
    assert f"Warning: {warning}." in report.to_markdown() and warning.startswith("success differs by patience: pressed")
    assert f"Warning: {warning}." in " ".join(str(report).split())
    block = evaluate_summary(played)
    assert block["strata"]["patience"]["warning"] == warning
    assert block["by_tag"]["user's patience"]["pressed"]["value"] == 0.25


def test_a_report_says_below_the_tables_what_the_test_says() -> None:
    counts = {"pressed": 10, "patient": 36}
    played = [e for value, right in counts.items() for e in episodes({"strata": {"patience": value}}, right, 40)]
    page = str(kinds_section([ReportStage("Score", "the score", "after", evaluate_summary(played))]))
    assert "Score: </b>success differs by patience: pressed 25%" in page and "patience: p &lt; 0.001" in page
    alike = [e for value in counts for e in episodes({"strata": {"patience": value}}, 20, 40)]
    page = str(kinds_section([ReportStage("Score", "the score", "after", evaluate_summary(alike))]))
    assert "no difference in success" in page and "patience: p = 1.000" in page
    plain = kinds_section(
        [ReportStage("Score", "the score", "after", evaluate_summary(episodes({"intent": "a"}, 1, 2)))]
    )
    assert "fare differently" not in str(plain)


def test_without_strata_a_summary_is_what_it_was() -> None:
    plain = episodes({"intent": "cancel"}, 1, 2)
    assert "strata" not in evaluate_summary(plain) and EvaluationReport.of(plain).warnings() == []


@pytest.mark.parametrize("tag", ["patience", ["patience"], {"patience": 3}, None])
def test_a_tag_that_is_none_of_ours_is_left_alone(tag: object) -> None:
    (episode,) = episodes({"strata": tag}, 1, 1)
    assert strata_of(episode) == {}
    assert EvaluationReport.of([episode]).strata == {}


def test_a_p_value_at_the_limit_is_told_in_full() -> None:
    class Half:
        value, interval, n = 0.5, (0.25, 0.75), 8

    assert StratumResult("care", {"careful": Half()}, 0.01, 0.05).warning == (
        "success differs by care: careful 50% (25 to 75, n = 8); p = 0.050"
    )
    assert StratumResult("care", {"careful": Half()}, 0.01, 0.051).warning is None
