"""Episodes as rows of Hugging Face datasets: ``messages`` and ``tools``, and what the sampler saw and drew, id for id.

``input_ids`` and ``assistant_masks`` are named as transformers and TRL name them, so that a trainer that is given the
rows takes the ids as they are. Tools and the reward's parts are JSON texts: as objects of their own schemas they would
get each other's keys in an Arrow table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import DataError
from muarl.basics.extras import require
from muarl.basics.json_values import as_figure
from muarl.basics.untrusted import parse_json
from muarl.records.rows import PlacedRow
from muarl.types.chat import Message, ToolSpec, to_openai, visible_to_agent
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Verdict

if TYPE_CHECKING:
    import pyarrow

COLUMNS = (
    "id", "task_id", "domain", "file", "group", "seed", "agent", "user", "stop", "reward", "breakdown", "audit",
    "messages", "tools", "input_ids", "assistant_masks", "logprobs", "versions", "restarts", "advantages", "tags",
)  # fmt: skip
"""``reward`` is null where an episode was not scored, the lists of tokens where the agent was no sampler of ours.
``assistant_masks``: 1 where the policy drew the token; ``logprobs``: the sampler's, 0 elsewhere; ``versions``: of the
policy, -1 elsewhere; ``restarts``: where the context was written anew; ``advantages``: what each drawn token was
learned from with, 0 elsewhere, null where the episode was not learned from."""
TOKENS = ("input_ids", "assistant_masks", "logprobs", "reward")
"""What a row must have to be learned from."""


def row_of(
    file: str, episode: Episode, system: str | None = None, tools: Sequence[ToolSpec] | None = None
) -> dict[str, Any]:
    """An episode as a row. ``file``: of episodes, such as ``train-0010``; ``system`` and ``tools``: what the agent was
    told and offered, None if unknown."""
    system_messages = [] if system is None else [Message("system", system)]
    verdict, tokens = episode.verdict, episode.tokens
    return {
        "id": episode.id,
        "task_id": episode.task_id,
        "domain": episode.domain,
        "file": file,
        "group": episode.group,
        "seed": episode.seed,
        "agent": episode.agent,
        "user": episode.user,
        "stop": episode.stop.value,
        "reward": None if verdict is None else float(verdict.reward),
        "breakdown": None if verdict is None else _json(dict(verdict.breakdown)),
        "audit": None if verdict is None else _json(dict(verdict.audit)),
        "messages": [_message(m) for m in (*system_messages, *visible_to_agent(episode.messages))],
        "tools": None if tools is None else _json([tool.to_openai() for tool in tools]),
        "input_ids": None if tokens is None else tokens.ids,
        "assistant_masks": None if tokens is None else [int(m) for m in tokens.loss_mask],
        "logprobs": None if tokens is None else tokens.logprobs,
        "versions": None if tokens is None else tokens.versions,
        "restarts": None if tokens is None else tokens.restarts,
        "advantages": episode.token_advantages(),
        "tags": _json(episode.tags),
    }


def episode_of(value: Mapping[str, Any], messages: Sequence[Message], place: str) -> Episode:
    """The episode of a row, with the tokens that it was made of; ``messages``: the row's. DataError if the row has no
    such tokens or is malformed. Rows of other programs need ``input_ids``, ``assistant_masks``, ``logprobs`` and
    ``reward``; those of a ``group`` are compared with each other, without one those of a ``task_id``."""
    if missing := [name for name in TOKENS if value.get(name) is None]:
        raise DataError(
            f"{place}: this row lacks {', '.join(missing)}: to be learned from it needs {', '.join(TOKENS)}"
        )
    ids, mask = value["input_ids"], value["assistant_masks"]
    versions = value.get("versions") or [0 if own else -1 for own in mask]
    said = [m for m in messages if m.role != "system"]
    row = {"ids": ids, "loss_mask": mask, "logprobs": value["logprobs"], "versions": versions}
    row["restarts"] = value.get("restarts") or []
    try:
        if (reward := as_figure(value["reward"])) is None:
            raise ValueError("reward must be a finite number")
        tokens = TokenTrace.from_json(row)
        spans = _spans(tokens)
        own = iter(spans if len(spans) == sum(m.role == "assistant" for m in said) else ())
        turns = [Turn(m, span=next(own, None) if m.role == "assistant" else None) for m in said]
        tags, breakdown, audit = (_object(value.get(name), name) for name in ("tags", "breakdown", "audit"))
        return Episode(
            id=str(value.get("id", place)),
            task_id=str(value.get("task_id", value.get("group", place))),
            domain=str(value.get("domain", "")),
            turns=[replace(t, version=tokens.versions[t.span[0]]) if t.span else t for t in turns],
            stop=StopReason(value.get("stop", StopReason.USER_STOP.value)),
            group=None if value.get("group") is None else str(value["group"]),
            seed=value.get("seed", 0),
            agent=value.get("agent", ""),
            user=value.get("user", ""),
            tokens=tokens,
            verdict=Verdict(reward, breakdown, audit),
            tags=tags,
        )
    except (ValueError, TypeError, AttributeError) as problem:
        raise DataError(f"{place}: this row cannot be learned from: {problem}") from None


def _object(text: Any, name: str) -> dict[str, Any]:
    """The object of a column that is a JSON text, empty where there is none. ValueError for anything else."""
    value = {} if not text else parse_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be the JSON text of an object")
    return value


def _spans(tokens: TokenTrace) -> list[tuple[int, int]]:
    """The stretches of sampled tokens, which no segment's end crosses."""
    cuts = {*tokens.restarts}
    out: list[tuple[int, int]] = []
    for at, sampled in enumerate(tokens.loss_mask):
        if sampled and at and tokens.loss_mask[at - 1] and at not in cuts:
            out[-1] = out[-1][0], at + 1
        elif sampled:
            out.append((at, at + 1))
    return out


