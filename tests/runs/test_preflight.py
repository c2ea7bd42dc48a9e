"""What is found before anything is loaded: memory that is not there, and a dry run of everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from muarl.backends import hardware
from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.hardware import free_memory
from muarl.backends.models import load_model
from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.planning.models import PUBLISHED
from muarl.runs import room

MIB = 1 << 20


def muarl(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def run_of(preset: str, overrides: list[str]) -> PlannedRun:
    return PlannedRun.of(load_config(preset, overrides))


def memory_of(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(hardware, "free_memory", lambda: size)


@pytest.mark.parametrize("command", ["train", "sft", "quickstart"])
def test_too_little_memory_is_said_before_anything_is_loaded(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memory_of(monkeypatch, 8 * MIB)
    result = muarl(command, "model.device=cpu", "threads=1", f"runs_dir={tmp_path / 'runs'}")
    assert result.exit_code == 2, result.output
    words = " ".join(result.stderr.split())
    assert "needs at least" in words and "free" in words
    assert "model.dtype=bfloat16" in words, "the nearest that fits"
    assert not (tmp_path / "runs").exists()


def test_the_nearest_that_fits_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_of(monkeypatch, 8 * MIB)
    with pytest.raises(ConfigError, match="bfloat16"):
        room.check_memory(run_of("quickstart", ["model.device=cpu", "threads=1"]), "rl")
    room.check_memory(run_of("quickstart", ["model.device=cpu", "threads=1", "model.dtype=bfloat16"]), "rl")


def test_where_nothing_would_fit_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_of(monkeypatch, MIB)
    with pytest.raises(ConfigError, match="smaller model"):
        room.check_memory(run_of("quickstart", ["model.device=cpu", "threads=1"]), "rl")


def test_where_the_system_does_not_say_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_of(monkeypatch, 0)
    room.check_memory(run_of("quickstart", ["model.device=cpu", "threads=1"]), "rl")


@pytest.mark.parametrize("preset", ["quickstart", "quickstart-adamw"])
def test_what_is_certain_is_no_more_than_what_a_run_takes(preset: str) -> None:
    """The check must never refuse what works: on a CPU it counts no cache and no activations."""
    config = run_of(preset, ["model.device=cpu", "threads=1"])
    policy = load_model(config.model)
    weights = sum(p.numel() * p.element_size() for p in policy.model.parameters())
    shape = room.model_shape(config.model.checkpoint)
    sure = room.sure_bytes(config, shape, "rl", on_gpu=False)
    # The model, its gradients, two moments (one of what Muon trains), the reference, and the engine's copy with its
    # tables.
    matrices = 4 * shape.matrix_parameters
    least = 6 * weights if preset == "quickstart-adamw" else 5 * weights - matrices
    assert least < sure < least + 0.2 * weights
    assert room.sure_bytes(config, shape, "rl", on_gpu=True) > sure, "on a GPU the cache is there from the start"
    # To evaluate: the model, and the engine's copy. To learn from demonstrations: no engine and no reference.
    assert 2 * weights < room.sure_bytes(config, shape, None, on_gpu=False) < 2.2 * weights
    assert room.sure_bytes(config, shape, "sft", on_gpu=False, sampling=False) == 4 * weights - matrices


def test_what_is_certain_of_a_training_is_by_its_own_section() -> None:
    """A user model is learnt from demonstrations and then talks: RL's reference is none of its concern."""
    config = run_of("quickstart", ["model.device=cpu", "threads=1", "rl.kl_coef=0.1"])
    shape = room.model_shape(config.model.checkpoint)
    for sampling in (True, False):
        sft, rl = (room.sure_bytes(config, shape, by, on_gpu=False, sampling=sampling) for by in ("sft", "rl"))
        assert rl - sft == 4 * shape.parameters, "the reference's weights"


def test_an_evaluation_says_so_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    memory_of(monkeypatch, 4 * MIB)
    result = muarl("eval", "-c", "quickstart", "model.device=cpu", "eval.tasks=2", f"runs_dir={tmp_path / 'runs'}")
    assert result.exit_code == 2, result.output
    assert "needs at least" in " ".join(result.stderr.split())


def test_what_is_not_in_this_process_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_of(monkeypatch, MIB)
    room.check_memory(run_of("quickstart", ["model.device=cpu", "engine.kind=vllm"]), None)
    sharded = run_of("quickstart", ["model.device=cpu", "learner.kind=fsdp"])
    room.check_memory(sharded, "sft", sampling=False)
    with pytest.raises(ConfigError, match="needs at least"):
        room.check_memory(sharded, None)


