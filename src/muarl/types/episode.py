"""One episode: turns, exact tokens, stop reason, verdict, timings and costs; and its lossless JSONL form."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

from muarl.basics.files import whole_file
from muarl.basics.untrusted import parse_json, read_lines
from muarl.types.chat import Message, ToolSpec, check_texts, from_rows

SCHEMA_VERSION = 1
GUARD = "user_guard"
"""The tag with what a guard has done (users/guard.py): "asked_again", "fixed" and "left"."""
AGENT_GUARD = "agent_guard"
"""The tag with what a guard has done about an agent's calls (agents/guarded.py): "held_back", "given_up" and
"findings", the rules with how often each was broken."""
BRANCH = "branch"
"""The tag of an episode that began as another one (rollouts/beginnings.py): {"of": that episode's id, "turn": the index
of the turn in its turns that was played anew, "agent_turn": how many of the agent's turns came before it}."""
FAULTS = "system_faults"
"""The tag of episodes whose world may fail (domains/faults): how many faults there were, by kind."""
ADVANTAGE = "advantage"
"""The tag with what an episode was learned from with; where that differs from turn to turn, its mean."""
USER_TOKENS = "user_tokens"
"""The tag with the exact tokens of a user model, where its factory keeps them (users/sampled.py): {"trace": as
``TokenTrace.to_json``, "spans": for each of its messages its half-open range of sampled ids, null for one that was not
sampled}."""
SPOILED = "spoiled_by_user"
"""The tag of episodes whose user said something that a guard could not fix (users/guard.py)."""

_LARGEST = sys.float_info.max


class StopReason(StrEnum):
    """Why an episode ended. Exactly one holds.

    Only ``user_stop``, ``agent_stop`` (of an agent that works alone) and ``transfer`` are ends that a participant
    chose; the limits truncate; ``infrastructure`` means that something outside the policy failed, and such an episode
    is excluded from scores and groups, never scored.
    """

    USER_STOP = "user_stop"
    AGENT_STOP = "agent_stop"
    TRANSFER = "transfer"
    MAX_TURNS = "max_turns"
    TURN_LENGTH = "turn_length"
    CONTEXT_FULL = "context_full"
    TOOL_ERRORS = "tool_errors"
    EMPTY_REPLY = "empty_reply"
    BROKEN_CALL = "broken_call"
    INFRASTRUCTURE = "infrastructure"

    @property
    def chosen(self) -> bool:
        """True if a participant ended the episode, so that the world's final state may be scored."""
        return self in (StopReason.USER_STOP, StopReason.AGENT_STOP, StopReason.TRANSFER)

    @property
    def truncated(self) -> bool:
        """True if a limit cut the episode: reward 0, but it stays in the loss."""
        return not self.chosen and self is not StopReason.INFRASTRUCTURE


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one participant over an episode."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 0
    retries: int = 0
    cost: float = 0.0
    """In US dollars, 0 where no price is known."""
    uncounted: int = 0
    """Requests whose answers did not say how many tokens they took, which tokens and cost therefore lack."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.requests + other.requests,
            self.retries + other.retries,
            self.cost + other.cost,
            self.uncounted + other.uncounted,
        )

    def __sub__(self, earlier: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))

    @classmethod
    def from_json(cls, row: Mapping[str, Any], prefix: str = "") -> Usage:
        """What a dict of the fields says, other entries ignored. ``prefix``: that its keys begin with."""
        return cls(**{f.name: row[prefix + f.name] for f in fields(cls) if prefix + f.name in row})

    def to_json(self) -> dict[str, Any]:
        """A plain dict of the fields; ``uncounted`` only where there is any."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "requests": self.requests,
            "retries": self.retries,
            "cost": self.cost,
            **({"uncounted": self.uncounted} if self.uncounted else {}),
        }


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of an episode and where it stands."""

    message: Message
    seconds: float = 0.0
    """Wall time in seconds that it took to produce."""
    span: tuple[int, int] | None = None
    """Half-open range of the agent's own sampled ids in the episode's tokens (and so in one segment of them), None for
    messages that no sampler of ours produced."""
    version: int | None = None
    """The policy version that sampled it."""
    advantage: float | None = None
    """What it was learned from with, where that differs from turn to turn."""
    response: str | None = field(default=None, repr=False, compare=False)
    """What the agent's server called its response; in memory only."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Turn:
        """A turn of an episode's row. KeyError if a field is missing, ValueError for one of another kind."""
        try:
            message = Message.from_json(data["message"])
        except ValueError as problem:
            raise ValueError(f"message.{problem}") from None
        span = tuple(data["span"]) if "span" in data else None
        return cls(message, data["seconds"], span, data.get("version"), data.get("advantage"))