def _message(message: Message) -> dict[str, Any]:
    out = to_openai(message)
    return out if message.reasoning is None else out | {"reasoning_content": message.reasoning}


def schema() -> pyarrow.Schema:
    """The rows' types. ImportError without pyarrow."""
    import pyarrow

    text, whole = pyarrow.string(), pyarrow.int64()
    function = pyarrow.struct([("name", text), ("arguments", text)])
    call = pyarrow.struct([("id", text), ("type", text), ("function", function)])
    names = ("role", "content", "reasoning_content", "tool_call_id", "name")
    message = pyarrow.struct([*((name, text) for name in names), ("tool_calls", pyarrow.list_(call))])
    kinds: dict[str, pyarrow.DataType] = {
        "seed": whole,
        "reward": pyarrow.float64(),
        "messages": pyarrow.list_(message),
        "input_ids": pyarrow.list_(whole),
        "assistant_masks": pyarrow.list_(pyarrow.int8()),
        "logprobs": pyarrow.list_(pyarrow.float64()),
        "versions": pyarrow.list_(whole),
        "restarts": pyarrow.list_(whole),
        "advantages": pyarrow.list_(pyarrow.float64()),
    }
    return pyarrow.schema([(name, kinds.get(name, text)) for name in COLUMNS])


def write_parquet(rows: Iterable[Mapping[str, Any]], file: Any, *, batch: int = 256) -> None:
    """Write rows to an open binary file, ``batch`` of them at a time. ImportError without pyarrow."""
    import pyarrow
    import pyarrow.parquet

    kinds = schema()
    with pyarrow.parquet.ParquetWriter(file, kinds) as writer:
        waiting: list[Mapping[str, Any]] = []
        for row in rows:
            waiting.append(row)
            if len(waiting) == batch:
                writer.write_table(pyarrow.Table.from_pylist(waiting, schema=kinds))
                waiting = []
        writer.write_table(pyarrow.Table.from_pylist(waiting, schema=kinds))


def parquet_rows(path: Path) -> Iterator[PlacedRow]:
    """The rows of a Parquet file, without the fields that are null. ConfigError without pyarrow."""
    require("parquet", f"reading {path.name}")
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield PlacedRow(_without_nulls(row), f"{path}, row {number}", number, path)
    except pyarrow.ArrowException as problem:
        raise DataError(f"{path}: not a Parquet file that can be read: {problem}") from None


def _without_nulls(value: Any) -> Any:
    """What Arrow filled up so that all rows have all fields."""
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None or k == "content"}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
