"""Whole training runs on clusters of one machine: the same as in one process, whatever dies on the way."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muarl.backends import cluster as clustered
from muarl.basics.errors import ConfigError, MuarlError
from muarl.config.load import load_config
from muarl.learning.checkpoints import load_policy
from muarl.types.episode import Episode

from .choices import ROUNDING, first_difference, misses
from .conftest import SMALL, FinishedRun

ray = pytest.importorskip("ray", reason="pip install ray")
pytestmark = pytest.mark.slow
Train = Callable[..., Path]
SLOW_USERS = ["user.delay=[0.3, 0.5]"]


def check_same(there: FinishedRun, here: FinishedRun, steps: int) -> None:
    """Both runs made so many updates on the same episodes, each of which counted once.

    Sums taken in another order round differently. Where a number of the noise lies that near the edge between two
    tokens, both are right, and what follows it is not compared.
    """
    for found in (there, here):
        assert [r["step"] for r in found.rows] == list(range(steps))
        assert found.state["updates"] == found.state["version"] == steps
        assert [r["episodes"] for r in found.rows] == [8.0] * steps
        assert [r["excluded"] for r in found.rows] == [0.0] * steps
        assert [r["samples"] for r in found.rows] == [8.0] * steps
        names = [e.id for step in found.episodes for e in step]
        assert len(set(names)) == len(names) == 8 * steps
    for version, (mine, theirs) in enumerate(zip(there.episodes, here.episodes, strict=True)):
        assert [e.id for e in mine] == [e.id for e in theirs]
        differing = [(a, b) for a, b in zip(mine, theirs, strict=True) if first_difference(a, b) is not None]
        for a, b in differing:
            check_near_tie(a, b, here, version)
        if differing:
            return
        assert [e.verdict for e in mine] == [e.verdict for e in theirs]
        assert [e.messages for e in mine] == [e.messages for e in theirs]
        for a, b in zip(mine, theirs, strict=True):
            assert a.tokens is not None and b.tokens is not None
            assert a.tokens.logprobs == pytest.approx(b.tokens.logprobs, abs=1e-4)
    mine, theirs = (load_policy(f.checkpoint).model.state_dict() for f in (there, here))
    assert all((mine[n] - theirs[n]).abs().max() < 1e-4 for n in theirs)


def check_near_tie(mine: Episode, theirs: Episode, run: FinishedRun, version: int) -> None:
    """The first difference of two episodes of this policy version is one that rounding explains."""
    at = first_difference(mine, theirs)
    assert at is not None and mine.tokens is not None and theirs.tokens is not None
    assert mine.tokens.loss_mask[at] and theirs.tokens.loss_mask[at], "the policy did not sample what differs"
    assert mine.tokens.versions[at] == theirs.tokens.versions[at] == version
    model = load_policy(run.checkpoint_of(version)).model
    missed = misses(theirs, model, run.temperature, (at, mine.tokens.ids[at]))
    assert max(missed[at, e.tokens.ids[at]] for e in (mine, theirs) if e.tokens) < ROUNDING


def test_tokens_follow_from_weights_context_and_seed(train: Train) -> None:
    """What `check_near_tie` is built on: each token is the one that the noise of its episode's seed chooses."""
    run = FinishedRun(train("here"))
    for version, step in enumerate(run.episodes):
        model = load_policy(run.checkpoint_of(version)).model
        right, wrong = ([misses(e, model, run.temperature) for e in s] for s in (step, [*map(reseeded, step)]))
        assert all(missed < ROUNDING for of_episode in right for missed in of_episode.values())
        far = [missed > ROUNDING for of_episode in wrong for missed in of_episode.values()]
        assert sum(far) > len(far) / 4, "another seed chooses other tokens"


def reseeded(episode: Episode) -> Episode:
    return replace(episode, seed=episode.seed + 1)


def test_a_local_cluster_does_what_one_process_does(train: Train, tmp_path: Path) -> None:
    """Synchronous, with samplers of the same kind: tokens follow from weights, prompt, parameters and seed."""
    several = ["cluster.rollout_workers=2", "cluster.samplers=2", "cluster.bucket_mb=1"]
    small = [f"cluster.{part}_cpus=0.25" for part in ("worker", "sampler", "learner")]
    there = FinishedRun(train("there", "cluster.address=local", *several, *small))
    assert not ray.is_initialized(), "the run has left its cluster"
    check_same(there, FinishedRun(train("here")), 2)
    # From a checkpoint of the cluster in one process, and the other way round.
    for name, more in (("there", []), ("here", ["cluster.address=local", *several, *small])):
        train(name, f"resume={tmp_path / name}", "rl.steps=3", *more)
    check_same(FinishedRun(tmp_path / "there"), FinishedRun(tmp_path / "here"), 3)


SEVERAL = ["cluster.address=local", "cluster.rollout_workers=2", "cluster.samplers=2", "cluster.bucket_mb=1"]
SEVERAL += [f"cluster.{part}_cpus=0.25" for part in ("worker", "sampler", "learner")]


