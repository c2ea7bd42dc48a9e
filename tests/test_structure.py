"""What is imported with what (benches/structure.py)."""

from __future__ import annotations

import subprocess
import sys

TRAINING = """
import sys
from muarl.config import load_config
from muarl.environments.configure import configure_environment
import muarl.recipes.rl
configure_environment(load_config("quickstart"))
print(*sorted(name for name in sys.modules if name.startswith("muarl.domains.")))
"""


def test_training_in_the_shop_imports_no_line_of_another_world() -> None:
    done = subprocess.run([sys.executable, "-c", TRAINING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    worlds = {name.split(".")[2] for name in done.stdout.split()}
    assert "retail" in worlds
    assert not worlds & {"bfcl", "acebench", "airline", "telecom", "banking", "companies", "scenarios", "mock", "tau1"}
