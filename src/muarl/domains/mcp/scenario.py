"""The scenarios that come with muarl on public MCP servers: a folder of readable files each, under ``scenarios/``.

scenario.yaml   the server, the tools that are offered, what people may want and how they say it
policy.md       the agent's policy; policy_compact.md: the tiny size's
tools.json      the server's tools as it describes them (``muarl mcp tools NAME --json``)
state.py        the domain: what an episode begins with, and what of its end counts
tasks.py        worlds and requests from seeds;  expert.py   the scripted agent
"""

from __future__ import annotations

import itertools
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import yaml

from muarl.chat import ToolSpec
from muarl.domains.base import Action, Database, Task
from muarl.domains.drawing import DRAWS, Infeasible, Request, split_of
from muarl.domains.generated import SPLITS
from muarl.domains.mcp import servers
from muarl.domains.mcp.domain import McpDomain
from muarl.domains.mcp.launch import Bounds, over_stdio
from muarl.domains.mcp.talk import PERSONAS, Talk, talk_from
from muarl.domains.mcp.tools import Offer, from_json
from muarl.errors import DataError

SIZES = ("tiny", "medium")

SECOND_REQUEST = 0.3
"""How often a caller has a second request, where the first allows one."""
TRIES = 400


@dataclass(frozen=True)
class Files:
    """What a scenario's files say. ``shares``: how often each kind of request comes first; ``second``: kinds that may
    come after another one. ``tiny_tools``: what the tiny size offers, all if empty."""

    server: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    bounds: Bounds
    slow_reads: Any
    offers: tuple[Offer, ...]
    tiny_tools: tuple[str, ...]
    talk: Talk
    shares: Mapping[str, float]
    second: tuple[str, ...]


