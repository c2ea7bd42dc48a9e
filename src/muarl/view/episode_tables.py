"""A run's episodes for other tools: chat messages as trainers read them, and one flat row an episode for tables.

Files hold episodes without what the agent was told, so that system prompt and tools are made again from the task's name
(generated domains) or from the installed benchmark. Where that is not possible the messages stand without them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from muarl.chat import to_openai, visible_to_agent
from muarl.episode import Episode
from muarl.errors import ConfigError, DataError, MuarlError
from muarl.files import whole_file
from muarl.observe.metrics import agent_tokens, agent_turns, is_success
from muarl.observe.rundir import RunDirectory
from muarl.untrusted import read_yaml
from muarl.view.worlds import CannotReplay, world_of

Named = tuple[str, Episode]
"""The name of an episodes file (``eval-after``, ``train-0010``) and one of its episodes."""

COLUMNS = (
    "file", "id", "task_id", "domain", "group", "seed", "agent", "user", "stop", "reward", "success", "breakdown",
    "audit", "turns", "agent_tokens", "user_tokens", "cost", "seconds", "error", "tags", "messages",
)  # fmt: skip
"""Of a table. ``breakdown``, ``audit``, ``tags`` and ``messages`` are JSON texts; ``cost`` is in US dollars, and
``seconds`` those of all turns; ``reward`` and ``success`` are empty where an episode was not scored."""


def episodes_of(run: RunDirectory) -> Iterator[Named]:
    """All episodes of a run, file by file in the order of their names. MuarlError names a malformed one."""
    for path in sorted(run.episodes.glob("*.jsonl")):
        for episode in run.read_episodes(path.stem):
            yield path.stem, episode


def table_row(file: str, episode: Episode) -> dict[str, Any]:
    """One episode as a row of ``COLUMNS``."""
    verdict = episode.verdict
    used = episode.agent_usage + episode.user_usage
    return {
        "file": file,
        "id": episode.id,
        "task_id": episode.task_id,
        "domain": episode.domain,
        "group": episode.group,
        "seed": episode.seed,
        "agent": episode.agent,
        "user": episode.user,
        "stop": episode.stop.value,
        "reward": None if verdict is None else float(verdict.reward),
        "success": None if verdict is None else is_success(verdict.reward),
        "breakdown": _json({} if verdict is None else dict(verdict.breakdown)),
        "audit": _json({} if verdict is None else dict(verdict.audit)),
        "turns": agent_turns(episode),
        "agent_tokens": agent_tokens(episode),
        "user_tokens": episode.user_usage.completion_tokens,
        "cost": used.cost,
        "seconds": sum(turn.seconds for turn in episode.turns),
        "error": episode.error,
        "tags": _json(episode.tags),
        "messages": _json([to_openai(m) for m in visible_to_agent(episode.messages)]),
    }


def messages_row(file: str, episode: Episode, config: Mapping[str, Any]) -> dict[str, Any]:
    """One episode in the OpenAI chat form: what the agent was told, saw and said, its tools, and the reward.

    ``config``: the run's configuration. Without a system prompt, and with ``tools`` null, where neither the episode nor
    its task says what the agent was told.
    """
    system, tools = episode.system, episode.tools
    if system is None or tools is None:
        try:
            domain, task = world_of(episode, config, measured=file.startswith("eval"))
            system, tools = domain.policy_for(task), domain.specs_for(task)
        except CannotReplay:
            system = tools = None
    told = [] if system is None else [{"role": "system", "content": system}]
    return {
        "id": episode.id,
        "task_id": episode.task_id,
        "file": file,
        "reward": None if episode.verdict is None else episode.verdict.reward,
        "messages": [*told, *map(to_openai, visible_to_agent(episode.messages))],
        "tools": None if tools is None else [tool.to_openai() for tool in tools],
    }


def export_episodes(run: RunDirectory, form: str, out: Path) -> int:
    """Write all episodes of a run to ``out``, whole or not at all; returns how many.

    ``form``: ``messages`` (JSON lines), ``csv`` or ``parquet``. MuarlError where the run has no episodes; ConfigError
    for an unknown form, or where parquet is wanted and pyarrow not installed.
    """
    write = WRITERS.get(form)
    if write is None:
        raise ConfigError(f"--as {form}: episodes are written as {', '.join(WRITERS)}")
    found = list(episodes_of(run))
    if not found:
        raise MuarlError(f"{run.path}: the run has no episodes to export")
    write(found, _config(run), out)
    return len(found)


def _write_messages(found: Iterable[Named], config: Mapping[str, Any], out: Path) -> None:
    with whole_file(out) as file:
        for name, episode in found:
            file.write(_json(messages_row(name, episode, config)) + "\n")


def _write_csv(found: Iterable[Named], config: Mapping[str, Any], out: Path) -> None:
    with whole_file(out) as file:
        line = io.StringIO()
        writer = csv.DictWriter(line, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name, episode in found:
            writer.writerow({k: _inert(v) for k, v in table_row(name, episode).items()})
            file.write(line.getvalue())
            line.seek(0)
            line.truncate()


def _write_parquet(found: Iterable[Named], config: Mapping[str, Any], out: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ConfigError("--as parquet needs pyarrow: run `pip install pyarrow`, or export as csv") from None
    text, number, whole = pyarrow.string(), pyarrow.float64(), pyarrow.int64()
    kinds = {"seed": whole, "turns": whole, "agent_tokens": whole, "user_tokens": whole, "reward": number}
    kinds |= {"cost": number, "seconds": number, "success": pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds.get(name, text)) for name in COLUMNS])
    table = pyarrow.Table.from_pylist([table_row(name, episode) for name, episode in found], schema=schema)
    with whole_file(out, binary=True) as file:
        pyarrow.parquet.write_table(table, file)


Writer = Callable[[Iterable[Named], Mapping[str, Any], Path], None]
WRITERS: dict[str, Writer] = {"messages": _write_messages, "csv": _write_csv, "parquet": _write_parquet}


def _inert(value: Any) -> Any:
    """Text that no spreadsheet takes for a formula: what models wrote may begin with one."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _config(run: RunDirectory) -> dict[str, Any]:
    """The run's configuration as it stands in its file; empty where there is none that can be read."""
    try:
        found = read_yaml(run.path / "config.yaml")
    except DataError:
        return {}
    return found if isinstance(found, dict) else {}
