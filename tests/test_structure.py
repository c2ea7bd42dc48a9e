"""What is imported with what (benches/structure.py)."""

from __future__ import annotations

import subprocess
import sys

TRAINING = """
import sys
from muarl.config import load_config
from muarl.environments.configure import places_of
import muarl.recipes.rl
places_of(load_config("quickstart"))
print(*sorted(name for name in sys.modules if name.startswith("muarl_")))
"""


def test_training_in_the_shop_imports_no_line_of_another_world() -> None:
    done = subprocess.run([sys.executable, "-c", TRAINING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules = [name.split(".") for name in done.stdout.split()]
    assert {name[0] for name in modules} == {"muarl_worlds"}
    worlds = {".".join(name[1:3]) for name in modules if len(name) > 1}
    assert worlds <= {"environments", "environments.retail", "tau", "tau.retail", "tau.calculator"}, worlds