@cache
def read_files(folder: Path) -> Files:
    """A scenario's files. DataError names the file and what is wrong with it."""
    path = folder / "scenario.yaml"
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        offers = tuple(_offer(name, given or {}) for name, given in data["tools"].items())
        return Files(
            server=data["server"],
            arguments=tuple(data.get("arguments", ())),
            env=data.get("env", {}),
            bounds=Bounds(**data.get("bounds", {})),
            slow_reads=data.get("slow_reads", "drop"),
            offers=offers,
            tiny_tools=tuple(data.get("tiny_tools", ())),
            talk=talk_from(data, str(path)),
            shares=data["shares"],
            second=tuple(data.get("second", ())),
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as problem:
        raise DataError(f"{path} is no scenario: {type(problem).__name__}: {problem}") from None


def _offer(name: str, given: Mapping[str, Any]) -> Offer:
    more = {k: v for k, v in given.items() if k not in ("as", "hidden")}
    return Offer(name, named=given.get("as", ""), hidden=tuple(given.get("hidden", ())), **more)


class ScenarioDomain(McpDomain):
    """The domain of one scenario at one size. ``folder``: where its files are."""

    folder: ClassVar[Path]

    def __init__(self, size: str = "medium", *, policy: str | None = None, places: int = 0) -> None:
        if size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
        files = read_files(self.folder)
        self.size = size
        self.public = servers.server(files.server)
        launch = over_stdio(
            files.server, *self.public.command(*files.arguments), env=files.env, keeps="folder",
            slow_reads=files.slow_reads, bounds=files.bounds,
        )  # fmt: skip
        tiny = size == "tiny"
        if policy is None:
            policy = (self.folder / ("policy_compact.md" if tiny else "policy.md")).read_text(encoding="utf-8").strip()
        super().__init__(
            launch=launch,
            offers=files.offers,
            listing=from_json(json.loads((self.folder / "tools.json").read_text(encoding="utf-8"))),
            policy=policy,
            tools=files.tiny_tools if tiny and files.tiny_tools else None,
            places=places,
        )

    def tool_specs(self, requestor: Any = "assistant") -> tuple[ToolSpec, ...]:
        """The tools one side has; at the tiny size with the first sentence of their descriptions only."""
        specs = super().tool_specs(requestor)
        return tuple(_short(s) for s in specs) if self.size == "tiny" else specs

    def missing(self) -> str | None:
        """What keeps the server from running, with the remedy."""
        return self.public.missing()


def _short(spec: ToolSpec) -> ToolSpec:
    first = spec.description.split(". ")[0].rstrip(".")
    properties = {n: _bare(s) for n, s in spec.parameters["properties"].items()}
    kept = {"type": "object", "properties": properties, "required": spec.parameters["required"]}
    return ToolSpec(spec.name, first, kept)


def _bare(schema: Any) -> Any:
    """A schema without words."""
    if isinstance(schema, Mapping):
        return {k: _bare(v) for k, v in schema.items() if k not in ("description", "title", "additionalProperties")}
    return [_bare(s) for s in schema] if isinstance(schema, list) else schema


class Desk(ABC):
    """Where a scenario's tasks come from: a world, requests that it can host, and the right calls for them."""

    name: ClassVar[str]
    folder: ClassVar[Path]

    @abstractmethod
    def world(self, rng: random.Random, size: str, split: str, kind: str) -> dict[str, dict[str, Any]]:
        """The tables that a task's episode begins with; ``kind`` is the kind of its first request."""

    @abstractmethod
    def request(self, rng: random.Random, tables: Mapping[str, Any], kind: str, split: str, alone: bool) -> Request:
        """One request of a kind. Raises Infeasible where this world cannot host it."""

    @abstractmethod
    def gold(self, tables: Mapping[str, Any], requests: Sequence[Request]) -> list[Action]:
        """The calls that fulfil the requests' final wishes, in order."""

    def iter_tasks(self, split: str, *, size: str, seed: int = 0, start: int = 0) -> Iterator[Task]:
        """Tasks of one split without end, from index ``start`` on."""
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
        if size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
        for index in itertools.count(start):
            yield self.task(split, index, size=size, seed=seed)

    def task(self, split: str, index: int, *, size: str, seed: int = 0) -> Task:
        """Task number ``index`` of a split. The same arguments give the same task."""
        files = read_files(self.folder)
        rng = random.Random(f"{self.name} task {size} {split} {seed} {index}")
        for attempt in range(TRIES * DRAWS):
            if attempt % TRIES == 0:  # worlds may have no place for a kind, and a run must not end for that
                kind = rng.choices(list(files.shares), list(files.shares.values()))[0]
                second = kind != "forbidden" and bool(files.second) and rng.random() < SECOND_REQUEST
            try:
                tables = self.world(rng, size, split, kind)
                requests = [self.request(rng, tables, kind, split, not second)]
                if second:
                    other = rng.choice([k for k in files.second if k != requests[0].kind] or [""])
                    requests.append(self.request(rng, tables, other, split, False))
                    if _same_subject(requests):
                        raise Infeasible
                actions = self.gold(tables, requests)
                return self._task(
                    f"{self.name}-{size}-{split}-{seed}-{index}", rng, tables, requests, actions, split, seed
                )
            except Infeasible:
                continue
        raise RuntimeError(f"no world could host task {index} of {self.name}: {kind}")

    def _task(
        self,
        task_id: str,
        rng: random.Random,
        tables: Mapping[str, Any],
        requests: Sequence[Request],
        actions: Sequence[Action],
        split: str,
        seed: int,
    ) -> Task:
        agenda = {
            "persona": rng.choice(list(PERSONAS)),
            "requests": [r.to_agenda() for r in requests],
            "upfront": rng.random() < 0.5,
            "reminds": rng.random() < 0.3,
        }
        changed = any(r.then is not None for r in requests)
        gone = any(r.fallback is not None for r in requests)
        unknown = any(r.unknown for r in requests)
        answers = tuple(r.answer for r in requests if r.answer is not None)
        return Task(
            id=task_id,
            domain=self.name,
            scenario=read_files(self.folder).talk.scenario_text(agenda),
            actions=tuple(actions),
            reward_basis=("DB", "COMMUNICATE") if answers else ("DB",),
            communicate_info=answers,
            database=Database(tables),
            agenda=agenda,
            tags={
                "intent": (requests[0].intent or requests[0].kind) if len(requests) == 1 else "two_requests",
                "persona": agenda["persona"],
                "difficulty": 1 + (len(requests) > 1) + changed + gone + unknown,
                "split": split,
                "seed": seed,
                "changes_mind": changed,
                "feasible": requests[0].intent != "forbidden",
            },
        )


def of_split(split: str, what: str, make: Callable[[], str]) -> str:
    """One of what ``make`` makes that belongs to a split."""
    while True:
        made = make()
        if split_of(what, made) == split:
            return made


def several(split: str, what: str, make: Callable[[], str], count: int) -> list[str]:
    """So many different ones of a split; a few less where there are hardly as many."""
    return list(dict.fromkeys(of_split(split, what, make) for _ in range(2 * count)))[:count]


def _same_subject(requests: Sequence[Request]) -> bool:
    """Whether two requests name the same thing, so that one might change what the other finds."""
    named = []
    for request in requests:
        wishes = (request.wish, request.then or {}, request.fallback or {})
        named.append({str(value) for wish in wishes for value in wish.values()})
    return bool(set.intersection(*named))
