"""A run's episodes for other tools: chat messages as trainers read them, and one flat row an episode for tables;
trajectories, rows of datasets and TAU2's results by way of ``muarl.records``.

Files hold episodes without what the agent was told, so that system prompt and tools are made again from the task's name
(generated domains) or from the installed benchmark. Where that is not possible the messages stand without them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.accounts.metrics import agent_tokens, agent_turns, is_success
from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.basics.extras import require
from muarl.basics.files import new_folder, plain, whole_file
from muarl.basics.untrusted import read_yaml
from muarl.environments.recorded_episodes import world_of
from muarl.observe.rundir import RunDirectory
from muarl.records import atif, chat, parquet
from muarl.rewards.state_changes import CannotReplay
from muarl.types.chat import ToolSpec, to_openai, visible_to_agent
from muarl.types.episode import Episode

Named = tuple[str, Episode]
"""The name of an episodes file (``eval-after``, ``train-0010``) and one of its episodes."""

_HALVES = re.compile("[\ud800-\udfff]")
COLUMNS = (
    "file", "id", "task_id", "domain", "group", "seed", "agent", "user", "stop", "reward", "success", "breakdown",
    "audit", "turns", "agent_tokens", "user_tokens", "cost", "seconds", "error", "tags", "messages",
)  # fmt: skip
"""Of a table. ``breakdown``, ``audit``, ``tags`` and ``messages`` are JSON texts; ``cost`` is in US dollars, and
``seconds`` those of all turns; ``reward`` and ``success`` are empty where an episode was not scored."""


@dataclass(frozen=True)
class ExportedEpisodes:
    """What is written: a run, its configuration, and the episodes in the order of their files."""

    run: RunDirectory
    config: Mapping[str, Any]
    found: Sequence[Named]


def episodes_of(run: RunDirectory, only: Sequence[str] = ()) -> Iterator[Named]:
    """The episodes of a run, file by file in the order of their names. ``only``: those of the files of these names.

    ConfigError for a name that the run does not have; MuarlError names a malformed episode.
    """
    names = [path.stem for path in sorted(run.episodes.glob("*.jsonl"))]
    if missing := [name for name in only if name not in names]:
        raise ConfigError(f"--episodes: {run.path} has no {missing[0]!r}; it has {', '.join(names) or 'none'}")
    for name in names:
        if not only or name in only:
            for episode in run.read_episodes(name):
                yield name, episode


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


def told_to(file: str, episode: Episode, config: Mapping[str, Any]) -> tuple[str | None, Sequence[ToolSpec] | None]:
    """What the agent of an episode was told, and its tools; None both where neither the episode nor its task says it.
    ``config``: the run's configuration."""
    if episode.system is not None and episode.tools is not None:
        return episode.system, episode.tools
    try:
        domain, task = world_of(episode, config, measured=file.startswith("eval"))
    except CannotReplay:
        return None, None
    return domain.policy_for(task), domain.specs_for(task)


def messages_row(file: str, episode: Episode, config: Mapping[str, Any]) -> dict[str, Any]:
    """One episode in the OpenAI chat form: what the agent was told, saw and said, its tools, and the reward.

    ``config``: the run's configuration. Without a system prompt, and with ``tools`` null, where neither the episode nor
    its task says what the agent was told.
    """
    return chat.row_of(file, episode, *told_to(file, episode, config))


def export_episodes(run: RunDirectory, form: str, out: Path, only: Sequence[str] = ()) -> int:
    """Write the episodes of a run to ``out``, whole or not at all; returns how many.

    ``form``: ``messages`` (JSON lines), ``csv``, ``parquet``, ``rows`` (Parquet, or JSON lines where ``out`` ends in
    .jsonl), ``atif`` (a folder with a file for each) or ``tau2``. ``only``: of the files of these names. MuarlError
    where there are no episodes; ConfigError for an unknown form or file, for what the run is not fit for, or where a
    form needs pyarrow and it is not installed.
    """
    write = WRITERS.get(form)
    if write is None:
        raise ConfigError(f"--as {form}: episodes are written as {', '.join(WRITERS)}")
    found = list(episodes_of(run, only))
    if not found:
        raise MuarlError(f"{run.path}: the run has no episodes to export")
    write(ExportedEpisodes(run, _config(run), found), out)
    return len(found)


def _write_messages(given: ExportedEpisodes, out: Path) -> None:
    with whole_file(out) as file:
        for name, episode in given.found:
            file.write(_json(messages_row(name, episode, given.config)) + "\n")


def _write_rows(given: ExportedEpisodes, out: Path) -> None:
    made = (parquet.row_of(name, e, *told_to(name, e, given.config)) for name, e in given.found)
    if out.suffix == ".jsonl":
        with whole_file(out) as file:
            file.writelines(_json(plain(row)) + "\n" for row in made)
        return
    require("parquet", "--as rows (--out FILE.jsonl needs nothing more)")
    with whole_file(out, binary=True) as file:
        parquet.write_parquet(made, file)


def _write_atif(given: ExportedEpisodes, out: Path) -> None:
    with new_folder(out) as folder:
        for number, (name, episode) in enumerate(given.found, 1):
            made = atif.trajectory_of(episode, *told_to(name, episode, given.config))
            text = _json(plain(made))
            (folder / f"{name}-{number:06d}.json").write_text(text + "\n", encoding="utf-8")


def _write_tau2(given: ExportedEpisodes, out: Path) -> None:
    from muarl_tools.export.tau2_results import write_tau2

    write_tau2(given.run, given.found, given.config, out)


def _write_csv(given: ExportedEpisodes, out: Path) -> None:
    with whole_file(out) as file:
        line = io.StringIO()
        writer = csv.DictWriter(line, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name, episode in given.found:
            writer.writerow({k: _inert(v) for k, v in table_row(name, episode).items()})
            file.write(line.getvalue())
            line.seek(0)
            line.truncate()


def _write_parquet(given: ExportedEpisodes, out: Path) -> None:
    require("parquet", "--as parquet (--as csv needs nothing more)")
    import pyarrow
    import pyarrow.parquet

    text, number, whole = pyarrow.string(), pyarrow.float64(), pyarrow.int64()
    kinds = {"seed": whole, "turns": whole, "agent_tokens": whole, "user_tokens": whole, "reward": number}
    kinds |= {"cost": number, "seconds": number, "success": pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds.get(name, text)) for name in COLUMNS])
    table = pyarrow.Table.from_pylist([table_row(name, episode) for name, episode in given.found], schema=schema)
    with whole_file(out, binary=True) as file:
        pyarrow.parquet.write_table(table, file)


WRITERS: Mapping[str, Callable[[ExportedEpisodes, Path], None]] = {
    "messages": _write_messages,
    "csv": _write_csv,
    "parquet": _write_parquet,
    "rows": _write_rows,
    "atif": _write_atif,
    "tau2": _write_tau2,
}


def _inert(value: Any) -> Any:
    """Text that no spreadsheet takes for a formula: what models wrote may begin with one."""
    if not isinstance(value, str):
        return value
    return _writable(f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value)


def _json(value: Any) -> str:
    return _writable(json.dumps(value, ensure_ascii=False))


def _writable(text: str) -> str:
    """The text with halves of characters, which no file can hold, as JSON writes them."""
    return _HALVES.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def _config(run: RunDirectory) -> dict[str, Any]:
    """The run's configuration as it stands in its file; empty where there is none that can be read."""
    try:
        found = read_yaml(run.path / "config.yaml")
    except DataError:
        return {}
    return found if isinstance(found, dict) else {}
