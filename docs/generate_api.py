"""Writes docs/api.md from the docstrings of the names that `import muarl` gives. Run it after changing one:

python docs/generate_api.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import muarl

PAGE = Path(__file__).with_name("api.md")

HEAD = """# The library's names

<!-- Written by docs/generate_api.py from the docstrings of muarl's names. Do not edit. -->

This page lists the names that `import muarl` gives; they stay, while their modules may move.

Those marked ● need the extra `train` (`pip install 'muarl[train]'`). Those with `await` are coroutines, for `await` or
`asyncio.run`. `help(muarl.Task)` says more.

```python
import asyncio

import muarl

shop = muarl.load_environment("retail-generated")
agent = muarl.EndpointAgent(muarl.Endpoint(model="MODEL", base_url="http://localhost:8000/v1"))
report = asyncio.run(muarl.evaluate(shop, agent, tasks=20))
print(report.to_json())
```

[examples/rl_loop.py](../examples/rl_loop.py) is a whole training loop.
"""

SECTIONS = {
    "A place to practise": (
        "Domain", "tool", "KnowledgeDomain", "discoverable", "Database", "SqlDatabase", "Task", "Action", "World",
        "Environment", "load_environment", "load_task", "FaultRates",
    ),
    "Who takes part": (
        "Agent", "User", "Message", "ToolCall", "Endpoint", "EndpointAgent", "LLMUserFactory", "ExpertAgent",
    ),
    "Conversations and what they are worth": (
        "Rules", "Limits", "Episode", "run_episode", "play", "PlayResult", "Session", "play_tasks", "score",
        "audit_episode", "evaluate",
    ),
    "Learning": (
        "load_checkpoint", "Sampler", "TorchEngine", "SampledAgent", "group_samples", "TorchLearner", "LearnerConfig",
        "OptimizerConfig", "PolicyLossConfig",
    ),
    "Errors": ("MuarlError",),
}  # fmt: skip

NEED_TRAIN = ("load_checkpoint", "TorchEngine", "SampledAgent", "group_samples", "TorchLearner", "LearnerConfig",
              "OptimizerConfig")  # fmt: skip


def first_sentence(name: str) -> str:
    """What a name is: the first sentence of its docstring, as Markdown."""
    text = " ".join((inspect.getdoc(getattr(muarl, name)) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.:;]) (?=[A-Z`])", text)[0].rstrip(".:;")
    return f"{sentence}.".replace("``", "`").replace("|", "\\|")


def shown(name: str) -> str:
    """A name as the table has it: whether it is awaited, and whether it needs the extra ``train``."""
    awaited = "await " if inspect.iscoroutinefunction(getattr(muarl, name)) else ""
    return f"`{awaited}{name}`{' ●' if name in NEED_TRAIN else ''}"


def page() -> str:
    """The page's text."""
    parts = [HEAD]
    for title, names in SECTIONS.items():
        rows = [f"| {shown(name)} | {first_sentence(name)} |" for name in names]
        parts.append("\n".join([f"\n## {title}\n", "| name | is |", "|---|---|", *rows, ""]))
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
