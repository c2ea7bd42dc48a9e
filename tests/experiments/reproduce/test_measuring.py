"""Scores, paired differences and the page, on outcomes worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.accounts.metrics import DOMAIN
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_tools.experiments.reproduce import page, paper
from muarl_tools.experiments.reproduce.measuring import ArmsMeasured, measure, sign_flips
from muarl_tools.experiments.reproduce.plan import SFT, TRAIN, evaluations, stages
from muarl_tools.experiments.reproduce.sheets import sheets


def outcomes(letters: str, world: str = "w") -> dict[str, float]:
    return {f"{world}:{n}": float(c) for n, c in enumerate(letters)}


def test_a_score_is_a_mean_over_seeds_and_says_how_they_differ() -> None:
    found = ArmsMeasured("rules", {"rl": {0: outcomes("1100"), 1: outcomes("1110")}}, {}, {})
    score = found.score("rl", ("w",))
    assert score is not None
    assert (score.value, score.seeds, score.tasks) == (0.625, (0.5, 0.75), 4)
    assert score.interval[0] < 0.625 < score.interval[1]
    assert found.score("rl", ("elsewhere",)) is None and found.score("both", ("w",)) is None


def test_a_difference_is_over_the_tasks_that_both_have_played() -> None:
    one = outcomes("1" * 12) | outcomes("0", "other")
    found = ArmsMeasured("rules", {"rl": {0: one}, "base": {None: outcomes("0" * 10 + "1")}}, {}, {})
    gap = found.difference("rl", "base", ("w",))
    assert gap is not None and gap.tasks == 11 and gap.value == pytest.approx(10 / 11)
    assert gap.p < 0.01 and gap.interval[0] > 0.5
    back = found.difference("base", "rl", ("w",))
    assert back is not None and back.value == -gap.value and back.p == gap.p


def test_a_difference_is_over_the_seeds_that_both_arms_have() -> None:
    both, more = {0: outcomes("1111"), 1: outcomes("1000")}, {1: outcomes("1100")}
    obeyed = {"both": {1: outcomes("1000")}, "more": {1: outcomes("0000")}}
    found = ArmsMeasured("rules", {"both": both, "more": more, "base": {None: outcomes("0000")}}, {}, {}, obeyed)
    gaps = [found.difference("both", "more", ("w",)), found.difference("both", "base", ("w",))]
    assert [gap.value for gap in gaps if gap is not None] == [-0.25, 0.625]
    clean = found.difference("both", "more", ("w",), clean=True)
    assert clean is not None and clean.value == 0.25
    assert found.difference("both", "base", ("w",), clean=True) is None
    apart = ArmsMeasured("rules", {"both": {0: both[0]}, "more": more}, {}, {})
    assert apart.difference("both", "more", ("w",)) is None, "two seeds are no comparison of arms"


def test_no_difference_at_all_is_not_certainty() -> None:
    found = ArmsMeasured("rules", {"rl": {0: outcomes("10")}, "base": {None: outcomes("10")}}, {}, {})
    gap = found.difference("rl", "base", ("w",))
    assert gap is not None and gap.p == 1.0 and gap.interval[0] < -0.3 and gap.interval[1] > 0.3


def test_the_p_value_is_that_of_all_flips_of_few_differences() -> None:
    # Four differences of one sign: 2 of the 16 flips are as far from 0.
    assert sign_flips([1.0] * 4) == pytest.approx(2 / 16, abs=0.02)
    assert sign_flips([0.0, 0.0]) == 1.0


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), max_size=12))
def test_a_p_value_does_not_ask_which_arm_comes_first(gaps: list[float]) -> None:
    p = sign_flips(gaps, resamples=200)
    assert 0 < p <= 1 and p == sign_flips([-g for g in gaps], resamples=200)


def episode(task: str, reward: float, needless: float) -> Episode:
    turns = [Turn(Message("user", "hi")), Turn(Message("assistant", "bye"))]
    audit = {"writes": 1.0, "writes_without_consent": 1 - reward, "needless_transfers": needless}
    tags = {DOMAIN: task.split(":")[0]}
    return Episode(
        f"{task}-e", task, "shop", turns, StopReason.USER_STOP, verdict=Verdict(reward, audit=audit), tags=tags
    )


@pytest.fixture
def saved(tmp_path: Path) -> RunConfig:
    """A reproduction of two seeds whose last stage is missing. Of each environment's ten tasks the base solves 1, the
    cold start 3, RL 5, both 8."""
    config = load_config("reproduce-smoke", [f"runs_dir={tmp_path}"])
    solved = {"base": 1, "cold": 3, "rl": 5, "both": 8}
    for stage in stages(config, [0, 1])[:-1]:
        run = RunDirectory(stage.config.runs_dir, stage.name)
        run.write_config(stage.config.model_dump(mode="json"))
        run.write_status("finished")
        if stage.recipe == TRAIN:
            for step in range(4):
                run.log({"success": step / 4, "turns": 9.0 - step}, phase="rl", step=step)
    for one in evaluations(config, [0, 1])[:-1]:
        run = RunDirectory.at(one.stage.folder)
        worlds = [domain.name for domain in one.stage.config.domains]
        played = [episode(f"{w}:{n}", float(n < solved[one.arm]), 0.0) for w in worlds for n in range(10)]
        run.write_episodes("eval", played)
        run.write_summary({"by_domain": {world: {"do_nothing": 0.05} for world in worlds}})
    return config


@pytest.mark.parametrize("checked", [True, False])
def test_catastrophic_failures_are_those_of_a_group_s_environments(saved: RunConfig, checked: bool) -> None:
    names = saved.reproduce.rl
    shares = {name: {"value": 0.2 * number, "n": 10} if checked else None for number, name in enumerate(names)}
    for one in evaluations(saved, [0, 1])[:-1]:
        run = RunDirectory.at(one.stage.folder)
        by_domain = {name: {"catastrophic": share} for name, share in shares.items()}
        apart = {"elsewhere": {"catastrophic": {"value": 1.0, "n": 10}}}
        run.write_summary({**run.read_json("summary"), "audit": {"by_domain": by_domain | apart}})
    figures = measure(saved, [0, 1]).by_user["rules"].figures["cold"]["trained on by RL"]
    expected = {"catastrophic": pytest.approx(0.2 * (len(names) - 1) / 2)} if checked else {}
    assert len(names) > 1 and {k: v for k, v in figures.items() if k == "catastrophic"} == expected


def test_the_page_has_the_paper_s_figures_beside_ours(saved: RunConfig) -> None:
    found = measure(saved, [0, 1])
    assert (found.done, found.planned) == (13, 14)
    written = page.write_page(found, sheets(found))
    tables, html = written.with_suffix(".md").read_text(), written.read_text()
    by_key = sheets(found)
    rows = {row[0]: row for row in by_key["ablation"].rows}
    assert rows["base"][1].startswith("10.0 (") and rows["RL only"][1].endswith(";\n50.0 to 50.0")
    assert rows["both"][-2:] == ("67.3", "45.4") and rows["doing nothing"][1:4] == ("5.0",) * 3
    training = {row[0]: row for row in by_key["training"].rows}
    assert training["RL only"][2:4] == ("0.0% → 75.0%", "9.0 → 6.0")
    for text in (tables, html):
        assert paper.SOURCE in text and "13 of 14 stages are finished" in text and "+20.0 (" in text
        assert "Seeds 0, 1 of cold start" in text and "lowest and highest seed" in text
    assert by_key["obeying"].rows[0][-1] == "not checked", "nobody audited these"
    assert "The reward of RL" not in tables
    assert "<script" not in html
    assert "<td>2 steps on 24" in html and '<td class="n">67.3</td>' in html


def test_the_page_says_what_a_reward_of_the_outcome_alone_costs(saved: RunConfig) -> None:
    for one in evaluations(saved, [0, 1])[:-1]:
        run = RunDirectory.at(one.stage.folder)
        played = run.read_episodes("eval")
        for number, found in enumerate(played):
            assert found.verdict is not None
            found.verdict = replace(found.verdict, audit={"violations": float(number % 10 >= 2)})
        run.write_episodes("eval", played)
    by_key = sheets(measure(saved, [0, 1]))
    base, *_, both = by_key["obeying"].rows[0][1:]
    assert base.startswith("10.0 (") and both.startswith("20.0 ("), "of the 80% that it solves"
    assert "outcome alone, as in the paper: where it played, 75% of the successes" in by_key["obeying"].about


def test_with_one_seed_there_is_no_word_of_a_lowest_and_a_highest(saved: RunConfig) -> None:
    tables = page.markdown(sheets(measure(saved, [0])))
    assert "Seed 0 of cold start" in tables and "lowest" not in tables
    assert "67.3" in tables


def test_a_missing_arm_is_a_blank_and_no_error(saved: RunConfig) -> None:
    for one in evaluations(saved, [0, 1]):
        if one.arm in ("both", "base"):
            (one.stage.folder / "status.json").unlink(missing_ok=True)
    rows = {row[0]: row for row in sheets(measure(saved, [0, 1]))["ablation"].rows}
    assert rows["both"][1] == rows["base"][1] == "–" and rows["RL only"][1].startswith("50.0")


def test_the_page_says_so_where_only_some_requests_were_played(tmp_path: Path) -> None:
    config = load_config("reproduce-cancel", [f"runs_dir={tmp_path}"])
    rows = {row[0]: row for row in sheets(measure(config, [0]))["stages"].rows}
    assert rows["RL"][2] == "retail, airline (only cancel)"
    assert rows["evaluation"][2] == "retail, airline (only cancel), telecom, bfcl, acebench, clinic"
    assert "cancel" not in rows["base"][2] + rows["cold start"][2]


def test_a_known_model_s_page_has_the_control_and_what_each_arm_learned_from(tmp_path: Path) -> None:
    own = ["reproduce.unseen=[hotel-generated]", "reproduce.unseen_tasks=4", "eval.tasks=10", "eval.next_turns=3"]
    config = load_config("known-model", [f"runs_dir={tmp_path}", *own, "reproduce.arms=[cold, both]"])
    solved = {"base": 0, "cold": 3, "both": 8, "more": 4}
    for stage in stages(config, [0]):
        run = RunDirectory(stage.config.runs_dir, stage.name)
        run.write_config(stage.config.model_dump(mode="json"))
        run.write_status("finished")
        if stage.recipe in (SFT, TRAIN):
            phase, prefix = ("cold_start", "") if stage.recipe == SFT else ("rl", "update/")
            for step in range(2):
                run.log({f"{prefix}tokens": 1000.0, f"{prefix}loss_tokens": 250.0}, phase=phase, step=step)
    shares = {"calls": 20.0, "words": 10.0, "call_right": 0.5, "call_tools_right": 0.75, "words_kept": 0.9}
    for one in evaluations(config, [0]):
        run = RunDirectory.at(one.stage.folder)
        run.write_episodes(
            "eval", [episode(f"retail-generated:{n}", float(n < solved[one.arm]), 0.0) for n in range(10)]
        )
        run.write_summary({"by_domain": {}, "next_turns": {"retail-generated": shares}})
    found = measure(config, [0])
    tables = page.write_page(found, sheets(found)).with_suffix(".md").read_text()
    by_key = sheets(found)
    assert tables.startswith("# Arms from smollm2") and "the base is smollm2" in by_key["stages"].about
    stages_shown = {row[0]: row for row in by_key["stages"].rows}
    assert "base" not in stages_shown and "1,280 other demonstrations" in stages_shown["further cold start"][1]
    assert "10 held-out tasks of each environment of RL, 4 of each other one" in stages_shown["evaluation"][1]
    rows = {row[0]: row for row in by_key["ablation"].rows}
    assert list(rows) == ["base", "cold start only", "both", "further cold start", "doing nothing"]
    assert rows["further cold start"][1].startswith("40.0 (") and rows["further cold start"][-1] == "–"
    compared = {row[1]: row[2] for row in by_key["pairs"].rows if row[0] == "trained on by RL"}
    assert compared["both – further cold start"].startswith("+40.0 (") and "RL only – base" not in compared
    learned = {row[0]: row[1:4] for row in by_key["learned"].rows}
    assert learned["both"] == ("rl", "2,000", "500") and learned["further cold start"][0] == "cold start"
    assert by_key["turns"].rows[0] == ("retail", "base", "50.0", "75.0", "90.0", "20")


def test_several_tries_and_other_users_have_tables_of_their_own(tmp_path: Path) -> None:
    own = ["reproduce.unseen=[]", "eval.tasks=4", "eval.trials=2", "reproduce.user_traits=[hard]"]
    config = load_config("known-model", [f"runs_dir={tmp_path}", *own, "reproduce.arms=[cold]"])
    for stage in stages(config, [0]):
        run = RunDirectory(stage.config.runs_dir, stage.name)
        run.write_config(stage.config.model_dump(mode="json"))
        run.write_status("finished")
    tries = {"rules": [(1, 1), (1, 0), (0, 0), (1, 1)], "hard": [(1, 0), (0, 0), (0, 0), (0, 0)]}
    for one in evaluations(config, [0]):
        played = [
            replace(episode(f"retail-generated:{n}", float(reward), 0.5), id=f"{n}.{trial}")
            for n, rewards in enumerate(tries[one.user])
            for trial, reward in enumerate(rewards)
        ]
        run = RunDirectory.at(one.stage.folder)
        run.write_episodes("eval", played)
        run.write_summary({"do_nothing": 0.125, "always_transfer": 0.25})
    by_key = sheets(measure(config, [0]))
    assert by_key["hats"].rows[0][:4] == ("retail", "base", "62.5", "50.0") and "from 2 of each" in by_key["hats"].about
    assert [c.head for c in by_key["hats"].columns[-2:]] == ["pass^1", "pass^2"]
    assert by_key["worlds-hard"].title == "Every environment, hard users"
    assert by_key["worlds-hard"].rows[0][1:3] == ("12.5", "25.0")
    assert by_key["worlds-hard"].rows[0][3].startswith("12.5 (") and "transfer" not in by_key
    assert by_key["obeying-hard"].rows[0][:2] == ("base", "not checked")
    row = by_key["pairs-hard"].rows[0]
    assert row[0] == "cold start only – base" and row[1].startswith("+0.0 (") and row[3:] == ("–", "–", "4")
    assert ("always transferring", "25.0", "25.0", "", "") in by_key["ablation"].rows
