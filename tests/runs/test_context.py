"""What a run works with is opened and closed in one place."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from muarl.backends import cluster as clustered
from muarl.backends.engines import Backend
from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.parts import Compute
from muarl.observe.rundir import RunDirectory
from muarl.runs.context import open_context


def test_a_run_is_opened_with_what_its_configuration_says(tmp_path: Path) -> None:
    options = ["seed=3", "checkpoints.keep_last=2", "model.checkpoint=runs/first", "budget.max_tokens=9"]
    config = load_config("quickstart", [*options, f"runs_dir={tmp_path}"])
    with open_context(config, "train") as context:
        assert (context.seed, context.resumed, context.retention.last) == (3, False, 2)
        assert context.needed == (Path("runs/first"),)
        assert context.spending.budget().tokens == 9
        assert (context.backend.compute, context.backend.cluster) == (Compute.of(config), None)
        context.logger.log({"success": 0.5}, phase="rl", step=0)
    assert [row["success"] for row in context.folder.read_metrics()] == [0.5]
    with open_context(config.model_copy(update={"resume": context.folder.path}), "train") as again:
        assert again.resumed and again.folder.path == context.folder.path


def test_everything_is_closed_where_a_run_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    cluster = SimpleNamespace(resources=[], close=lambda: closed.append("cluster"))
    monkeypatch.setattr(clustered, "join", lambda *_, **__: cluster)

    async def aclose() -> None:
        closed.append("judge")

    part = SimpleNamespace(aclose=aclose)
    config = load_config("quickstart", ["cluster.address=local", f"runs_dir={tmp_path}"])

    def fail() -> None:
        with open_context(config, "train", on_cluster=True) as context:
            assert context.backend.cluster is cluster
            context.loop.closes(part)
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        fail()
    status = json.loads((tmp_path / "quickstart" / "status.json").read_text())
    assert closed == ["cluster", "judge"] and status["state"] == "failed"
    RunDirectory.at(tmp_path / "quickstart").hold()  # nobody else holds it


@pytest.mark.parametrize("part", ["sampler", "learner", "executor"])
def test_a_stage_that_joins_no_cluster_says_so(part: str) -> None:
    given: dict[str, tuple[Any, ...]] = {"sampler": (None,), "learner": (SimpleNamespace(path=Path("x")), None, "rl")}
    backend = Backend.of(load_config("quickstart", ["cluster.address=local"]))
    with pytest.raises(ConfigError, match="cluster.address: only `muarl train` and `muarl sft`"):
        getattr(backend, part)(*given.get(part, (None,)))
