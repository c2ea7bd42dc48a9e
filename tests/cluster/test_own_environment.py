"""An environment in a person's own file is played by the workers of a cluster, which import it because its name was
approved in the driver."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.environments import registry

from .conftest import FinishedRun

ray = pytest.importorskip("ray", reason="pip install ray")
pytestmark = pytest.mark.slow
Train = Callable[..., Path]

FILE = '''
"""A shop of one's own, which leaves a mark in every process that imports it."""

import os
from dataclasses import replace
from pathlib import Path

from muarl_worlds.environments.retail import RETAIL

Path(__file__).with_name(f"imported-by-{os.getpid()}").touch()
SHOP = replace(RETAIL, name="corner-shop")
'''

ON_CLUSTER = (
    "cluster.address=local",
    "cluster.rollout_workers=2",
    *(f"cluster.{part}_cpus=0.25" for part in ("worker", "sampler", "learner")),
)


def test_workers_import_what_the_person_has_named(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_approved", set())
    (tmp_path / "shop.py").write_text(FILE, encoding="utf-8")
    reference = f"{tmp_path / 'shop.py'}:SHOP"
    with pytest.raises(ConfigError, match="code that would be imported"):
        train("unnamed", f"domain.name={reference}", "rl.steps=1", *ON_CLUSTER)
    assert not list(tmp_path.glob("imported-by-*")), "nobody has named it"
    registry.approve(reference)
    found = FinishedRun(train("named", f"domain.name={reference}", "rl.steps=1", *ON_CLUSTER))
    assert [row["episodes"] for row in found.rows] == [8.0]
    assert [row["excluded"] for row in found.rows] == [0.0]
    others = {int(path.name.rpartition("-")[2]) for path in tmp_path.glob("imported-by-*")} - {os.getpid()}
    assert len(others) == 2, "each worker, in a process of its own"
