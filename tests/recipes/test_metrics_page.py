"""docs/files.md names every metric that a run writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from muarl.observe.rundir import RunDirectory
from muarl.recipes import quickstart
from support import coin
from support.two_domains import listed


def test_every_metric_of_a_run_stands_on_the_page(configure: Callable[..., Any], repository: Path) -> None:
    coin.allow()
    both = listed(("retail-generated", coin.REFERENCE), 1, 1)  # the one has more figures, the other moves the weights
    page = (repository / "docs" / "files.md").read_text(encoding="utf-8")
    rows = page.partition("\n## metrics.jsonl\n")[2].partition("\n## ")[0].splitlines()
    named = [code for row in rows if row.startswith("| `") for code in re.findall(r"`([^`]+)`", row.split("|")[1])]
    patterns = [re.sub(r"\b(WHO|REASON|TOOL|NAME)\b", "*", name) for name in named]
    options = ("rl.steps=2", "rl.eval_every=1", "rl.correction=token", "rl.kl_coef=0.001")
    run = RunDirectory.at(quickstart.run(configure(both, *options)))
    written = {name for row in run.read_metrics() for name in row} - {"phase", "step", "seconds"}
    assert written >= {"nll", "success", "update/kl", "update/correction_mean"}
    for name in sorted(written):
        whole = re.sub(r"^(update|domain/[^/]+)/", "", name)  # these stand without it
        assert any(fnmatchcase(whole, p) for p in patterns if p != "update/*"), name
