"""Which stages there are, what each begins with and sees, and how they are taken up again."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.observe.rundir import RunDirectory
from muarl_tools.experiments import stages as experiments
from muarl_tools.experiments.reproduce.plan import base_folder, evaluations, root_of, stages
from muarl_tools.experiments.stages import Experiment, Stage


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    return load_config("reproduce", [f"runs_dir={tmp_path}", "eval.tasks=10"])


def names(stage: Stage) -> list[str]:
    return [domain.name.removesuffix("-generated") for domain in stage.config.domains]


def test_every_stage_comes_after_those_that_it_needs(config: RunConfig) -> None:
    found = stages(config, [0, 4])
    order = [stage.name for stage in found]
    assert len(set(order)) == len(order) == 1 + 3 * 2 + 1 + 3 * 2
    for number, stage in enumerate(found):
        assert set(stage.needs) <= set(order[:number])


def test_the_arms_begin_where_they_should(config: RunConfig) -> None:
    by_name, root = {stage.name: stage for stage in stages(config, [0, 4])}, root_of(config.runs_dir, config.name)
    base = str(base_folder(root / "base"))
    starts = {name: stage.config.model.checkpoint for name, stage in by_name.items()}
    assert starts["cold-4"] == starts["rl-4"] == starts["eval-base"] == base
    assert starts["both-4"] == starts["eval-cold-4"] == str(root / "cold-4")
    assert starts["eval-both-4"] == str(root / "both-4")
    assert [by_name[f"{arm}-4"].config.seed for arm in ("cold", "rl", "both")] == [4, 4, 4]
    assert by_name["eval-cold-4"].config.eval.seed == by_name["eval-both-0"].config.eval.seed


def test_no_stage_sees_what_it_must_not(config: RunConfig) -> None:
    by_name = {stage.name: stage for stage in stages(config, [0])}
    assert names(by_name["rl-0"]) == names(by_name["both-0"]) == ["retail", "airline"]
    assert not {"retail", "airline", "telecom", "bfcl", "acebench", "clinic"} & set(names(by_name["cold-0"]))
    assert "clinic" not in names(by_name["base"])
    assert names(by_name["eval-rl-0"]) == ["retail", "airline", "telecom", "bfcl", "acebench", "clinic"]
    assert by_name["eval-rl-0"].config.eval.tasks == 60


def test_only_tasks_of_some_intents_are_played_where_rl_plays(config: RunConfig) -> None:
    wanted = config.reproduce.model_copy(update={"intents": ("cancel",)})
    by_name = {stage.name: stage for stage in stages(config.model_copy(update={"reproduce": wanted}), [0])}
    chosen = {name: {d.name: d.intents for d in stage.config.domains} for name, stage in by_name.items()}
    assert set(chosen["rl-0"].values()) == {("cancel",)} == set(chosen["both-0"].values())
    assert [n for n, intents in chosen["eval-cold-0"].items() if intents] == ["retail-generated", "airline-generated"]
    assert not any(chosen["base"].values()) and not any(chosen["cold-0"].values())


def test_another_user_is_met_where_it_can_be_one(config: RunConfig) -> None:
    wanted = config.reproduce.model_copy(update={"user_model": "runs/um"})
    found = [e for e in evaluations(config.model_copy(update={"reproduce": wanted}), [0]) if e.user == "model"]
    assert [e.stage.name for e in found] == [f"eval-{arm}-model" for arm in ("base", "cold-0", "rl-0", "both-0")]
    for one in found:
        assert names(one.stage) == ["retail"] and one.stage.config.eval.tasks == 10
        assert (one.stage.config.eval_user.kind, one.stage.config.eval_user.checkpoint) == ("sampled", "runs/um")


def test_users_of_other_difficulty_are_met_where_rl_plays(config: RunConfig) -> None:
    wanted = config.reproduce.model_copy(update={"user_traits": ("typical", "hard"), "user_tasks": 5})
    changed = config.model_copy(update={"reproduce": wanted})
    found = {e.stage.name: e.stage.config for e in evaluations(changed, [0]) if e.user == "hard"}
    assert list(found) == [f"eval-{arm}-hard" for arm in ("base", "cold-0", "rl-0", "both-0")]
    for one in found.values():
        assert [d.name for d in one.domains] == ["retail-generated", "airline-generated"] and one.eval.tasks == 10
        assert one.eval_user.traits.mistakes == 0.5 and one.eval_user.seed == config.eval_user.seed
    easy = {s.name: s.config for s in stages(config, [0])}
    assert all(s.config == easy[s.name] for s in stages(changed, [0]) if s.name in easy), "no other stage changes"


def test_a_model_that_was_trained_elsewhere_is_the_base_itself(tmp_path: Path) -> None:
    own = [f"runs_dir={tmp_path}", "eval.tasks=300", "reproduce.pretrained=true", "model.checkpoint=runs/theirs"]
    own += ["reproduce.cold_start=[retail-generated]", "reproduce.rl=[retail-generated]", "reproduce.kept_out=null"]
    own += ["reproduce.unseen=[hotel-generated, bank-generated]", "reproduce.unseen_tasks=60", "sft.batch=4"]
    config = load_config("reproduce", [*own, "reproduce.further_cold_start=7"])
    by_name, root = {stage.name: stage for stage in stages(config, [0])}, root_of(config.runs_dir, config.name)
    trained = ["cold-0", "rl-0", "both-0", "more-0"]
    assert list(by_name) == [*trained, "eval-base", *(f"eval-{name}" for name in trained)]
    starts = {name: stage.config.model.checkpoint for name, stage in by_name.items()}
    assert starts["cold-0"] == starts["rl-0"] == starts["eval-base"] == "runs/theirs"
    assert starts["both-0"] == starts["more-0"] == str(root / "cold-0")
    more, cold = by_name["more-0"].config.sft, by_name["cold-0"].config.sft
    assert (more.steps, more.demonstrations) == (7, 28) and more.seed != cold.seed
    for name, stage in by_name.items():
        if name.startswith("eval"):
            assert stage.config.eval.tasks == 420 and [d.weight for d in stage.config.domains] == [300, 60, 60]
    alike = load_config("reproduce", [*own, "reproduce.arms=[cold, both]"])
    assert [stage.name for stage in stages(alike, [0])] == [
        "cold-0",
        "both-0",
        "eval-base",
        "eval-cold-0",
        "eval-both-0",
    ]
    assert all(by_name[stage.name].config == stage.config for stage in stages(alike, [0])), "the same stages, fewer"


@pytest.mark.parametrize(
    ("setting", "others"),
    [
        ("base.lr=0.5", {"base", "cold-0", "rl-0", "both-0", "eval-base", "eval-cold-0", "eval-rl-0", "eval-both-0"}),
        ("sft.lr=0.5", {"cold-0", "both-0", "eval-cold-0", "eval-both-0"}),
        ("rl.lr=0.5", {"rl-0", "both-0", "eval-rl-0", "eval-both-0"}),
        ("eval.trials=2", {"eval-base", "eval-cold-0", "eval-rl-0", "eval-both-0"}),
        ("eval_user.seed=7", {"eval-base", "eval-cold-0", "eval-rl-0", "eval-both-0"}),
        ("reproduce.user_model=runs/um", set()),
        (
            "reproduce.intents=[cancel]",
            {"rl-0", "both-0", "eval-base", "eval-cold-0", "eval-rl-0", "eval-both-0"},
        ),
    ],
)
def test_a_setting_changes_the_stages_that_come_from_it(config: RunConfig, setting: str, others: set[str]) -> None:
    changed = load_config("reproduce", [f"runs_dir={config.runs_dir}", "eval.tasks=10", setting])
    after = {stage.name: stage.config for stage in stages(changed, [0])}
    assert {stage.name for stage in stages(config, [0]) if after[stage.name] != stage.config} == others


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ("reproduce.cold_start=[retail-generated]", "retail-generated is in cold_start and in rl"),
        ("reproduce.unseen=[hotel-generated]", "hotel-generated is trained on"),
        ("reproduce.kept_out=hotel-generated", "hotel-generated is trained on"),
        ("reproduce.kept_out=telecom-generated", "telecom-generated is kept_out"),
        ("reproduce.read=[retail-generated]", "is not in read"),
        ("reproduce.rl=[]", "must each name an environment"),
        ("reproduce.arms=[rl,both]", "the arm both begins where the arm cold ends"),
        ("reproduce.arms=[rl] reproduce.further_cold_start=5", "further_cold_start begins where the arm cold ends"),
    ],
)
def test_a_division_that_shows_nothing_is_refused(changed: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        load_config("reproduce", changed.split())


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The stages that are run, and whether they are resumed. The recipes are stand-ins that leave a finished run;
    ``both-0`` is broken off the first time."""
    seen: list[tuple[str, bool]] = []

    class Recipe:
        @staticmethod
        def run(config: RunConfig) -> None:
            seen.append((config.name, config.resume is not None))
            made = RunDirectory(config.runs_dir, config.name, existing="resume" if config.resume else "refuse")
            made.write_config(config.model_copy(update={"resume": None}).model_dump(mode="json"))
            made.write_status("finished" if config.name != "both-0" or config.resume else "interrupted")
            if config.name == "both-0" and not config.resume:
                raise KeyboardInterrupt

    monkeypatch.setattr(experiments.importlib, "import_module", lambda name: Recipe)
    return seen