def test_this_machine_says_what_is_free() -> None:
    assert free_memory() > 100 * MIB


def test_a_dry_run_of_a_cold_start_says_what_it_takes() -> None:
    result = muarl("sft", "-c", "quickstart", "model.device=cpu", "--dry-run")
    assert result.exit_code == 0, result.output
    words = " ".join(result.stderr.split())
    assert "memory: the learner holds" in words and "plan: 120 steps of about" in words
    assert "without a reference model" in words and "sampler" not in words
    result = muarl("sft", "-c", "mua-8b", "--dry-run")
    words = " ".join(result.stderr.split())
    assert "each of 4 learner processes holds" in words and "dollars of GPUs" in words
    result = muarl("sft", "-c", "mua-32b", "learner.processes=1", "--dry-run")
    assert result.exit_code == 2
    assert "does not fit its machines" in " ".join(result.stderr.split())


def dry(*arguments: str) -> Any:
    return muarl("train", "--dry-run", *arguments)


def test_a_dry_run_builds_what_it_can_and_leaves_the_configuration_alone_on_stdout() -> None:
    result = dry("--config", "quickstart", "rl.tasks_per_step=32")
    assert result.exit_code == 0, result.output
    assert yaml.safe_load(result.stdout)["rl"]["tasks_per_step"] == 32
    for words in (
        "704,704 parameters",
        "32 drawn",
        "optimiser state",
        "micro-batches",
        "a cache of 256",
        "the configuration is valid",
    ):
        assert words in result.stderr


