"""Exported folders (`muarl env export`) in the programs that they are for: OpenEnv's validator, server and client;
verifiers' loader; Hugging Face's datasets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from muarl_tools.publish.publishing import PublishRequest, publish
from support.other_side import DATASETS, ask
from support.publishing import own_desk, small_wheel

ROWS = """
import json, sys
from datasets import load_dataset
found = load_dataset(sys.argv[1])
print(json.dumps({split: [row["id"] for row in rows] for split, rows in found.items()}))
"""


def published(form: str, folder: Path, named: str = "bank-generated") -> Path:
    publish(PublishRequest(named, form, folder / form, tasks=4, wheel=small_wheel(folder)))
    return folder / form


def smoke(folder: Path) -> str:
    """What the folder's own smoke test prints, in a process that has muarl but did not load the environment."""
    source = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "smoke.py"], cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def own(folder: Path) -> str:
    """A person's own environment, approved as the command line does it."""
    from muarl.environments.registry import approve

    named = own_desk(folder / "desk")
    approve(named)
    return named


def test_openenv_validates_and_plays_an_exported_folder(tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="OpenEnv is not installed")
    from openenv.cli._cli_utils import validate_env_structure
    from openenv.validation import CheckStatus, run_validation

    folder = published("openenv", tmp_path)
    assert validate_env_structure(folder) in ([], ["Recommended directory missing: outputs/"])
    report = run_validation(folder, skip_build=True)
    status = {result.check_id: result.status for result in report.results}
    assert status["static.manifest"] is CheckStatus.PASS
    assert CheckStatus.FAIL not in status.values() and CheckStatus.ERROR not in status.values()
    assert "reward 1.0, as recorded" in smoke(folder)


def test_openenv_plays_an_own_environment(tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="OpenEnv is not installed")
    assert "own-desk:test:0: 2 messages, reward 0.0, as recorded" in smoke(
        published("openenv", tmp_path, own(tmp_path))
    )


def test_verifiers_loads_and_plays_an_exported_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("verifiers.v1", reason="verifiers is not installed: pip install 'muarl[verifiers]'")
    from verifiers.v1.utils.loaders import default_harness_id, taskset_class, taskset_config_type

    folder = published("verifiers", tmp_path)
    monkeypatch.syspath_prepend(str(folder))
    name = "muarl-bank-generated"
    assert default_harness_id(name) == name
    config = taskset_config_type(name)(id=name, split="test", count=2)
    assert config.environment == "bank-generated"
    assert [task.data.address for task in taskset_class(name)(config).load()] == [
        "bank-generated:test:0", "bank-generated:test:1",
    ]  # fmt: skip
    assert "reward 1.0, as recorded" in smoke(folder)


def test_verifiers_plays_an_own_environment(tmp_path: Path) -> None:
    pytest.importorskip("verifiers.v1", reason="verifiers is not installed: pip install 'muarl[verifiers]'")
    assert "own-desk:test:0: 2 messages, reward 0.0" in smoke(published("verifiers", tmp_path, own(tmp_path)))


def test_a_data_set_plays_by_its_addresses(tmp_path: Path) -> None:
    assert "reward 1.0, as recorded" in smoke(published("hf-dataset", tmp_path))


@pytest.mark.slow
def test_datasets_loads_an_exported_data_set(tmp_path: Path) -> None:
    folder = published("hf-dataset", tmp_path)
    script = tmp_path / "rows.py"
    script.write_text(ROWS)
    rows = json.loads(ask(DATASETS, script, folder, env={"HF_HOME": str(tmp_path / "cache")}).splitlines()[-1])
    assert {split: len(ids) for split, ids in rows.items()} == {"train": 4, "validation": 4, "test": 4}
