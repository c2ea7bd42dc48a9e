"""``model.dtype=auto`` becomes what a machine is fast at, and trained weights stay fine enough for small updates."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from muarl.backends import number_formats
from muarl.backends.number_formats import Format, settled
from muarl.cli.main import app
from muarl.config.load import load_config


def machine(bfloat16: float) -> object:
    """A machine that is so many times as fast in bfloat16 as in float32."""
    rates: dict[Format, float] = {"float32": 1.0, "bfloat16": bfloat16}
    return lambda _device: ("cpu", rates)


@pytest.mark.parametrize(
    ("speed", "training", "expected"),
    [
        (3.0, True, ("float32", "bfloat16", "bfloat16")),
        (3.0, False, ("bfloat16", "bfloat16", None)),
        (0.5, True, ("float32", "auto", None)),
        (1.1, True, ("float32", "auto", None)),
        (0.5, False, ("float32", "auto", None)),
    ],
)
def test_auto_is_what_the_machine_is_fast_at(
    speed: float, training: bool, expected: tuple[str, str, str | None]
) -> None:
    config = load_config("quickstart", ["model.dtype=auto"])
    found = settled(config, training=training, rates=machine(speed))  # type: ignore[arg-type]
    assert (found.model.dtype, found.engine.dtype, found.learner.precision) == expected
    assert type(config).model_validate(found.model_dump()) == found


def test_what_is_set_stays_and_nothing_is_measured_without_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["model.dtype=auto", "engine.dtype=float32", "learner.precision=float32"]
    found = settled(load_config("quickstart", words), training=True, rates=machine(3.0))  # type: ignore[arg-type]
    assert (found.engine.dtype, found.learner.precision) == ("float32", "float32")
    monkeypatch.setattr(number_formats, "_measured", None)
    config = load_config("quickstart", ["model.dtype=bfloat16"])
    assert settled(config, training=True) is config


def test_a_run_s_configuration_says_what_auto_became(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that a resumed run computes as it began, on whatever machine."""
    monkeypatch.setattr(number_formats, "_measured", machine(3.0))
    words = ["train", "--config", "quickstart", "--dry-run", "model.dtype=auto", f"runs_dir={tmp_path}"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    stated = yaml.safe_load(result.stdout)
    assert stated["model"]["dtype"] == "float32"
    assert stated["learner"]["precision"] == stated["engine"]["dtype"] == "bfloat16"
