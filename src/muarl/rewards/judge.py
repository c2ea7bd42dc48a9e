"""Who answers natural-language assertions: a fixed answer, or a language model with TAU2's prompt.

The prompt is the benchmark's own, word for word (sierra-research/tau2-bench, MIT licence, Copyright Sierra Research).
TAU2 asks gpt-4.1-2025-04-14 at temperature 0; scores from other judges are not comparable with official ones.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import TypeAdapter, ValidationError

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.untrusted import parse_json
from muarl.types.chat import Message
from muarl.types.episode import Usage

if TYPE_CHECKING:
    from muarl.endpoints.client import Endpoint

_SYSTEM = """\
TASK
- You will be given a list of expected outcomes and a conversation that was collected during a test case run.
- The conversation is between an agent and a customer.
- Your job is to evaluate whether the agent satisfies each of the expected outcomes.
- Grade each expected outcome individually.

FORMAT
- Your response should be a JSON object with the following fields:
- `reasoning`: a short explanation for your classification
- `metExpectation`: `true` if the agent satisfies the expected outcomes, `false` otherwise
- `expectedOutcome`: repeat the expectation from the input that you are grading
{blank}
Example response structure:
{
    "results": [
        {
            "expectedOutcome": "<one of the expected outcomes from the input>",
            "reasoning": "<reasoning trace>",
            "metExpectation": <false or true>,
        }
    ]
}
"""


_TRUTH = TypeAdapter(bool)


class Judge(Protocol):
    """Answers whether a conversation meets all of a task's natural-language assertions. Whoever opened it closes it."""

    async def __call__(self, messages: Sequence[Message], assertions: Sequence[str]) -> bool: ...

    async def aclose(self) -> None:
        """Close its connections; it can be asked again afterwards."""
        ...


class Completer(Protocol):
    """What a judge needs of a language model: messages in the OpenAI form in, text out."""

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The answer to these messages."""
        ...


@dataclass(frozen=True)
class FixedJudge:
    """Always gives the same answer."""

    answer: bool

    async def __call__(self, messages: Sequence[Message], assertions: Sequence[str]) -> bool:
        return self.answer

    async def aclose(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True)
class JudgeModel:
    """A language model behind an endpoint, asked at temperature 0. One object may judge several things."""

    endpoint: Endpoint

    @property
    def usage(self) -> Usage:
        """Everything that it has used so far."""
        return self.endpoint.usage

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The answer to these messages."""
        reply = await self.endpoint.chat(messages, temperature=0.0, boundary="judge")
        return reply.content or ""

    async def aclose(self) -> None:
        """Close its connections; it can be asked again afterwards."""
        await self.endpoint.aclose()


@dataclass(frozen=True)
class ModelJudge:
    """Asks a language model, all assertions at once, and passes if every one is met.

    An answer that is no such JSON is asked for again; InfrastructureError (boundary "judge") after ``attempts`` tries.
    As with TAU2, an answer with an empty list of results passes.
    """

    model: Completer
    attempts: int = 3

    async def __call__(self, messages: Sequence[Message], assertions: Sequence[str]) -> bool:
        prompt = judge_prompt(messages, assertions)
        problem: Exception | None = None
        for _ in range(self.attempts):
            answer = await self.model.complete(prompt)
            try:
                return all(read_results(answer))
            except ValueError as failure:
                problem = failure
        raise InfrastructureError(f"the judge's answer could not be read: {problem}", boundary="judge")

    async def aclose(self) -> None:
        """Close the model's connections; it can be asked again afterwards."""
        if isinstance(self.model, JudgeModel):
            await self.model.aclose()


def judge_prompt(messages: Sequence[Message], assertions: Sequence[str]) -> list[dict[str, str]]:
    """The system and user message that TAU2's judge gets: every message of the conversation, tool results included."""
    transcript = "\n".join(f"{m.role}: {m.content}" for m in messages)
    pad = " " * 8
    system = "\n" + "".join(f"{pad}{line}\n" if line else "\n" for line in _SYSTEM.splitlines()) + pad
    user = f"\n{pad}conversation:\n{pad}{transcript}\n{pad}\n{pad}expectedOutcomes:\n{pad}{list(assertions)}\n{pad}"
    return [{"role": "system", "content": system.replace("{blank}", "")}, {"role": "user", "content": user}]


def read_results(answer: str) -> list[bool]:
    """The verdicts of a judge's answer; a fenced code block around the JSON is allowed. ValueError if malformed.

    As with TAU2, a verdict may also be the text "true" or "false", or 1 or 0.
    """
    fenced = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", answer, re.DOTALL)
    try:
        results = parse_json(fenced.group(1) if fenced else answer)
        verdicts = [r["metExpectation"] for r in results.get("results", [])]
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ValueError(f"{problem!r} in {textwrap.shorten(answer, 200)!r}") from None
    try:
        return [_TRUTH.validate_python(verdict) for verdict in verdicts]
    except ValidationError:
        raise ValueError(f"metExpectation must be true or false in {textwrap.shorten(answer, 200)!r}") from None


def open_judge_model(spec: str, prices: Mapping[str, tuple[float, float]] | None = None) -> JudgeModel | None:
    """The model that a judge's name stands for: ``endpoint:MODEL`` (also ``endpoint:MODEL@URL``); None for ``pass`` and
    ``fail``, which need none. ``prices``: US dollars for a million prompt and completion tokens, by model.

    ConfigError for any other name.
    """
    if spec in ("pass", "fail"):
        return None
    if not spec.startswith("endpoint:"):
        raise ConfigError(f"judge: must be pass, fail or endpoint:MODEL, not {spec!r}")
    from muarl.endpoints.client import Endpoint
    from muarl.endpoints.config import Price, parse_endpoint

    config = parse_endpoint(spec)
    if prices is not None and config.model in prices:
        config = replace(config, price=Price(*prices[config.model]))
    return JudgeModel(Endpoint(config))


def make_judge(spec: str, prices: Mapping[str, tuple[float, float]] | None = None) -> Judge:
    """A judge of assertions from its name; see ``open_judge_model``."""
    model = open_judge_model(spec, prices)
    return FixedJudge(spec == "pass") if model is None else ModelJudge(model)