def test_weights_that_go_straight_to_samplers_give_the_same_run_though_one_dies(train: Train, tmp_path: Path) -> None:
    here = FinishedRun(train("here", "rl.steps=3"))
    saboteur = Saboteur(tmp_path / "gloo", lambda: ray.kill(actor("sampler", 1), no_restart=False))
    saboteur.start()
    gloo = FinishedRun(train("gloo", "rl.steps=3", *SLOW_USERS, *SEVERAL, "cluster.update=broadcast"))
    assert saboteur.done == 1
    check_same(gloo, here, 3)
    check_same(FinishedRun(train("shared", "rl.steps=3", *SEVERAL, "cluster.update=ipc")), here, 3)


def test_adapters_travel_alone_and_give_what_merged_weights_give(train: Train) -> None:
    lora = ["learner.lora.rank=4", "rl.lr=0.01"]
    here = FinishedRun(train("here", *lora))
    check_same(FinishedRun(train("there", *lora, *SEVERAL, "cluster.update=broadcast")), here, 2)
    check_same(FinishedRun(train("stored", *lora, *SEVERAL)), here, 2)


def test_samplers_that_sleep_change_nothing(train: Train) -> None:
    here = FinishedRun(train("here"))
    check_same(FinishedRun(train("asleep", "engine.sleep=true")), here, 2)
    check_same(FinishedRun(train("there", "engine.sleep=true", *SEVERAL)), here, 2)


