"""Trajectories in the Agent Trajectory Interchange Format (ATIF 1.8, RFC 0001 of Harbor): an episode as one, and back.

A step holds one message; the results of its calls are its observation. What ATIF has no field for stands in ``extra``
under the key ``muarl``, so that a trajectory of ours gives back the very episode. Of a trajectory of others, the text
of the conversation, its calls and results, and its tools are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.version import __version__
from muarl.records.chat import ChatConversation
from muarl.records.conversation import Format, RecordedConversation
from muarl.records.episodes import EpisodeConversation
from muarl.records.rows import PlacedRow
from muarl.types.chat import ToolSpec
from muarl.types.episode import Episode, Turn

VERSION = "ATIF-v1.8"
READABLE = tuple(f"ATIF-v1.{minor}" for minor in range(9))
OWN = "muarl"
"""The key of what is ours in a field for extras."""

_ROLES = {"system": "system", "user": "user", "agent": "assistant"}


def trajectory_of(
    episode: Episode, system: str | None = None, tools: Sequence[ToolSpec] | None = None
) -> dict[str, Any]:
    """An episode as a trajectory. ``system`` and ``tools``: what the agent was told and offered, None if unknown."""
    steps: list[dict[str, Any]] = []
    if system is not None:
        steps.append({"source": "system", "message": system, "extra": {OWN: {"turn": False}}})
    for turn in episode.turns:
        if turn.message.role != "tool":
            steps.append(_step(turn, episode))
            continue
        if not steps:
            steps.append({"source": "system", "message": "", "extra": {OWN: {"turn": False}}})
        steps[-1].setdefault("observation", {"results": []})["results"].append(_result(turn, steps[-1]))
    if not steps:
        steps.append({"source": "system", "message": "", "extra": {OWN: {"turn": False}}})
    head = episode.to_json(context=True)
    del head["turns"]
    agent: dict[str, Any] = {"name": "muarl", "version": __version__}
    if episode.agent:
        agent["model_name"] = episode.agent
    if tools is not None:
        agent["tool_definitions"] = [tool.to_openai() for tool in tools]
    return {
        "schema_version": VERSION,
        "session_id": episode.id,
        "trajectory_id": episode.id,
        "agent": agent,
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": _metrics(episode, len(steps)),
        "extra": {OWN: head},
    }


def _metrics(episode: Episode, steps: int) -> dict[str, Any]:
    used = episode.agent_usage
    out: dict[str, Any] = {
        "total_prompt_tokens": used.prompt_tokens,
        "total_completion_tokens": used.completion_tokens,
        "total_cost_usd": used.cost + episode.user_usage.cost,
        "total_steps": steps,
    }
    return out if episode.verdict is None else out | {"extra": {"reward": episode.verdict.reward}}


def _step(turn: Turn, episode: Episode) -> dict[str, Any]:
    """A message of anybody but a tool."""
    message = turn.message
    covered = {"role"} if message.content is None else {"role", "content"}
    source = next(name for name, role in _ROLES.items() if role == message.role)
    step: dict[str, Any] = {"source": source, "message": message.content or ""}
    if source == "agent":
        covered |= {"reasoning", "tool_calls"}
        if message.reasoning is not None:
            step["reasoning_content"] = message.reasoning
        if message.tool_calls:
            step["tool_calls"] = [_call(call.to_json()) for call in message.tool_calls]
        if turn.span is not None and episode.tokens is not None:
            start, end = turn.span
            step["metrics"] = {
                "prompt_tokens": start,
                "completion_tokens": end - start,
                "completion_token_ids": episode.tokens.ids[start:end],
                "logprobs": episode.tokens.logprobs[start:end],
            }
    return step | {"extra": {OWN: _kept(turn, covered)}}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    out = {"tool_call_id": call.pop("id"), "function_name": call.pop("name"), "arguments": call.pop("arguments")}
    if call["requestor"] == "assistant":
        del call["requestor"]
    return out | {"extra": {OWN: call}} if call else out


def _result(turn: Turn, step: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool answered. Only the calls of an agent's step have ids there that a result may refer to."""
    message = turn.message
    covered = {"role"} if message.content is None else {"role", "content"}
    out: dict[str, Any] = {"content": message.content}
    if message.tool_call_id in {call["tool_call_id"] for call in step.get("tool_calls", ())}:
        out["source_call_id"] = message.tool_call_id
        covered.add("tool_call_id")
    return out | {"extra": {OWN: _kept(turn, covered)}}


def _kept(turn: Turn, covered: set[str]) -> dict[str, Any]:
    """What else there is to a turn."""
    out: dict[str, Any] = {"seconds": turn.seconds}
    if turn.span is not None:
        out["span"] = list(turn.span)
    if turn.version is not None:
        out["version"] = turn.version
    if turn.advantage is not None:
        out["advantage"] = turn.advantage
    return out | {"message": {k: v for k, v in turn.message.to_json().items() if k not in covered}}


# ---- and back


class Trajectories(Format):
    """Trajectories: episodes of ours, chat messages of others."""

    def of_row(self, row: PlacedRow) -> Iterable[RecordedConversation] | None:
        """The trajectory's conversation."""
        if not is_trajectory(row.value):
            return None
        made = row_of(row.value, row.place, self.left_out.lost)
        kind = EpisodeConversation if "turns" in made else ChatConversation
        return (kind(replace(row, value=made), self.left_out),)


