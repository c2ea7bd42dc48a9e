"""The customer of a logged conversation in a few sentences, told by a model and checked against what was said."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace

from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.basics.untrusted import parse_json
from muarl.domains.tasks import Action
from muarl.endpoints.client import Endpoint
from muarl.endpoints.failures import PromptRefused
from muarl.environments.log_tasks import scenario
from muarl.environments.task_files import FiledTask

PROMPT = """\
Below is what a customer said to a service, in order, and what was changed for them in the end. Describe this customer \
for an actor who will play them in a new conversation with another agent. Write to the actor as "you". Say:
- why you call, and what you want (also what you wanted at first, if you changed your mind, and when);
- every fact about yourself and your wish that you told (names, addresses, numbers, dates: exactly as you told them);
- what you do not know or would not say;
- how you speak and feel.
Use nothing but the lines below. Do not mention an agent, tools, or this conversation. Three to eight sentences.
Answer with a JSON object: {"story": "..."}"""
TRIES = 3
PATIENCE = 20
"""Requests in a row that may fail before nobody is asked any more."""
OWN_LINES = "the scenario is the {caller}'s own lines, since "
_FACT = re.compile(r"[^\s,;:!?()\"']*[\d@][^\s,;:!?()\"']*")


async def retell(tasks: Sequence[FiledTask], endpoint: Endpoint, *, caller: str = "customer") -> list[FiledTask]:
    """The tasks, with scenarios that the model wrote. Where it does not manage to within three tries, or its request
    fails, the customer's own lines stay, and a note says why (``own_lines``). Nobody is asked any more after a failure
    that trying again cannot help, or ``PATIENCE`` in a row. ``caller``: what customers are called. MuarlError if all
    requests failed."""
    room = asyncio.Semaphore(endpoint.config.concurrency)
    in_a_row: list[InfrastructureError] = []

    async def told(filed: FiledTask) -> FiledTask | InfrastructureError:
        async with room:
            if len(in_a_row) >= PATIENCE or any(not problem.retryable for problem in in_a_row):
                return in_a_row[-1]
            try:
                answer = await _one(filed, endpoint, caller)
            except InfrastructureError as problem:
                if not isinstance(problem, PromptRefused):  # which is of this conversation alone
                    in_a_row.append(problem)
                return problem
            in_a_row.clear()
            return answer

    try:
        results = await asyncio.gather(*(told(task) for task in tasks))
    finally:
        await endpoint.aclose()
    failures = [one for one in results if isinstance(one, InfrastructureError)]
    if failures and len(failures) == len(results):
        raise MuarlError(f"--by: {failures[0]}")
    return [
        _with_own_lines(filed, caller, f"the request failed: {one}") if isinstance(one, InfrastructureError) else one
        for filed, one in zip(tasks, results, strict=True)
    ]


def own_lines(tasks: Sequence[FiledTask], *, caller: str = "customer") -> list[str]:
    """Why a scenario is the customer's own lines, for each of the tasks of which ``retell`` noted that."""
    start = OWN_LINES.format(caller=caller)
    return [note.removeprefix(start) for filed in tasks for note in filed.notes if note.startswith(start)]


def _with_own_lines(filed: FiledTask, caller: str, problem: str) -> FiledTask:
    return replace(filed, notes=(*filed.notes, f"{OWN_LINES.format(caller=caller)}{problem}"))


async def _one(filed: FiledTask, endpoint: Endpoint, caller: str) -> FiledTask:
    task = filed.task
    lines = tuple((task.agenda or {}).get("lines", ()))
    actions = task.actions or ()
    asked = json.dumps(
        {"customer": lines, "changed": [{"what": a.name, **a.arguments} for a in actions]}, ensure_ascii=False
    )
    problem = ""
    for attempt in range(TRIES):
        messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": asked}]
        if problem:
            messages.append({"role": "user", "content": f"Your last answer was refused: {problem}. Answer again."})
        reply = await endpoint.chat(messages, seed=attempt, boundary="teacher")
        story, problem = read_story(reply.content or "", lines, actions)
        if not problem:
            return replace(filed, task=replace(task, scenario=scenario(lines, actions, story, caller=caller)))
    return _with_own_lines(filed, caller, problem)


def read_story(answer: str, lines: Sequence[str], actions: Sequence[Action]) -> tuple[str, str]:
    """(story, what is wrong with it, empty if nothing). Every word with a digit or an @ must have been said by the
    customer or stand in the actions: a model that makes up an order's number makes the task impossible."""
    text = answer.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        data = parse_json(text)
    except ValueError:
        return "", "the answer was no JSON"
    story = data.get("story") if isinstance(data, dict) else None
    if not isinstance(story, str) or not story.strip():
        return "", 'the answer had no text in "story"'
    sources = " ".join((*lines, *(json.dumps(dict(a.arguments), ensure_ascii=False) for a in actions))).casefold()
    for fact in (word.rstrip(".") for word in _FACT.findall(story)):
        if fact.casefold() not in sources:
            return "", f"{fact!r} was said by nobody"
    return story.strip(), ""
