"""Tasks written by a teacher: from seed intents and a policy to what simulated customers want.

A written task says what its customer wants and knows, and no more: whether the world is right in the end is only known
where a generator made the task. What was written is kept in a file, so that nothing is paid for twice.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.basics.errors import InfrastructureError
from muarl.basics.event_loop import event_loop
from muarl.basics.files import append_line, read_lines
from muarl.basics.seeds import derive_seed
from muarl.basics.untrusted import parse_json
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.types.chat import ToolSpec

log = logging.getLogger(__name__)

AT_ONCE = 5
"""Tasks asked for in one request."""

TRIES = 3
"""Rounds that bring nothing, before the run is given up."""

SAME = 0.6
"""Overlap of words (Jaccard) from which on two scenarios are the same."""

PERSONAS = ("terse", "chatty", "confused", "impatient", "polite", "sceptical")

LEAST_WORDS = 12

_PROMPT = """\
You write scenarios for simulated customers. An agent will serve each customer by the policy and the tools below; the
customer sees neither.

# Policy
{policy}

# Tools of the agent
{tools}

# The world
{world}

Write {count} scenarios. Their intents, in order: {intents}. Their personas, in order: {personas}.
A scenario speaks to the customer ("You want to ..."), in two to six sentences: what they want, every fact that they
know (name, numbers, dates), what they do not know, what they accept and what they do not. Facts must be concrete, and
must differ between scenarios. Say nothing about tools, and nothing that a customer would not know.
Answer with JSON only: {{"scenarios": [{{"intent": "...", "persona": "...", "scenario": "..."}}]}}"""


@dataclass(frozen=True)
class Brief:
    """What a teacher is told of a domain."""

    name: str
    policy: str
    tools: Sequence[ToolSpec]
    world: str
    intents: Sequence[str]
    """What customers come for, in a few words each."""


class WrittenTasks:
    """The tasks of one domain, written as they are needed. ``path``: the file that they are kept in."""

    def __init__(self, path: Path, endpoint: Endpoint, brief: Brief) -> None:
        self._path, self._endpoint, self._brief = path, endpoint, brief
        self._rows: list[dict[str, Any]] = read_lines(path)
        self._alike = self._unusable = 0

    def draw(self, split: str, count: int, seed: int, start: int) -> list[Task]:
        """Tasks ``start`` to ``start + count``, those that there are not yet being written now; fewer if the teacher
        writes nothing of use in ``TRIES`` rounds, which is said.

        InfrastructureError if the teacher fails, or there is no task at all.
        """
        if len(self._rows) < start + count:
            with event_loop() as loop:
                loop.run(self._write(start + count, seed))
        return [self._task(n) for n in range(start, min(start + count, len(self._rows)))]

    def _task(self, number: int) -> Task:
        row = self._rows[number]
        tags = {"intent": row["intent"], "persona": row["persona"], "written": True}
        return Task(f"{self._brief.name}-written-{number}", self._brief.name, row["scenario"], None, (), tags=tags)

    async def _write(self, count: int, seed: int) -> None:
        """Ask for all that is missing at once, and again for what was of no use."""
        failed = self._alike = self._unusable = 0
        while (before := len(self._rows)) < count:
            starts = range(before, count, AT_ONCE)
            plans = [[plan_of(self._brief, seed, n) for n in range(s, min(s + AT_ONCE, count))] for s in starts]
            asked = (
                self._ask(plan, derive_seed(seed, start, failed)) for start, plan in zip(starts, plans, strict=True)
            )
            for row in (row for rows in await asyncio.gather(*asked) for row in rows):
                if any(_overlap(row["scenario"], other["scenario"]) > SAME for other in self._rows):
                    self._alike += 1
                    continue
                append_line(self._path, row)
                self._rows.append(row)
            failed = failed + 1 if len(self._rows) == before else 0
            if failed == TRIES:
                self._give_up(count)
                return

    def _give_up(self, count: int) -> None:
        text = (
            f"{self._brief.name}: the teacher wrote no usable scenario in {TRIES} rounds. Of those that were asked "
            f"for, {self._alike} were too much like earlier ones (more than {SAME:.0%} of their words the same) and "
            f"{self._unusable} missing, unreadable or too short. Another teacher, or more intents, may help"
        )
        if not self._rows:
            raise InfrastructureError(text, boundary="world")
        log.warning("%s. Continuing with %d of %d scenarios.", text, len(self._rows), count)

    async def _ask(self, plan: Sequence[tuple[str, str]], seed: int) -> list[dict[str, Any]]:
        question = [{"role": "user", "content": prompt(self._brief, plan)}]
        reply = await self._endpoint.chat(question, seed=seed, temperature=1.0, boundary="world")
        scenarios = read(reply.content or "", plan)
        self._unusable += len(plan) - len(scenarios)
        return scenarios


def plan_of(brief: Brief, seed: int, number: int) -> tuple[str, str]:
    """(intent, persona) of a task: intents go round, so that all are met; personas are drawn."""
    rng = random.Random(f"written {brief.name} {seed} {number}")
    return brief.intents[number % len(brief.intents)], rng.choice(PERSONAS)


def prompt(brief: Brief, plan: Sequence[tuple[str, str]]) -> str:
    """What the teacher is asked."""
    tools = "\n".join(
        f"- {t.name}({', '.join(t.parameters.get('properties', {}))}): {t.description}" for t in brief.tools
    )
    return _PROMPT.format(
        policy=brief.policy,
        tools=tools,
        world=brief.world,
        count=len(plan),
        intents="; ".join(intent for intent, _ in plan),
        personas="; ".join(persona for _, persona in plan),
    )


def read(answer: str, plan: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """The usable scenarios of an answer, with the planned intents and personas; fences around the JSON are allowed."""
    text = answer.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        rows = parse_json(text)["scenarios"]
        texts = [row["scenario"] for row in rows]
    except (ValueError, TypeError, KeyError):
        return []
    scenarios = []
    for text, (intent, persona) in zip(texts, plan, strict=False):
        if isinstance(text, str) and len(text.split()) >= LEAST_WORDS and "you" in text.lower().split():
            scenarios.append({"intent": intent, "persona": persona, "scenario": text.strip()})
    return scenarios


def _overlap(one: str, other: str) -> float:
    a, b = set(one.lower().split()), set(other.lower().split())
    return len(a & b) / max(1, len(a | b))
