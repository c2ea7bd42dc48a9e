"""The forms of published folders: which files each has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from muarl.basics.version import __version__
from muarl.domains.tasks import Task
from muarl.environments.task_addresses import TaskAddress
from muarl_tools.publish.contents import CODE, Contents
from muarl_tools.publish.folder import Content

EPISODE = "episode.json"
"""The file with the conversation that a smoke test repeats."""


def openenv(it: Contents) -> dict[str, Content]:
    """A folder for OpenEnv: manifest, server, client, container."""
    requirements = [f"muarl=={__version__}", *_packages(it)]
    files = {
        "openenv.yaml": it.render("openenv/openenv.yaml"),
        "pyproject.toml": it.render("openenv/pyproject.toml", requirements=requirements),
        "README.md": it.render("openenv/README.md", **_card(it, f"server/{CODE}")),
        "__init__.py": it.render("openenv/__init__.py"),
        "client.py": it.render("openenv/client.py"),
        "server/__init__.py": it.render("openenv/server_init.py"),
        "server/app.py": it.render("openenv/app.py"),
        "server/Dockerfile": it.render("openenv/Dockerfile"),
        "smoke.py": it.render("openenv/smoke.py"),
    }
    return {**files, EPISODE: _episode(it), **it.shared_files(f"server/{CODE}")}


def verifiers(it: Contents) -> dict[str, Content]:
    """A package for verifiers and Prime's Environments Hub."""
    requirements = ["verifiers>=0.4,<0.5", f"muarl=={__version__}", *_packages(it)]
    files = {
        "pyproject.toml": it.render("verifiers/pyproject.toml", requirements=requirements),
        "README.md": it.render("verifiers/README.md", **_card(it, f"{it.package}/{CODE}")),
        f"{it.package}/__init__.py": it.render("verifiers/__init__.py"),
        "smoke.py": it.render("verifiers/smoke.py"),
    }
    return {**files, EPISODE: _episode(it), **it.shared_files(f"{it.package}/{CODE}")}


def hf_dataset(it: Contents) -> dict[str, Content]:
    """A data set of Hugging Face: the tasks, Parquet where pyarrow is installed, else JSON lines."""
    drawn = {s: it.environment.make_tasks(s, it.tasks, size=it.size, seed=it.seed) for s in it.environment.splits}
    splits = {re.sub(r"\W", "_", split): tasks for split, tasks in drawn.items() if tasks}  # as the hub wants names
    place = it.environment.place(it.size)
    rows = {
        split: [_row(task, place.system_prompt(task), [s.to_openai() for s in place.tools(task)]) for task in tasks]
        for split, tasks in splits.items()
    }
    ending, as_file = ("parquet", _parquet) if find_spec("pyarrow") else ("jsonl", _json_lines)
    files = {split: f"data/{split}.{ending}" for split in splits}
    first = {str(tasks[0].origin.address): tasks[0].id for tasks in splits.values()}
    counts = {split: len(tasks) for split, tasks in splits.items()}
    return {
        "README.md": it.render("hf_dataset/README.md", files=files, counts=counts, **_card(it, CODE)),
        **{files[split]: as_file(rows[split]) for split in splits},
        "smoke.py": it.render("hf_dataset/smoke.py", first=first),
        EPISODE: _episode(it),
        **it.shared_files(),
    }


FORMS: Mapping[str, Callable[[Contents], dict[str, Content]]] = {
    "openenv": openenv,
    "verifiers": verifiers,
    "hf-dataset": hf_dataset,
}
"""By what ``--as`` calls them."""


def _packages(it: Contents) -> list[str]:
    return [] if it.own is None else list(it.own.packages)


def _card(it: Contents, own_folder: str) -> dict[str, Any]:
    """What the card says besides. ``own_folder``: where the files of an environment of one's own are."""
    agents = [score.agent for score in it.measured.scores]
    tools = [str(tool["function"]["name"]) for tool in it.measured.prompt.tools]
    return {
        "own_folder": own_folder,
        "tool_names": tools,
        "splits": ", ".join(_split(it, split) for split in it.environment.splits),
        "of_first": " (of the first task: it differs from task to task)" if _varies(it) else "",
        "transfers": "always transfer" in agents,
        "expert": "scripted expert" in agents,
    }


def _split(it: Contents, split: str) -> str:
    if it.environment.endless:
        return f"{split} (as many tasks as are asked for)"
    return f"{split} ({len(it.environment.fixed_tasks(split))} tasks)"


def _varies(it: Contents) -> bool:
    """Whether the second task has another policy than the first."""
    place = it.environment.place(it.size)
    tasks = it.environment.make_tasks(it.measured.split, min(it.tasks, 10), size=it.size, seed=it.seed)
    return len({place.system_prompt(task) for task in tasks}) > 1


def _episode(it: Contents) -> str:
    """The recorded episode, with the parts of its task's address."""
    address = TaskAddress.parse(it.measured.episode.task)
    place = {"split": address.split, "index": address.index}
    return json.dumps({**asdict(it.measured.episode), **place}, indent=2, ensure_ascii=False) + "\n"


def _row(task: Task, policy: str, tools: list[Any]) -> dict[str, Any]:
    """A task as a row. What differs in its shape from task to task is JSON, so that all rows have the same columns."""
    actions = None if task.actions is None else [{"name": a.name, "arguments": dict(a.arguments)} for a in task.actions]
    return {
        "task": str(task.origin.address),
        "id": task.id,
        "policy": policy,
        "tools": _json(tools),
        "scenario": task.scenario,
        "actions": _json(actions),
        "communicate_info": list(task.communicate_info),
        "reward_basis": list(task.reward_basis),
        "tags": _json(dict(task.tags)),
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _json_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(_json(row) + "\n" for row in rows).encode()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    texts = pa.list_(pa.string())
    lists = ("communicate_info", "reward_basis")
    schema = pa.schema([(name, texts if name in lists else pa.string()) for name in rows[0]])
    out = BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows, schema), out)
    return out.getvalue()
