"""A language model that looks for errors of simulated users, where rules cannot tell (``errors``).

The prompt is our own; its findings stand beside those of the rules, under the rule "judge".
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from muarl.basics.errors import InfrastructureError
from muarl.basics.untrusted import parse_json
from muarl.domains.tasks import Task
from muarl.rewards.judge import Completer
from muarl.types.chat import Message
from muarl.user_errors.errors import UserError

_SYSTEM = """\
A customer in the conversation below was played by a program, which had the scenario below as its instructions. Find
the messages in which the program played its part wrongly. Judge the customer only, never the agent.

Wrong is, with the word to use for it:
- contradicts: it says, wants or accepts something else than the scenario says
- invents: it gives a detail that stands neither in the scenario nor in what it was told or shown before
- leaks: it quotes its instructions, speaks of them, or says that it is a program
- stops_early: it ends the conversation with a wish of the scenario unspoken, or with something still to be done that
  the agent was about to do. Giving up on an agent that does not help is no error
- breaks_character: it speaks as the agent, or as nobody who would call customer service
- pretends: it reports something that it did or saw without having done or seen it
- other: any other thing that no such customer would say

A customer may be rude, vague, brief or mistaken where the scenario asks for it. Leave small things out: only what
could change how the conversation went is an error. Most conversations have none.

Answer with one JSON object and nothing else:
{"errors": [{"turn": <number of the message>, "rule": "<one of the words above>", "detail": "<why, in one sentence>"}]}
"""

_WORDS = ("contradicts", "invents", "leaks", "stops_early", "breaks_character", "pretends", "other")


@dataclass(frozen=True)
class UserJudge:
    """Asks a language model about one conversation at a time.

    An answer that is no such JSON is asked for again; InfrastructureError (boundary "judge") after ``attempts`` tries.
    """

    model: Completer
    attempts: int = 3

    async def __call__(self, task: Task, messages: Sequence[Message]) -> tuple[UserError, ...]:
        problem: ValueError | None = None
        for _ in range(self.attempts):
            answer = await self.model.complete(user_judge_prompt(task, messages))
            try:
                return read_findings(answer, messages)
            except ValueError as failure:
                problem = failure
        raise InfrastructureError(f"the judge of users gave no answer that can be read: {problem}", boundary="judge")


def user_judge_prompt(task: Task, messages: Sequence[Message]) -> list[dict[str, str]]:
    """What the judge is asked: the scenario, and every message that the user saw or wrote, with its number."""
    lines = []
    for turn, message in enumerate(messages):
        if message.role == "user":
            calls = ", ".join(f"{c.name}({json.dumps(dict(c.arguments))})" for c in message.tool_calls)
            lines.append(f"[{turn}] customer: {f'(uses its phone: {calls})' if calls else message.content}")
        elif message.role == "assistant" and not message.tool_calls:
            lines.append(f"[{turn}] agent: {message.content}")
        elif message.role == "tool" and message.requestor == "user":
            lines.append(f"[{turn}] (the customer is shown: {message.content})")
    conversation = "\n".join(lines)
    content = f"<scenario>\n{task.scenario}\n</scenario>\n\n<conversation>\n{conversation}\n</conversation>"
    return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": content}]


def read_findings(answer: str, messages: Sequence[Message]) -> tuple[UserError, ...]:
    """The errors in a judge's answer; a fenced code block is allowed. ValueError says what is wrong with it."""
    fenced = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", answer, re.DOTALL)
    try:
        data = parse_json(fenced.group(1) if fenced else answer)
    except ValueError as problem:
        raise ValueError(f"{problem} in {answer[:200]!r}") from None
    rows = data.get("errors") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        raise ValueError(f"there is no list of errors in {answer[:200]!r}")
    out = []
    for row in rows:
        turn = row.get("turn") if isinstance(row, dict) else None
        if not isinstance(turn, int) or isinstance(turn, bool) or not 0 <= turn < len(messages):
            raise ValueError(f"{turn!r} is not the number of a message")
        if messages[turn].role != "user":
            raise ValueError(f"message {turn} is not the customer's")
        word = row.get("rule")
        kind = word if word in _WORDS else "other"
        out.append(UserError("judge", turn, f"{kind}: {str(row.get('detail', ''))[:300]}"))
    return tuple(out)