def test_the_same_command_goes_on_where_it_stopped(config: RunConfig, ran: list[tuple[str, bool]]) -> None:
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        Experiment(stages(config, [0])).run(said.append)
    assert [name for name, _ in ran] == ["base", "cold-0", "rl-0", "both-0"]
    ran.clear()
    again = Experiment(stages(config, [0]))
    again.run(said.append)
    assert ran[0] == ("both-0", True) and not any(resumed for _, resumed in ran[1:])
    assert len(ran) == 5 and all(stage.is_finished for stage in again.stages)
    ran.clear()
    Experiment(stages(config, [0, 1])).run(said.append)
    assert [name for name, _ in ran] == ["cold-1", "rl-1", "both-1", "eval-cold-1", "eval-rl-1", "eval-both-1"]
    assert "Stage 1 of 15: base: finished before." in said[-15:][0] or any("finished before" in s for s in said[-15:])


def test_stages_of_other_settings_are_refused_before_anything_runs(
    config: RunConfig, ran: list[tuple[str, bool]]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        Experiment(stages(config, [0])).run(print)
    ran.clear()
    other = config.model_copy(update={"rl": config.rl.model_copy(update={"lr": 0.5})})
    with pytest.raises(ConfigError, match=r"begun with other settings \(rl.lr\)"):
        Experiment(stages(other, [0])).run(print)
    assert ran == []