@dataclass(slots=True)
class TokenTrace:
    """The exact token ids of an episode as the agent's sampler saw and produced them.

    The lists of tokens have the same length T.
    """

    ids: list[int] = field(default_factory=list)
    """Token ids, [T]."""
    loss_mask: list[bool] = field(default_factory=list)
    """[T]: ``loss_mask[t]`` is True if the policy sampled ``ids[t]``."""
    logprobs: list[float] = field(default_factory=list)
    """[T]: the sampler's log-probability of ``ids[t]`` if the policy sampled it, else 0.0."""
    versions: list[int] = field(default_factory=list)
    """[T]: the policy version that sampled ``ids[t]``, -1 for given tokens."""
    restarts: list[int] = field(default_factory=list)
    """Where in the tokens the context was written anew, since the chat format drops earlier thoughts when the user
    speaks. What stands between two of these places is a *segment*: one context that only grew. Most episodes are a
    single one."""

    def __len__(self) -> int:
        return len(self.ids)

    def copy(self) -> TokenTrace:
        """The same tokens in lists of their own."""
        return TokenTrace([*self.ids], [*self.loss_mask], [*self.logprobs], [*self.versions], [*self.restarts])

    def append_given(self, ids: Iterable[int]) -> None:
        """Append context tokens, which carry no loss."""
        before = len(self.ids)
        self.ids.extend(ids)
        n = len(self.ids) - before
        self.loss_mask.extend([False] * n)
        self.logprobs.extend([0.0] * n)
        self.versions.extend([-1] * n)

    def append_sampled(self, ids: Iterable[int], logprobs: Iterable[float], version: int) -> tuple[int, int]:
        """Append tokens that the policy sampled; returns their half-open span."""
        start = len(self.ids)
        self.ids.extend(ids)
        self.logprobs.extend(logprobs)
        n = len(self.ids) - start
        if len(self.logprobs) != len(self.ids):
            raise ValueError(f"{n} sampled ids came with {len(self.logprobs) - start} log-probabilities")
        self.loss_mask.extend([True] * n)
        self.versions.extend([version] * n)
        return start, start + n

    def cut(self, length: int) -> None:
        """Forget every token from place ``length`` on. ValueError for a place that is not in the last segment."""
        if length < (self.restarts[-1] if self.restarts else 0):
            raise ValueError(f"cannot cut {len(self.ids)} tokens at {length}: an earlier segment begins after it")
        for row in (self.ids, self.loss_mask, self.logprobs, self.versions):
            del row[length:]

    def restart(self) -> None:
        """What is appended from here on is a new segment."""
        if self.context_length:
            self.restarts.append(len(self.ids))

    @property
    def context_length(self) -> int:
        """Tokens of the last segment."""
        return len(self.ids) - (self.restarts[-1] if self.restarts else 0)

    def context(self) -> list[int]:
        """The ids of the last segment: what the agent has before it now."""
        return self.ids[self.restarts[-1] :] if self.restarts else self.ids

    def segments(self) -> list[TokenTrace]:
        """The segments in order, each a trace of its own; every token is in one of them."""
        if not self.restarts:
            return [self]
        return [
            TokenTrace(self.ids[a:b], self.loss_mask[a:b], self.logprobs[a:b], self.versions[a:b])
            for a, b in pairwise([0, *self.restarts, len(self.ids)])
        ]

    @property
    def sampled_count(self) -> int:
        """How many of the tokens the policy sampled."""
        return sum(self.loss_mask)

    @property
    def oldest_version(self) -> int:
        """The oldest policy version that sampled any of the tokens; ValueError if none was sampled."""
        return min(v for v, sampled in zip(self.versions, self.loss_mask, strict=True) if sampled)

    def to_json(self) -> dict[str, Any]:
        """A plain dict; the mask as 0 and 1, ``restarts`` only where there are any."""
        return {
            "ids": self.ids,
            "loss_mask": [int(m) for m in self.loss_mask],
            "logprobs": self.logprobs,
            "versions": self.versions,
            **({"restarts": self.restarts} if self.restarts else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TokenTrace:
        """The inverse of ``to_json``. ValueError if the lists differ in length or hold no numbers, or ``restarts`` are
        no places in them."""
        trace = cls(
            list(data["ids"]), [bool(m) for m in data["loss_mask"]], list(data["logprobs"]), list(data["versions"]),
            list(data.get("restarts", ())),
        )  # fmt: skip
        if not len(trace.ids) == len(trace.loss_mask) == len(trace.logprobs) == len(trace.versions):
            raise ValueError("tokens: ids, loss_mask, logprobs and versions differ in length")
        for name, values, kinds in (("ids", trace.ids, {int}), ("logprobs", trace.logprobs, {int, float}),
                                    ("versions", trace.versions, {int})):  # fmt: skip
            if not kinds.issuperset(map(type, values)):
                raise ValueError(f"tokens: {name} must be numbers{'' if len(kinds) > 1 else ' without fractions'}")
        whole = all(type(at) is int for at in trace.restarts)
        if not whole or any(a >= b for a, b in pairwise([0, *trace.restarts, len(trace.ids)]) if trace.restarts):
            raise ValueError("tokens: restarts must be ascending places within the ids")
        return trace


@dataclass(frozen=True, slots=True)
class Verdict:
    """The score of an episode."""

    reward: float
    """The product of ``breakdown``."""
    breakdown: Mapping[str, float] = field(default_factory=dict)
    """Component name to 0.0 or 1.0."""
    audit: Mapping[str, float] = field(default_factory=dict)
    """Metrics that operators care about and the reward does not see (see audit/metrics.py)."""
    note: str | None = None


@dataclass(slots=True)
class Episode:
    """One conversation from first message to verdict: messages, exact tokens, why it ended, reward, usage."""

    id: str
    task_id: str
    domain: str
    turns: list[Turn]
    stop: StopReason
    seed: int = 0
    group: str | None = None
    """The set of rollouts of one task at one training step."""
    agent: str = ""
    user: str = ""
    tokens: TokenTrace | None = None
    """None for agents that no sampler of ours drives."""
    verdict: Verdict | None = None
    tags: dict[str, Any] = field(default_factory=dict)
    """What reports group by: intent, persona, difficulty."""
    timings: dict[str, float] = field(default_factory=dict)
    agent_usage: Usage = Usage()
    user_usage: Usage = Usage()
    error: str | None = None
    """What failed where ``stop`` is ``infrastructure``."""
    system: str | None = None
    """The system prompt that the agent was given; in memory, and in files whose episodes do not share it (see
    ``to_json``)."""
    tools: tuple[ToolSpec, ...] | None = None
    """The tools that the agent was offered; in memory, and in files whose episodes do not share them."""

    @property
    def learnable(self) -> bool:
        """True if it may be learned from: neither did infrastructure end it, nor has a guard found that its user
        spoiled it."""
        return self.stop is not StopReason.INFRASTRUCTURE and not self.tags.get(SPOILED)

    @property
    def messages(self) -> list[Message]:
        """The messages of all turns, in order."""
        return [t.message for t in self.turns]

    @property
    def reward(self) -> float:
        """The verdict's reward; ValueError with the reason if the episode has not been scored."""
        if self.verdict is None:
            why = f": it ended with {self.stop.value}, {self.error}" if self.error else ""
            raise ValueError(f"episode {self.id} has no verdict{why}")
        return self.verdict.reward

    def token_advantages(self) -> list[float] | None:
        """What each of the tokens was learned from with, 0 for those that the policy did not sample; None if the
        episode was not learned from. The turns of a branch that are another episode's have 0."""
        own = self.tags.get(ADVANTAGE)
        if self.tokens is None or own is None:
            return None
        by_turn = any(turn.advantage is not None for turn in self.turns)
        if not by_turn:
            return [float(own) if sampled else 0.0 for sampled in self.tokens.loss_mask]
        out = [0.0] * len(self.tokens)
        for turn in self.turns:
            if turn.span is not None and turn.advantage is not None:
                out[slice(*turn.span)] = [turn.advantage] * (turn.span[1] - turn.span[0])
        return out

    def to_json(self, *, context: bool = False) -> dict[str, Any]:
        """A plain dict that ``from_json`` restores exactly; "schema" says which version of the form it is.

        ``context``: with what the agent was told, which is else left out: for episodes of several domains in one file.
        """
        turns = []
        for t in self.turns:
            row: dict[str, Any] = {"message": t.message.to_json(), "seconds": t.seconds}
            if t.span is not None:
                row["span"] = list(t.span)
            if t.version is not None:
                row["version"] = t.version
            if t.advantage is not None:
                row["advantage"] = t.advantage
            turns.append(row)
        prompt: dict[str, Any] = {}
        if context and self.system is not None and self.tools is not None:
            prompt = {"system": self.system, "tools": [t.to_json() for t in self.tools]}
        return {
            "schema": SCHEMA_VERSION,
            "id": self.id,
            "task_id": self.task_id,
            "domain": self.domain,
            "group": self.group,
            "seed": self.seed,
            "agent": self.agent,
            "user": self.user,
            "stop": self.stop.value,
            "turns": turns,
            "tokens": self.tokens.to_json() if self.tokens is not None else None,
            "verdict": None
            if self.verdict is None
            else {
                "reward": self.verdict.reward,
                "breakdown": dict(self.verdict.breakdown),
                "audit": dict(self.verdict.audit),
                "note": self.verdict.note,
            },
            "tags": self.tags,
            "timings": self.timings,
            "agent_usage": self.agent_usage.to_json(),
            "user_usage": self.user_usage.to_json(),
            "error": self.error,
            **prompt,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Episode:
        """The inverse of ``to_json``. ValueError names the field if the row is of another schema or malformed."""
        version = data.get("schema")
        if version != SCHEMA_VERSION:
            raise ValueError(f"schema: this muarl reads episode schema {SCHEMA_VERSION}, the row says {version!r}")
        try:
            check_scalars(data)
            verdict = data["verdict"]
            return cls(
                id=data["id"],
                task_id=data["task_id"],
                domain=data["domain"],
                group=data["group"],
                seed=data["seed"],
                agent=data["agent"],
                user=data["user"],
                stop=StopReason(data["stop"]),
                turns=list(from_rows(Turn.from_json, data["turns"], "turns")),
                tokens=TokenTrace.from_json(data["tokens"]) if data["tokens"] is not None else None,
                verdict=None if verdict is None else Verdict(**verdict),
                tags=dict(data["tags"]),
                timings=dict(data["timings"]),
                agent_usage=Usage(**data["agent_usage"]),
                user_usage=Usage(**data["user_usage"]),
                error=data["error"],
                system=data.get("system"),
                tools=from_rows(ToolSpec.from_json, data["tools"], "tools") if "tools" in data else None,
            )
        except KeyError as missing:
            raise ValueError(f"episode row lacks the field {missing}") from None


def check_scalars(data: Mapping[str, Any]) -> None:
    """ValueError if a field that figures and lists are made of is of another kind: a row may be somebody else's."""
    kinds: dict[str, tuple[type, ...]] = {
        "id": (str,), "task_id": (str,), "domain": (str,), "seed": (int,), "group": (str, type(None)),
    }  # fmt: skip
    for name, allowed in kinds.items():
        if not isinstance(data[name], allowed):
            raise ValueError(f"{name} must be {allowed[0].__name__}, not {type(data[name]).__name__}")
    check_texts(data, "system")
    if data["verdict"] is not None:
        reward = data["verdict"]["reward"]
        if not isinstance(reward, (int, float)) or not -_LARGEST <= reward <= _LARGEST:
            raise ValueError("verdict.reward must be a finite number")


def write_episodes(path: Path, episodes: Iterable[Episode], *, context: bool = False) -> int:
    """Write episodes as JSON lines, whole or not at all; returns how many. MuarlError if the disk is full.

    ``context``: see ``Episode.to_json``.
    """
    count = 0
    with whole_file(path) as out:
        for episode in episodes:
            out.write(json.dumps(episode.to_json(context=context), ensure_ascii=False) + "\n")
            count += 1
    return count


def read_episodes(path: Path, *, unfinished_ok: bool = False) -> Iterator[Episode]:
    """Read episodes from JSON lines. ValueError names file and line of the first row that is not an episode.

    ``unfinished_ok``: a last line without its end, which a run leaves that was killed or still writes, is passed over.
    """
    for number, line in read_lines(path):
        if not line.strip() or (unfinished_ok and not line.endswith(b"\n")):
            continue
        try:
            yield Episode.from_json(parse_json(line))
        except ValueError as problem:
            raise ValueError(f"{path}, line {number}: {problem}") from None
        except (TypeError, AttributeError, KeyError, OverflowError) as problem:
            raise ValueError(f"{path}, line {number}: this row is no episode: {problem}") from None