class Saboteur(threading.Thread):
    """Does one thing in the middle of each step's rollouts, beginning with the second step's."""

    def __init__(self, folder: Path, *deeds: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.metrics, self.deeds, self.done = folder / "metrics.jsonl", deeds, 0

    def run(self) -> None:
        for number, deed in enumerate(self.deeds, 1):
            while not self.metrics.exists() or len(self.metrics.read_text().splitlines()) < number:
                time.sleep(0.05)
            time.sleep(0.7)  # users take longer than that, so episodes are under way
            deed()
            self.done += 1


def actor(part: str, number: int) -> Any:
    """A process of the run that is under way."""
    return JOINED[-1]._actors[part][number]


JOINED: list[Any] = []
"""The clusters that runs of these tests have joined, the newest last."""


@pytest.fixture(autouse=True)
def note_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    original = clustered.join

    def join(*args: Any, **options: Any) -> Any:
        JOINED.append(original(*args, **options))
        return JOINED[-1]

    monkeypatch.setattr(clustered, "join", join)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster of several nodes on this machine, made by ray's own kit. The head has the only GPU, which is none."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 1, "include_dashboard": False})
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def test_a_worker_a_sampler_and_a_node_die_in_the_middle_of_steps(train: Train, tmp_path: Path, cluster: Any) -> None:
    nodes = [cluster.add_node(num_cpus=2) for _ in range(2)]
    lost: list[str] = []

    def kill_a_node() -> None:
        placed = ray.util.placement_group_table(JOINED[-1].group)["bundles_to_node_id"]
        victim = next(n for n in nodes if n.node_id == placed[3])  # with the first rollout worker
        parts = zip(["learner", "sampler", "sampler", "worker", "worker"], placed.values(), strict=True)
        lost.extend(part for part, node in parts if node == victim.node_id)
        cluster.remove_node(victim, allow_graceful=False)

    saboteur = Saboteur(
        tmp_path / "there",
        lambda: ray.kill(actor("rollout worker", 1), no_restart=False),
        lambda: ray.kill(actor("sampler", 0), no_restart=False),
        kill_a_node,
    )
    saboteur.start()
    parts = ["rollout_workers=2", "samplers=2", "learner_gpus=1", "learner_cpus=1", "spread=true"]
    where = [f"cluster.address={cluster.address}", *(f"cluster.{p}" for p in parts)]
    slower = "user.delay=[1.5, 2.0]"  # Ray takes seconds to see that a node is gone
    folder = train("there", "rl.steps=5", slower, *where)
    assert saboteur.done == 3 and "worker" in lost
    there, here = FinishedRun(folder), FinishedRun(train("here", "rl.steps=5"))
    check_same(there, here, 5)
    begun_again = [sum(e.tags.get("workers_lost", 0) for e in step) for step in there.episodes]
    assert begun_again[1] > 0 and sum(begun_again[3:]) > 0, "workers died with episodes under way"


def test_a_run_whose_learner_dies_goes_on_from_its_last_checkpoint_or_says_how(train: Train, tmp_path: Path) -> None:
    local = ["cluster.address=local", "rl.steps=3"]
    again = Saboteur(tmp_path / "again", lambda: ray.kill(actor("learner", 0)))
    again.start()
    train("again", *SLOW_USERS, *local, "rl.checkpoint_every=1")
    assert again.done == 1 and not ray.is_initialized()
    check_same(FinishedRun(tmp_path / "again"), FinishedRun(train("here", "rl.steps=3")), 3)

    local.append("learner.restarts=0")
    saboteur = Saboteur(tmp_path / "run", lambda: ray.kill(actor("learner", 0)))
    saboteur.start()
    with pytest.raises(MuarlError, match=r"learner 0 died.*muarl train --resume RUN"):
        train("run", *SLOW_USERS, *local)
    assert saboteur.done == 1 and not ray.is_initialized()


def test_an_asynchronous_run_goes_on_while_a_sampler_dies(train: Train, tmp_path: Path) -> None:
    saboteur = Saboteur(tmp_path / "run", lambda: ray.kill(actor("sampler", 1), no_restart=False))
    saboteur.start()
    parts = ["address=local", "samplers=2", "rollout_workers=2", *(f"{p}_cpus=0.25" for p in ("sampler", "worker"))]
    ahead = ["rl.asynchrony=bounded", "rl.staleness=2", "rl.steps=4", *(f"cluster.{p}" for p in parts)]
    found = FinishedRun(train("run", *SLOW_USERS, *ahead))
    assert saboteur.done == 1 and found.state["updates"] == 4
    assert [r["episodes"] for r in found.rows] == [8.0] * 4 and [r["excluded"] for r in found.rows] == [0.0] * 4
    assert max(r["staleness_max"] for r in found.rows) <= 2
    names = [e.id for step in found.episodes for e in step]
    assert len(set(names)) == len(names) == 32, "no group counts twice"


def test_learners_that_share_the_weights(train: Train) -> None:
    shared = ["learner.kind=fsdp", "learner.processes=2", "cluster.learner_cpus=0.25"]
    there = FinishedRun(train("there", "cluster.address=local", *shared))
    check_same(there, FinishedRun(train("here")), 2)


def test_a_cold_start_of_a_cluster_is_that_of_one_process(tmp_path: Path) -> None:
    from muarl.recipes import sft

    small = ["threads=1", "model.device=cpu", "sft.steps=3", "sft.demonstrations=24", "sft.batch=4"]
    small += [f"runs_dir={tmp_path}"]
    there = sft.run(load_config("quickstart", [*small, "name=there", "cluster.address=local"]))
    assert not ray.is_initialized(), "the run has left its cluster"
    here = sft.run(load_config("quickstart", [*small, "name=here"]))
    mine, theirs = (load_policy(f / "checkpoints" / "step-000003").model.state_dict() for f in (there, here))
    assert all((mine[n] - theirs[n]).abs().max() < 1e-4 for n in theirs)
    two = ["learner.kind=fsdp", "learner.processes=2", "cluster.address=local", "cluster.learner_cpus=0.5"]
    again = sft.run(load_config("quickstart", [*small, f"resume={there}", "name=there", "sft.steps=4", *two]))
    assert (again / "checkpoints" / "step-000004").is_dir()


def test_too_small_a_cluster_is_told_before_the_run_begins(train: Train, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        train("run", "cluster.address=local", "cluster.rollout_workers=900", "cluster.samplers=2")
    text = str(caught.value)
    assert "900 x rollout worker of 0.5 CPUs" in text and "What would fit: cluster." in text
    assert not any(tmp_path.iterdir()) and not ray.is_initialized()
    with pytest.raises(ConfigError, match="Not even one learner has a place"):
        train("run", "cluster.address=local", "cluster.learner_gpus=64")


def test_a_machine_with_another_muarl_is_named(tmp_path: Path, cluster: Any, train: Train) -> None:
    package = tmp_path / "other" / "muarl"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.0.1"\n')
    paths = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])
    cluster.add_node(num_cpus=4, env_vars={"PYTHONPATH": paths})
    runs = tmp_path / "runs"
    with pytest.raises(ConfigError, match=r"the node .* has muarl 0\.0\.1, and this machine muarl"):
        train("run", f"cluster.address={cluster.address}", f"runs_dir={runs}")
    assert not runs.exists() and not ray.is_initialized()


def test_a_cluster_that_is_busy_is_told_after_a_while(cluster: Any, train: Train, tmp_path: Path) -> None:
    cluster.add_node(num_cpus=3)
    ray.init(address=cluster.address, log_to_driver=False)

    @ray.remote(num_cpus=3)
    class Busy:
        def there(self) -> None: ...

    held = Busy.remote()
    ray.get(held.there.remote(), timeout=120)
    with pytest.raises(MuarlError, match=r"room for the run, but not now: after 10 s only"):
        train("run", f"cluster.address={cluster.address}", "cluster.start_timeout=10", "cluster.rollout_workers=3")
    assert not any(tmp_path.iterdir()) and ray.is_initialized(), "what was joined before is left to its owner"


def test_the_settings_of_these_tests_are_a_run() -> None:
    assert load_config("quickstart", SMALL).rl.steps == 2
