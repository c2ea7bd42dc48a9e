"""Launch files: they run what `muarl` understands, ask for the machines that `muarl plan` names, and hold no secret."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.environments.registry import find
from muarl.planning.assumptions import Assumptions
from muarl.planning.models import PUBLISHED
from muarl.planning.plan import make_plan

PRESETS = ("mua-8b", "mua-14b", "mua-32b", "mua-30b-a3b")
STUB = """#!/usr/bin/env bash
{ printf '%s\\n' "$(basename "$0")" "$@"; echo; } >> "$CALLS"
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def plan_of(preset: str) -> Any:
    config = load_config(preset)
    return make_plan(PlannedRun.of(config), PUBLISHED[config.model.checkpoint], Assumptions())


def run_script(script: Path, folder: Path, *arguments: str, **environment: str) -> list[list[str]]:
    """Run a script in a folder where muarl, srun and scontrol only note how they were called; those calls."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("muarl", "srun"):
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
    (programs / "scontrol").write_text("#!/usr/bin/env bash\nprintf 'first\\nsecond\\n'\n")
    (programs / "scontrol").chmod(0o755)
    (folder / ".venv/bin").mkdir(parents=True, exist_ok=True)
    (folder / ".venv/bin/activate").touch()
    calls = folder / "calls"
    calls.unlink(missing_ok=True)
    own = {"PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(calls)} | environment
    done = subprocess.run(
        ["bash", str(script), *arguments], cwd=folder, env=own, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "SECRET" not in done.stdout + done.stderr
    return [call.split("\n") for call in calls.read_text().strip().split("\n\n")]


def slurm(repository: Path, folder: Path, *arguments: str, script: str = "train") -> list[list[str]]:
    return run_script(
        repository / f"deploy/slurm/{script}.sbatch",
        folder,
        *arguments,
        SLURM_SUBMIT_DIR=str(folder),
        SLURM_JOB_ID="7",
        SLURM_JOB_NODELIST="first,second",
        SLURM_NNODES="4",
        SLURM_GPUS_ON_NODE="8",
        SLURM_CPUS_PER_TASK="64",
    )


@pytest.mark.parametrize("script", ["slurm/train.sbatch", "slurm/coldstart.sbatch", "kuberay/run.sh"])
def test_scripts_are_bash(repository: Path, script: str) -> None:
    done = subprocess.run(
        ["bash", "-n", str(repository / "deploy" / script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_slurm_looks_for_mistakes_first_and_then_runs_one_command_on_the_cluster(
    repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "keys.env").write_text("OPENAI_API_KEY=SECRET\n")
    dry, start = slurm(repository, tmp_path, "mua-8b", "--name", "second", "rl.steps=3")
    assert dry == [
        "muarl",
        "train",
        "--config",
        "mua-8b",
        "--cluster",
        "auto",
        "--dry-run",
        "--name",
        "second",
        "rl.steps=3",
    ]
    assert start[:1] == ["srun"] and "symmetric-run" in start
    ray = start[start.index("symmetric-run") : start.index("--")]
    assert ray[ray.index("--address") + 1] == "first:6379"
    assert ray[ray.index("--min-nodes") + 1] == "4"
    assert not {"--head", "--port", "--block", "--node-ip-address"} & set(ray), "symmetric-run refuses those"
    command = start[start.index("--") + 1 :]
    assert command == ["muarl", "train", "--config", "mua-8b", "--cluster", "auto", "--name", "second", "rl.steps=3"]


def test_slurm_goes_on_with_a_run_that_has_a_checkpoint(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "runs/mua-32b/checkpoints/rl/step-10").mkdir(parents=True)
    _, start = slurm(repository, tmp_path)
    assert start[start.index("--") + 1 :] == ["muarl", "train", "--resume", "runs/mua-32b", "--cluster", "auto"]


def test_kuberay_does_the_same(repository: Path, tmp_path: Path) -> None:
    script = repository / "deploy/kuberay/run.sh"
    dry, start = run_script(script, tmp_path, "mua-14b")
    assert dry == ["muarl", "train", "--config", "mua-14b", "--cluster", "auto", "--dry-run"]
    assert start == ["muarl", "train", "--config", "mua-14b", "--cluster", "auto"]
    (tmp_path / "runs/mua-14b/checkpoints/rl/step-10").mkdir(parents=True)
    (again,) = run_script(script, tmp_path, "mua-14b")
    assert again == ["muarl", "train", "--resume", "runs/mua-14b", "--cluster", "auto"]


@pytest.mark.slow
def test_the_cold_start_is_launched_on_slurm_and_goes_on(repository: Path, tmp_path: Path) -> None:
    dry, start = slurm(repository, tmp_path, "mua-14b", script="coldstart")
    wanted = ["muarl", "sft", "--config", "mua-14b", "--cluster", "auto", "--name", "mua-14b-cold"]
    assert dry == [*wanted, "--dry-run"]
    assert start[start.index("--") + 1 :] == wanted
    (tmp_path / "runs/mua-14b-cold/checkpoints/step-10").mkdir(parents=True)
    _, again = slurm(repository, tmp_path, "mua-14b", script="coldstart")
    assert again[again.index("--") + 1 :] == ["muarl", "sft", "--resume", "runs/mua-14b-cold", "--cluster", "auto"]
    result = CliRunner().invoke(app, dry[1:])
    assert result.exit_code == 0 and "is NOT there yet" in result.stderr, "conversations may come after the check"


def test_kuberay_launches_the_cold_start_too(repository: Path, tmp_path: Path) -> None:
    script = repository / "deploy/kuberay/run.sh"
    dry, start = run_script(script, tmp_path, "sft", "mua-8b")
    assert start == ["muarl", "sft", "--config", "mua-8b", "--cluster", "auto", "--name", "mua-8b-cold"]
    assert dry == [*start[:6], "--dry-run", *start[6:]]
    (tmp_path / "runs/mua-8b-cold/checkpoints/step-10").mkdir(parents=True)
    (again,) = run_script(script, tmp_path, "sft", "mua-8b")
    assert again == ["muarl", "sft", "--resume", "runs/mua-8b-cold", "--cluster", "auto"]


def test_cold_start_jobs_ask_for_the_learner_s_machines(repository: Path) -> None:
    slurm_text = (repository / "deploy/slurm/coldstart.sbatch").read_text()
    assert "#SBATCH --nodes=1\n" in slurm_text and "--nodes=2 deploy/slurm/coldstart.sbatch mua-32b" in slurm_text
    kube = (repository / "deploy/kuberay/coldstart.yaml").read_text()
    assert "mua-14b: 1, mua-32b: 2" in kube
    for preset, nodes in (("mua-8b", 1), ("mua-14b", 1), ("mua-32b", 2)):
        assert -(-load_config(preset).learner.processes // 8) == nodes
        text = kube.replace("${MUARL_PRESET}", preset).replace("${MUARL_NODES}", str(nodes))
        job = yaml.safe_load(text)
        assert job["metadata"]["name"] == f"{preset}-cold" and job["spec"]["entrypoint"] == f"muarl-run sft {preset}"
        (workers,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
        assert workers["replicas"] == workers["maxReplicas"] == nodes
        like = yaml.safe_load((repository / "deploy/kuberay/mua-8b.yaml").read_text())
        (same,) = like["spec"]["rayClusterSpec"]["workerGroupSpecs"]
        assert workers["template"] == same["template"]


def test_the_command_is_one_that_muarl_understands(repository: Path, tmp_path: Path) -> None:
    dry = slurm(repository, tmp_path, "mua-8b", "--name", "second", "rl.steps=3", "rl.tasks_per_step=4")[0]
    result = CliRunner().invoke(app, dry[1:])
    assert result.exit_code == 0, result.output
    config = yaml.safe_load(result.stdout)
    assert (config["name"], config["rl"]["steps"], config["cluster"]["address"]) == ("second", 3, "auto")


def test_slurm_asks_for_the_machines_of_the_plan(repository: Path) -> None:
    text = (repository / "deploy/slurm/train.sbatch").read_text()
    asked = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)", text, re.MULTILINE))
    per_node = int(asked["gpus-per-node"])
    assert int(asked["nodes"]) * per_node == plan_of("mua-32b").gpus
    for preset, nodes in re.findall(r"sbatch --nodes=(\d+) deploy/slurm/train.sbatch (mua-\w+)", text):
        assert plan_of(nodes).deployment.nodes(per_node) == int(preset)
    _check_cpus_and_memory(
        int(asked["cpus-per-task"]), int(asked["mem"].removesuffix("G")), int(asked["nodes"]), "mua-32b"
    )


def _check_cpus_and_memory(cpus: int, gib: int, nodes: int, preset: str) -> None:
    """There are CPUs for every process that Ray must place, and memory for a node full of samplers."""
    config = load_config(preset)
    c = config.cluster
    wanted = config.learner.processes * c.learner_cpus + c.samplers * c.sampler_cpus + c.rollout_workers * c.worker_cpus
    assert wanted <= cpus * nodes
    plan = plan_of(preset)
    sampler = plan.host["each sampler, as it starts"]
    sent = next(size for name, size in plan.host.items() if name.startswith("/dev/shm"))
    # As if all samplers of the run were on as few nodes as their GPUs allow.
    together = min(config.cluster.samplers, int(8 // config.cluster.sampler_gpus))
    assert gib << 30 > together * sampler + sent


@pytest.mark.parametrize("preset", PRESETS)
def test_kuberay_asks_for_the_machines_of_the_plan_and_takes_keys_from_a_secret(repository: Path, preset: str) -> None:
    text = (repository / f"deploy/kuberay/{preset}.yaml").read_text()
    job = yaml.safe_load(text)
    assert (job["apiVersion"], job["kind"], job["metadata"]["name"]) == ("ray.io/v1", "RayJob", preset)
    spec = job["spec"]
    assert spec["entrypoint"].split() == ["muarl-run", preset]
    head, (workers,) = spec["rayClusterSpec"]["headGroupSpec"], spec["rayClusterSpec"]["workerGroupSpecs"]
    assert head["rayStartParams"]["num-gpus"] == "0"
    (container,) = workers["template"]["spec"]["containers"]
    limits = container["resources"]["limits"]
    gpus = int(limits["nvidia.com/gpu"])
    assert workers["replicas"] == workers["minReplicas"] == workers["maxReplicas"]
    assert workers["replicas"] * gpus == plan_of(preset).gpus
    assert workers["rayStartParams"]["num-gpus"] == str(gpus)
    _check_cpus_and_memory(int(limits["cpu"]), int(limits["memory"].removesuffix("Gi")), workers["replicas"], preset)
    for one in (*head["template"]["spec"]["containers"], container):
        assert one["image"] == "${MUARL_IMAGE}"
        assert all("secretKeyRef" in variable["valueFrom"] for variable in one["env"])
        mounted = {mount["mountPath"] for mount in one["volumeMounts"]}
        assert mounted == {"/data", "/dev/shm"}
    for group in (head, workers):
        shared = next(v for v in group["template"]["spec"]["volumes"] if v["name"] == "shared-memory")
        assert int(shared["emptyDir"]["sizeLimit"].removesuffix("Gi")) << 30 > 0


@pytest.mark.parametrize("preset", PRESETS)
def test_shared_memory_of_a_node_holds_a_set_of_weights(repository: Path, preset: str) -> None:
    job = yaml.safe_load((repository / f"deploy/kuberay/{preset}.yaml").read_text())
    (workers,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    shared = next(v for v in workers["template"]["spec"]["volumes"] if v["name"] == "shared-memory")
    size = int(shared["emptyDir"]["sizeLimit"].removesuffix("Gi")) << 30
    assert size > 1.5 * plan_of(preset).step["weights_sent"]


def test_nothing_names_a_registry_or_holds_a_key(repository: Path) -> None:
    for file in (repository / "deploy").rglob("*"):
        if file.is_file():
            text = file.read_text()
            assert not re.search(r"image:\s*[\w.-]+\.[a-z]{2,}/", text), file.name
            assert not re.search(r"sk-[A-Za-z0-9]{8,}", text), file.name
            assert not re.search(r"(?<![\w.$}])/(work|root|Users)/", text), file.name


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_for_big_models_fit_and_say_where_every_value_comes_from(repository: Path, preset: str) -> None:
    assert plan_of(preset).fits
    source = (repository / f"src/muarl/presets/{preset}.yaml").read_text()
    for number, line in enumerate(source.splitlines(), 1):
        code, _, comment = line.partition("#")
        if ":" in code and not code.rstrip().endswith(":") and not code.startswith("extends"):
            inherited = re.search(r"^cluster:.*\[ours\]", source, re.MULTILINE) and number > _line_of(
                source, "cluster:"
            )
            named = code.startswith(("name:", "  command:", "  text:"))  # what `muarl presets` says is no setting
            assert inherited or named or re.search(r"\[(paper|script|ours)\]", comment), (
                f"{preset}.yaml:{number}: {line}"
            )


def _line_of(source: str, start: str) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if line.startswith(start))


def test_presets_hold_the_paper_s_numbers() -> None:
    for preset in PRESETS:
        c = load_config(preset)
        assert (c.rl.tasks_per_step, c.rl.group_size, c.rollout.max_turns, c.rl.temperature) == (32, 8, 30, 1.0)
        assert (c.rl.kl_coef, c.rl.kl_estimator, c.rl.lr, c.rl.schedule, c.rl.warmup) == (
            0.001,
            "k3",
            1e-6,
            "constant",
            0,
        )
        assert (c.rl.clip_low, c.rl.clip_high, c.rl.dual_clip, c.rl.grad_clip) == (0.2, 0.2, 3.0, 1.0)
        assert (c.model.max_context, c.rollout.tokens_per_turn, c.model.thinking) == (32768, 1024, False)
        assert (c.sft.batch, c.sft.epochs, c.sft.lr, c.sft.optimizer) == (128, 2, 5e-6, "adamw")
        assert c.user.endpoint is not None and c.user.endpoint.model == "gpt-4o-2024-11-20"
        assert c.eval_user.endpoint is not None and c.eval_user.endpoint.model != c.user.endpoint.model
        assert [d.name for d in c.domains] == ["retail-generated", "airline-generated"], (
            "the paper's mix, on made tasks"
        )
        assert not any(find(d.name).is_benchmark for d in c.domains), "benchmarks are for measuring"
        assert json.dumps(c.model_dump(mode="json"))
