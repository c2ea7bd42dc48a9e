"""Run configurations: presets, files, overrides, and the words for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import ValidationError

from muarl.basics.errors import ConfigError
from muarl.config.load import dump_config, load_config, preset_names
from muarl.config.rl import METHODS, RlConfig
from muarl.config.sections import RunConfig, fields_of
from muarl.runs.tasks import check_may_train


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_survives_being_dumped_and_read_again(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    (tmp_path / "config.yaml").write_text(dump_config(config))
    assert load_config(tmp_path) == config, "a run folder stands for its config.yaml"


def test_traits_are_levels_or_a_name_for_them() -> None:
    config = load_config(
        "cpu", ["eval_user.traits=hard", "user.traits.withholding=[0.2, 0.8]", "user.traits.mistakes=1"]
    )
    assert config.eval_user.traits.any and config.eval_user.traits.withholding == 0.9
    assert config.user.traits.withholding == (0.2, 0.8) and config.user.traits.mistakes == 1.0
    assert not load_config("cpu", ["user.traits=easy"]).user.traits.any
    mixed, default = load_config("cpu", ["user.traits=mixed"]).user.traits, load_config("cpu").user.traits
    assert default == mixed.model_copy(update={"where_possible": True})


def test_the_presets_of_the_quickstart_and_the_cpu_are_there() -> None:
    assert {"quickstart", "cpu"} <= set(preset_names())


def test_the_dump_writes_every_default() -> None:
    dumped = yaml.safe_load(dump_config(RunConfig()))
    for name, section, _ in fields_of(RunConfig):
        if section is None and not name.startswith("learner.lora.") and "endpoint." not in name:  # null by default
            value = dumped
            for key in name.split("."):
                value = value[key]


def test_overrides_are_typed_by_yaml_and_the_last_one_wins() -> None:
    config = load_config(
        "quickstart",
        [
            *["rl.lr=1e-4", "rl.steps=7", "rl.steps=8", "rl.dynamic_sampling=true", "domain.intents=[cancel, return]"],
            *["sft.error_profile={guess: 0.25}", "resume=null", "sft.demonstrations_file=a b.jsonl"],
        ],
    )
    assert config.rl.lr == 1e-4
    assert config.rl.steps == 8
    assert config.rl.dynamic_sampling is True
    assert config.domain.intents == ("cancel", "return")
    assert config.sft.error_profile.guess == 0.25
    assert config.sft.error_profile.wrong_id == 0.0, "a mapping given as a whole replaces what the preset said"
    assert config.resume is None
    assert config.sft.demonstrations_file == Path("a b.jsonl")


def test_an_override_may_open_a_section_that_was_empty() -> None:
    config = load_config("quickstart", ["user.endpoint=null", "user.endpoint.model=some-model", "user.kind=llm"])
    assert config.user.endpoint is not None
    assert config.user.endpoint.model == "some-model"


def test_a_file_may_extend_a_preset_and_another_file(tmp_path: Path) -> None:
    (tmp_path / "first.yaml").write_text("extends: quickstart\nrl: {steps: 5}\n")
    (tmp_path / "second.yaml").write_text("extends: first.yaml\nname: second\nrl: {warmup: 1}\n")
    config = load_config(tmp_path / "second.yaml")
    assert (config.name, config.rl.steps, config.rl.warmup) == ("second", 5, 1)
    assert config.sft == load_config("quickstart").sft


def test_a_config_cannot_be_changed() -> None:
    config = RunConfig()
    with pytest.raises(ValidationError):
        config.rl.steps = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["rl.stpes=3"], ["override 'rl.stpes=3'", "no key 'rl.stpes'", "did you mean 'rl.steps'?"]),
        (["steps_per_task=3"], ["override 'steps_per_task=3'", "no key 'steps_per_task'"]),
        (["tasks_per_step=3"], ["did you mean 'rl.tasks_per_step'?"]),
        (["user.endpoint.modle=x"], ["did you mean 'user.endpoint.model'?"]),
        (["eval_user.traits=grumpy"], ["eval_user.traits", "easy, typical, hard"]),
        (["user.traits.mistakes=2"], ["user.traits.mistakes", "from 0 to 1, or [low, high]"]),
        (["user.traits.mistakes=[0.5, 0.1]"], ["user.traits.mistakes", "from 0 to 1, or [low, high]"]),
        (["user.traits.mistakes=true"], ["user.traits.mistakes", "from 0 to 1, or [low, high]"]),
        (["user.traits.mistake=0.5"], ["did you mean 'user.traits.mistakes'?"]),
        (["eval_user.kind=scripted", "eval_user.traits=hard"], ["eval_user", "scripted users have none"]),
        (["rl.steps=many"], ["override 'rl.steps=many'", "rl.steps", "integer", "'many'"]),
        (["sft.error_profile.skip_confirmations=0.1"], ["did you mean 'sft.error_profile.skip_confirmation'?"]),
        (["sft.error_profile.guess=1.5"], ["sft.error_profile.guess", "less than or equal to 1"]),
        (["rl.steps=-1"], ["rl.steps", "greater than or equal to 0", "-1"]),
        (["rl.kl_estimator=k9"], ["rl.kl_estimator", "'k1', 'k2' or 'k3'", "'k9'"]),
        (["rl.steps"], ["override 'rl.steps'", "key=value"]),
        (["=3"], ["key=value"]),
        (["rl.steps=[1"], ["override 'rl.steps=[1'", "not valid YAML"]),
        (["seed.x=1"], ["seed is a single value"]),
        (["rl.min_group=9"], ["override 'rl.min_group=9'", "min_group (9) is larger than group_size (8)"]),
        (["user.kind=llm"], ["user", "endpoint.model"]),
        (["eval.agent=endpoint"], ["eval", "endpoint.model"]),
        (["coldstart.teacher=endpoint"], ["coldstart", "endpoint.model must name the model that serves"]),
        (["coldstart.tools=imagined"], ["coldstart", "tools_endpoint.model must name the model that plays them"]),
        (["coldstart.tools=imagined", "coldstart.tools_endpoint.temperature=1"], ["tools_endpoint.model"]),
        (["coldstart.scenarios=[]"], ["coldstart", "scenarios must name at least one"]),
        (["coldstart.scenarios=[a, b, a]"], ["coldstart", "none twice"]),
        (["coldstart.near_duplicate=1.5"], ["coldstart.near_duplicate", "less than or equal to 1"]),
        (["coldstart.error_profile.gues=1"], ["did you mean 'coldstart.error_profile.guess'?"]),
        (["coldstart.size=very large"], ["coldstart.size"]),
        (["eval.split=a/b"], ["eval.split"]),
        (["coldstart.max_cost=-1"], ["coldstart.max_cost", "greater than 0"]),
        (["user.kind=sampled"], ["user", "checkpoint must name the user model"]),
        (["name=../up"], ["name", "'../up'"]),
        (["rl.steps=2020-13-45"], ["override 'rl.steps=2020-13-45'", "rl.steps", "valid integer"]),
        (["rl={[a]: b}"], ["override 'rl={[a]: b}'", "a key must be a single value"]),
        (["rl.steps=*a"], ["override 'rl.steps=*a'", "*a is an alias"]),
        (["rl.steps=" + "9" * 5000], ["override 'rl.steps=999", "(5011 characters)", "more than 64 bits"]),
        (["rl.steps=" + "[" * 5000], ["override 'rl.steps=[[[", "(5011 characters)", "deeper than 40 levels"]),
        ([f"rl.{'a.' * 3000}b=1"], ["override 'rl.a.a.", "characters)", "more than 16 parts"]),
        (["rl.lr=.inf"], ["rl.lr", "finite"]),
        (["rl.lr=1e400"], ["rl.lr", "finite"]),
        (["name=" + "x" * 300], ["name", "at most 200 characters", "(302 characters)"]),
    ],
)
def test_a_bad_override_is_named_with_what_is_wrong(overrides: list[str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("quickstart", overrides)
    for word in words:
        assert word in str(caught.value)


def test_every_problem_gets_a_line_of_its_own() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("quickstart", ["rl.stpes=3", "rl.lr=high", "eval.trails=4"])
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "did you mean 'eval.trials'?" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rl: {stpes: 3}", ["mine.yaml", "'rl.stpes'", "did you mean 'rl.steps'?"]),
        ("rl: {steps: 3, steps: 4}", ["mine.yaml", "'steps' occurs twice"]),
        ("rl: [1, 2]", ["mine.yaml", "rl"]),
        ("- rl", ["mine.yaml", "must be a mapping"]),
        ("rl: {steps: 3", ["mine.yaml", "not valid YAML"]),
        ("extends: mine.yaml", ["mine.yaml", "extends itself"]),
        ("extends: quikstart", ["no preset 'quikstart'", "did you mean 'quickstart'?"]),
        ("seed: !!python/object/apply:os.system [true]", ["mine.yaml: line 1", "os.system is a tag"]),
        ("a: &a [x, x]\nb: [*a, *a]", ["mine.yaml: line 2, column 5", "*a is an alias"]),
        ("rl: &a {rl: *a}", ["mine.yaml: line 1, column 13", "*a is an alias"]),
        ("rl: " + "{a: " * 5000, ["mine.yaml: line 1", "nested deeper"]),
        ("? [rl]\n: 3", ["mine.yaml: line 1, column 3", "a key must be a single value"]),
        ("rl:\n  steps: 2020-13-45", ["mine.yaml", "rl.steps", "'2020-13-45'"]),
        ("seed: " + "9" * 5000, ["mine.yaml: line 1, column 7", "more than 64 bits"]),
        ("name: " + "x" * (1 << 20), ["mine.yaml", "larger than 256 KiB"]),
        ("3: 4", ["mine.yaml", "3"]),
        ("extends: [a]", ["no preset"]),
        (f"extends: {'x' * 5000}.yaml", ["no such file", "(5005 characters)"]),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    for word in words:
        assert word in str(caught.value)


def test_a_folder_that_is_no_run_is_called_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a folder without a config\.yaml"):
        load_config(tmp_path)


def test_thousands_of_problems_are_told_in_part(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("".join(f"key{n}: 1\n" for n in range(9000)))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 51 and lines[-1] == "... and 8950 more."


def test_a_key_from_the_file_below_is_blamed_on_that_file(tmp_path: Path) -> None:
    (tmp_path / "below.yaml").write_text("rl: {stpes: 3}\n")
    (tmp_path / "above.yaml").write_text("extends: below.yaml\nseed: 1\n")
    with pytest.raises(ConfigError, match=r"below\.yaml: there is no key 'rl\.stpes'"):
        load_config(tmp_path / "above.yaml")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xff\xfe\x00rl")
    with pytest.raises(ConfigError, match="mine.yaml"):
        load_config(path)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "quikstart",
            ["no preset 'quikstart'", "did you mean 'quickstart'?", "Known presets: ", ", ".join(preset_names())],
        ),
        ("nothing/like-this.yaml", ["nothing/like-this.yaml", "no such file", "quickstart"]),
    ],
)
def test_an_unknown_preset_lists_the_known_ones(source: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(source)
    for word in words:
        assert word in str(caught.value)


def test_training_on_a_benchmark_needs_to_be_said() -> None:
    official = ["domain.name=tau2-retail", "eval_user.kind=llm", "eval_user.endpoint.model=m"]
    with pytest.raises(ConfigError, match="train_on_benchmark=true"):
        check_may_train(load_config("cpu", official).domains, on_benchmark=False)
    check_may_train(load_config("cpu", official).domains, on_benchmark=True)
    check_may_train(load_config("cpu").domains, on_benchmark=False)


def test_parts_that_models_play_need_nothing_but_a_name() -> None:
    found = load_config(
        "teacher",
        [
            *["coldstart.teacher=endpoint", "coldstart.endpoint.model=a", "coldstart.tools=imagined"],
            *["coldstart.tools_endpoint={model: b}", "coldstart.scenarios=[retail-generated]"],
        ],
    ).coldstart
    assert found.endpoint is not None and found.endpoint.model == "a"
    assert found.tools_endpoint is not None and found.tools_endpoint.model == "b"
    assert found.scenarios == ("retail-generated",)


def test_every_field_is_described() -> None:
    for name, section, info in fields_of(RunConfig):
        assert section is not None or (info.description and info.description.endswith(".")), name
        assert section is None or section.__doc__, name


def test_every_error_of_the_expert_can_be_configured() -> None:
    from dataclasses import fields

    from muarl.config.section import ErrorProfileConfig
    from muarl.domains.scripted_expert import ErrorProfile

    assert set(ErrorProfileConfig.model_fields) == {field.name for field in fields(ErrorProfile)}


def test_one_process_cannot_be_asked_for_several() -> None:
    with pytest.raises(ConfigError, match=r"learner.*processes is 2, but kind torch is one process"):
        load_config("quickstart", ["learner.processes=2"])
    with pytest.raises(ConfigError, match=r"offload_reference: only learner\.kind=fsdp"):
        load_config("quickstart", ["learner.offload_reference=true"])
    config = load_config("quickstart", ["learner.kind=fsdp", "learner.processes=2", "learner.lora.rank=8"])
    assert config.learner.lora is not None
    assert config.learner.lora.alpha == 32.0
    with pytest.raises(ConfigError, match="learner.lora.targets"):
        load_config("quickstart", ["learner.lora.targets=[embed_tokens]"])


def test_endpoints_take_what_their_server_understands() -> None:
    told = "{chat_template_kwargs: {enable_thinking: false}}"
    sections = ["user", "eval_user", "eval", "coldstart"]
    given = [f"{s}.endpoint.{field}" for s in sections for field in ("model=m", "top_p=0.8", f"extra={told}")]
    config = load_config("cpu", [*given, "coldstart.tools_endpoint={model: m, top_p: 0.8, extra: %s}" % told])  # noqa: UP031
    found = [getattr(config, s).endpoint for s in sections] + [config.coldstart.tools_endpoint]
    for section in found:
        assert section is not None
        assert (section.top_p, section.extra) == (0.8, {"chat_template_kwargs": {"enable_thinking": False}})
    for wrong in ("extra={messages: []}", "extra={at: .nan}", "top_p=0"):
        with pytest.raises(ConfigError, match=r"user\.endpoint"):
            load_config("cpu", ["user.endpoint.model=m", f"user.endpoint.{wrong}"])


@pytest.mark.parametrize("name", ["eval.judge", "eval.user_judge", "eval.audit_judge", "coldstart.judge"])
def test_a_judge_may_be_a_section(name: str, tmp_path: Path) -> None:
    from muarl.rewards.judge import open_judge_model

    section, field = name.split(".")
    config = load_config("cpu", [f"{name}={{model: m, base_url: 'http://box/v1', top_p: 0.8, extra: {{k: 1}}}}"])
    spec = getattr(getattr(config, section), field)
    model = open_judge_model(spec)
    assert model is not None
    found = model.endpoint.config
    assert (found.model, found.url, found.top_p, found.extra) == ("m", "http://box/v1", 0.8, {"k": 1})
    assert found.max_tokens is None, "what is not said is as for a judge that goes by name"
    plain = load_config("cpu", [f"{name}={{model: m, base_url: 'http://box/v1'}}"])
    assert getattr(getattr(plain, section), field) == "endpoint:m@http://box/v1"
    for wrong in ("{model: m, top_p: 7}", """'endpoint:{"model": "m", "top_p": 7}'""", """'endpoint:{"top_p"'"""):
        with pytest.raises(ConfigError, match=rf"{name}: .*top_p"):
            load_config("cpu", [f"{name}={wrong}"])


class TestMethods:
    """One name for the settings of a published method."""

    def test_each_method_sets_its_keys_over_a_preset(self) -> None:
        gspo = load_config("quickstart", ["rl.method=gspo"]).rl
        assert (gspo.ratio, gspo.loss_aggregation, gspo.clip_low, gspo.clip_high) == (
            "sequence", "sequence_mean", 3e-4, 4e-4,
        )  # fmt: skip
        dapo = load_config("quickstart", ["rl.method=dapo"]).rl
        assert (dapo.clip_high, dapo.dynamic_sampling, dapo.kl_coef) == (0.28, True, 0.0)

    @pytest.mark.parametrize(
        "overrides", [["rl.clip_high=0.3", "rl.method=dapo"], ["rl.method=dapo", "rl.clip_high=0.3"]]
    )
    def test_keys_beside_it_win_in_any_order(self, overrides: list[str]) -> None:
        assert load_config("quickstart", overrides).rl.clip_high == 0.3

    def test_in_a_file_it_wins_over_what_the_file_extends(self, tmp_path: Path) -> None:
        above, file = tmp_path / "above.yaml", tmp_path / "mine.yaml"
        above.write_text("extends: quickstart\nrl: {method: gspo}\n")
        file.write_text("extends: above.yaml\nrl: {method: rloo, clip_low: 0.1}\n")
        rl = load_config(file).rl
        assert (rl.ratio, rl.advantage, rl.clip_low, rl.clip_high) == ("token", "leave_one_out", 0.1, 0.2)

    def test_what_was_resolved_is_read_back_unchanged(self, tmp_path: Path) -> None:
        config = load_config("quickstart", ["rl.method=dapo", "rl.clip_high=0.3"])
        (tmp_path / "config.yaml").write_text(dump_config(config))
        assert load_config(tmp_path / "config.yaml") == config

    def test_every_method_of_the_table_is_known(self) -> None:
        assert set(METHODS) == set(get_args(get_args(RlConfig.model_fields["method"].annotation)[0]))
        with pytest.raises(ConfigError, match="'grpo', 'dr_grpo'"):
            load_config("quickstart", ["rl.method=ppo"])
