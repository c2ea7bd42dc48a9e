"""The main job on the shipped base checkpoint, shortened and with easy users: it really learns, and stays small."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_short_quickstart_makes_the_agent_better(tmp_path):
    """In a process of its own, whose memory is its own."""
    program = "from muarl.cli.main import main; main()"
    settings = ["rl.steps=15", "rl.eval_every=0", "eval.tasks=150", f"runs_dir={tmp_path}"]
    command = [sys.executable, "-c", program, "quickstart", "-c", "quickstart-easy", "--name", "short", *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "short"
    summary = json.loads((folder / "summary.json").read_text())
    before, after = summary["cold_start"], summary["rl"]
    assert 0.5 <= before["success"] <= 0.85
    assert after["success"] >= before["success"] + 0.06
    assert after["behaviour"]["writes_without_consent"] < before["behaviour"]["writes_without_consent"]
    assert summary["do_nothing"] < 0.15
    assert summary["always_transfer"] < 0.15
    assert summary["peak_memory_bytes"] < 4 * 2**30
    assert "conversations" in (folder / "report.html").read_text().lower()