def is_trajectory(value: Any) -> bool:
    """Whether a JSON value is a trajectory, of whatever version."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("schema_version"), str)
        and value["schema_version"].startswith("ATIF-")
        and "steps" in value
    )


def row_of(trajectory: Mapping[str, Any], place: str, lost: Counter[str] | None = None) -> dict[str, Any]:
    """A trajectory as a row that muarl reads: an episode's, if it is one of ours, else chat messages with tools.

    ``lost`` counts what was left out. DataError names the field that is malformed, or a version that is not known.
    """
    version = trajectory["schema_version"]
    if version not in READABLE:
        raise DataError(f"{place}: schema_version {version!r} is not known; {READABLE[0]} to {VERSION} can be read")
    steps = trajectory["steps"]
    if not isinstance(steps, list) or not steps:
        raise DataError(f"{place}: steps must be a list with at least one step")
    for i, step in enumerate(steps):
        if not isinstance(step, Mapping) or step.get("source") not in _ROLES:
            raise DataError(f"{place}, steps[{i}]: source must be one of {', '.join(_ROLES)}")
    head = _own(trajectory)
    if "schema" in head:
        return _episode_row(head, steps, place)
    counted: Counter[str] = Counter() if lost is None else lost
    messages = [m for i, step in enumerate(steps) for m in _messages(step, f"{place}, steps[{i}]", counted)]
    if embedded := trajectory.get("subagent_trajectories"):
        counted["embedded trajectories of subagents"] += len(embedded)
    agent = trajectory.get("agent")
    tools = agent.get("tool_definitions") if isinstance(agent, Mapping) else None
    name = trajectory.get("trajectory_id") or trajectory.get("session_id")
    out: dict[str, Any] = {"messages": messages}
    return out | ({"id": name} if name else {}) | ({"tools": tools} if tools else {})


def _own(part: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = part.get("extra")
    own = extra.get(OWN) if isinstance(extra, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def _episode_row(head: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], place: str) -> dict[str, Any]:
    turns: list[dict[str, Any]] = []
    try:
        for step in steps:
            if _own(step).get("turn") is not False:
                turns.append(_turn(step, _said(step)))
            for result in (step.get("observation") or {}).get("results") or ():
                answered = {"role": "tool", "content": result["content"]}
                if "source_call_id" in result:
                    answered["tool_call_id"] = result["source_call_id"]
                turns.append(_turn(result, answered))
        row = {**head, "turns": turns}
        Episode.from_json(row)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        said = f"it lacks the field {problem}" if isinstance(problem, KeyError) else str(problem)
        raise DataError(
            f"{place}: extra.{OWN} says that muarl wrote it, and it cannot be read as such: {said}. Remove extra.{OWN} "
            "everywhere to have the conversation alone"
        ) from None
    return row


def _said(step: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"role": _ROLES[step["source"]], "content": step["message"]}
    if "reasoning_content" in step:
        out["reasoning"] = step["reasoning_content"]
    if calls := step.get("tool_calls"):
        out["tool_calls"] = [
            {"id": c["tool_call_id"], "name": c["function_name"], "arguments": c["arguments"], **_own(c)} for c in calls
        ]
    return out


def _turn(part: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    own = dict(_own(part))
    return {**own, "message": {**message, **own["message"]}}


def _messages(step: Mapping[str, Any], place: str, lost: Counter[str]) -> Iterator[dict[str, Any]]:
    """The chat messages of a step that somebody else wrote."""
    role, observation = _ROLES[step["source"]], step.get("observation")
    results = observation.get("results") if isinstance(observation, Mapping) else None
    said: dict[str, Any] = {"role": role, "content": _text(step.get("message"), f"{place}.message", lost)}
    if isinstance(thought := step.get("reasoning_content"), str):
        said["reasoning"] = thought
    names: dict[Any, Any] = {}
    if calls := step.get("tool_calls"):
        said["tool_calls"] = []
        for i, call in enumerate(calls if isinstance(calls, list) else [calls]):
            where = f"{place}.tool_calls[{i}]"
            if not isinstance(call, Mapping) or not isinstance(call.get("function_name"), str):
                raise DataError(f"{where}: function_name must be a string")
            if not isinstance(call.get("arguments"), Mapping):
                raise DataError(f"{where}: arguments must be an object")
            identity, name = str(call.get("tool_call_id", "")), call["function_name"]
            names[identity] = name
            said["tool_calls"].append({"id": identity, "name": name, "arguments": call["arguments"]})
    if said["content"] or calls or not results:
        yield said
    for i, result in enumerate(results if isinstance(results, list) else ()):
        where = f"{place}.observation.results[{i}]"
        if not isinstance(result, Mapping):
            raise DataError(f"{where}: must be an object")
        if result.get("subagent_trajectory_ref"):
            lost["references to trajectories of subagents"] += 1
        identity = str(result.get("source_call_id") or "")
        answer = {"role": "tool", "tool_call_id": identity, "content": _text(result.get("content"), where, lost)}
        yield answer | ({"name": names[identity]} if identity in names else {})


def _text(value: Any, place: str, lost: Counter[str]) -> str | None:
    """Text, or the texts of parts; parts that are none are counted."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise DataError(f"{place}: must be text or a list of parts, not {type(value).__name__}")
    texts = []
    for part in value:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            texts.append(str(part.get("text", "")))
        else:
            lost[f"parts of type {kind}"] += 1
    return "\n".join(texts)


def episode_of(trajectory: Mapping[str, Any], place: str = "trajectory") -> Episode:
    """The episode that a trajectory of ours was made of. DataError if it is none of ours."""
    row = row_of(trajectory, place)
    if "turns" not in row:
        raise DataError(f"{place}: it has no extra.{OWN}, so that muarl did not write it")
    return Episode.from_json(row)