@pytest.mark.slow
def test_a_dry_run_of_a_large_model_needs_neither_weights_nor_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = dry(
        "model.checkpoint=Qwen/Qwen3-32B",
        "model.dtype=bfloat16",
        "domain.size=official",
        "user={kind: llm, endpoint: {model: some-model}}",
        "model.max_context=4096",
        "model.device=cpu",
    )
    assert result.exit_code == 0, result.output
    assert f"{PUBLISHED['Qwen/Qwen3-32B'].parameters:,}" in result.stderr
    assert "not on this machine" in result.stderr
    assert "some-model" in result.stderr and "OPENAI_API_KEY, which is NOT set here" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("model.max_context=100000",), "reads at most"),
        (("model.max_context=20",), "policy text and tools alone take"),
        (("learner.pack_tokens=256",), "learner.pack_tokens is 256"),
        (("model.checkpoint=nowhere",), "nowhere"),
        (("user.kind=scripted",), "user.kind is scripted"),
        (("eval_user.kind=sampled", "eval_user.checkpoint=/no/user"), "eval_user.checkpoint: /no/user: no such"),
        (("model.checkpoint=Qwen/Qwen3-8B", "domain.size=official", "model.max_context=1024"), "about"),
        (("model.checkpoint=Qwen/Qwen3-8B", "model.max_context=65536", "learner.pack_tokens=65536"), "at most 40960"),
        (
            (
                "model.checkpoint=Qwen/Qwen3-8B",
                "model.device=cuda",
                "model.max_context=32768",
                "learner.pack_tokens=32768",
            ),
            "does not fit its machines",
        ),
    ],
)
def test_a_dry_run_says_what_does_not_fit_together(arguments: tuple[str, ...], words: str) -> None:
    result = dry(*arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_a_smaller_size_is_offered_only_where_there_is_one() -> None:
    told = " ".join(dry("model.max_context=20").stderr.split())
    assert "tokens: raise it To go on, add model.max_context=" in told


def test_all_that_has_no_room_is_told_at_once_with_settings_that_get_on() -> None:
    result = dry("model.max_context=20", "learner.pack_tokens=10")
    first, second, last = result.stderr.strip().splitlines()[-3:]
    assert result.exit_code == 2
    assert "model.max_context is 20, and policy text and tools alone take" in first
    assert "learner.pack_tokens is 10, and an episode may grow to 20 tokens" in second
    settings = last.removeprefix("To go on, add ").removesuffix(" to the command").split()
    assert [setting.split("=")[0] for setting in settings] == ["model.max_context", "learner.pack_tokens"]
    assert dry("model.max_context=20", "learner.pack_tokens=10", *settings).exit_code == 0


def test_packs_follow_the_context_where_they_are_automatic() -> None:
    assert load_config("quickstart").learner.pack_tokens == load_config("cpu").learner.pack_tokens == 4096
    assert load_config("cpu", ["model.max_context=8192"]).learner.pack_tokens == 8192
    assert load_config("cpu", ["model.max_context=8192", "learner.pack_tokens=9000"]).learner.pack_tokens == 9000
    assert load_config("smollm2", ["learner.pack_tokens=auto"]).learner.pack_tokens == 4096
    for context in ("many", "-3"):
        with pytest.raises(ConfigError, match="model.max_context"):
            load_config("cpu", [f"model.max_context={context}"])


def test_automatic_packs_are_smaller_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def packed(mib: int, *settings: str, total: int | None = None, sampling: bool = True) -> tuple[int, str]:
        memory_of(monkeypatch, mib * MIB)
        monkeypatch.setattr(room, "total_memory", lambda: (total or mib) * MIB)
        config, said = room.within_memory(
            load_config("quickstart-easy", ["model.device=cpu", "engine.processes=1", *settings]), sampling=sampling
        )
        return config.learner.pack_tokens, said

    for preset in ("quickstart", "cpu"):
        for sampling in (True, False):
            memory_of(monkeypatch, 512 * MIB)  # other programs take memory for the moment
            monkeypatch.setattr(room, "total_memory", lambda: 8192 * MIB)
            config = load_config(preset, ["model.device=cpu"])
            assert room.within_memory(config, sampling=sampling) == (config, "")
    tokens, said = packed(780)
    assert 768 <= tokens < 4096 and f"learner.pack_tokens: auto is {tokens} here instead of 4096" in said
    assert tokens < packed(800)[0] < 4096
    assert packed(700) == (768, packed(700)[1]), "an episode may have as many"
    assert packed(0) == (4096, ""), "nobody knows what is free"
    assert packed(780, "model.max_context=4096") == (4096, "")


def test_a_run_says_that_memory_made_its_packs_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller = lambda config, *, sampling: (load_config("cpu", ["learner.pack_tokens=1024"]), "made smaller")  # noqa: E731
    monkeypatch.setattr(room, "within_memory", smaller)
    monkeypatch.setattr("muarl.cli.train._say_what_would_run", lambda *given: None)
    result = dry("model.device=cpu")
    assert "made smaller" in result.stderr and yaml.safe_load(result.stdout)["learner"]["pack_tokens"] == 1024
    result = dry("model.device=cpu", "learner.pack_tokens=4096")
    assert "made smaller" not in result.stderr


def test_a_dry_run_looks_at_the_tensors_of_a_checkpoint_that_is_here(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    source = checkpoint_folder("base")
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    fields = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(fields | {"intermediate_size": 999}))
    result = dry("--checkpoint", str(folder))
    assert result.exit_code == 2
    assert "mlp.gate_proj.weight" in result.stderr.replace("\n", "")


def test_a_dry_run_of_the_cold_start_says_nothing_of_reinforcement_learning() -> None:
    result = muarl("sft", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "seconds a step" not in result.stderr
    assert "the configuration is valid" in result.stderr


@pytest.mark.parametrize(("epochs", "steps"), [(None, 200), (1, 16), (2, 32), (3, 47)])
def test_rounds_over_the_demonstrations_become_steps(epochs: int | None, steps: int) -> None:
    from muarl.config.stages import SftConfig

    assert SftConfig(epochs=epochs, batch=128).step_count(2000) == steps


LINES = '''
from muarl import Action, Database, Domain, Environment, Task, tool


class Office(Domain):
    name, policy = "office", "Set what is asked for."

    @tool(writes=True)
    def set_plate(self, plate: str) -> str:
        """Set the number plate.

        plate: the new one.
        """
        self.db["permits"]["P1"]["plate"] = plate
        return "done"


def task(split: str, index: int) -> Task:
    return Task(
        id=f"office-{split}-0-{index}", domain="office", scenario="You have a new car.",
        actions=(Action("set_plate", {"plate": "K 1"}),), database=Database({"permits": {"P1": {"plate": "-"}}}), AGENDA
    )


OFFICE = Environment(name="office", domain=Office, tasks=task)
'''


@pytest.mark.parametrize("lines", [True, False])
def test_scripted_users_play_own_tasks_that_list_lines(lines: bool, tmp_path: Path) -> None:
    agenda = 'agenda={"lines": ["Please set K 1.", "Yes."]}' if lines else ""
    (tmp_path / "office.py").write_text(LINES.replace("AGENDA", agenda))
    arguments = ("eval", f"{tmp_path / 'office.py'}:OFFICE", "--agent", "idle", "--tasks", "2")
    result = muarl(*arguments, "eval_user.kind=scripted", f"runs_dir={tmp_path / 'runs'}")
    assert result.exit_code == (0 if lines else 2), result.output
    assert lines or "eval_user.kind is scripted, and tasks of office list no lines" in " ".join(result.stderr.split())
