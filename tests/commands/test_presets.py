"""``muarl presets``, and what a configuration file says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.cli.presets import presets
from muarl.config.load import all_presets, load_config


def test_every_preset_is_listed_with_its_command_and_what_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    presets()
    lines = capsys.readouterr().out.splitlines()
    for preset in all_presets():
        (line,) = (line for line in lines if line.split()[0] == preset.name)
        assert f"muarl {preset.command} " in line and line.rstrip().endswith(preset.text)


def test_what_a_file_says_of_itself_is_no_setting_and_not_taken_over(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("extends: cpu\nname: mine\nabout: {command: train, text: Ours.}\n")
    assert load_config(own).model_dump() == load_config("cpu", ["name=mine"]).model_dump()
    own.write_text("about: [a, list]\n")
    with pytest.raises(ConfigError, match=r"own\.yaml: about must be a mapping with the texts"):
        load_config(own)
