"""What ACEBench tells the agent and the simulated user, and when it ends a conversation.

The texts, here and in ``prompts/``, are upstream's, word for word (ACEBench/ACEBench, MIT licence): scores are only
comparable with them.

A multi-turn agent is shown the whole conversation anew at each turn, as one text. A multi-step agent works alone: of
the conversation it is shown the task and the results, and not what it wrote itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from muarl.domains.tasks import Task
from muarl.types.chat import Message
from muarl_worlds.acebench.execute import NO_QUESTIONS, Category
from muarl_worlds.acebench.scenario import Language

STOP = "finish conversation"
"""What ends a conversation where it stands in a message of either side. Upstream lets it end one as a tool's whole
result, too, which no tool gives."""

MESSAGES = 40
"""How many messages there are at most after the user's first: the agent's, the user's and the executor's."""

FIRST_STOP = 2
"""The first of these messages that may end the conversation, counted from 0."""

OPENING: Mapping[Language, str] = {
    "en": "Is there anything you need help with today?",
    "zh": "今天有什么需要帮助的吗？",
}
"""What the simulated user is asked first. The agent does not see it."""

AGENT_SETTINGS: Mapping[str, float] = {"temperature": 0.001, "top_p": 1, "max_tokens": 1000}
USER_SETTINGS: Mapping[str, float] = {"temperature": 0.001, "top_p": 1, "max_tokens": 1000}
"""Upstream's generation settings; its user model is gpt-4o."""

_REQUESTS: Mapping[tuple[Category, Language], str] = {
    (
        "multi_turn",
        "en",
    ): "Below is the list of APIs you can use:\n {functions}\n\nConversation history 1..t:\n{history}",
    ("multi_turn", "zh"): "下面是你可使用的api列表:\n {functions}\n\n对话历史1..t:\n{history}",
    ("multi_step", "en"): (
        "Below is the list of APIs you can call (in JSON format): {functions}. Conversation history: {history}\n"
    ),
    ("multi_step", "zh"): "以下是你可以调用的API列表（JSON格式）：{functions}。对话历史：{history}\n",
}


@cache
def _text(name: str) -> str:
    return (Path(__file__).parent / "prompts" / f"{name}.txt").read_text(encoding="utf-8")


def agent_system(language: Language, category: Category, policy: str = "") -> str:
    """The agent's system prompt; in multi-turn tasks the policy follows the instructions, in multi-step ones there is
    none."""
    if category == "multi_step":
        return _text(f"agent_step_{language}")
    return _text(f"agent_turn_{language}") + policy


def agent_request(language: Language, category: Category, functions: Sequence[Mapping[str, Any]], history: str) -> str:
    """The agent's only user message: the tools' documents in Python's own form, and the conversation as one text."""
    return _REQUESTS[category, language].format(functions=list(functions), history=history)


def user_system(task: Task) -> str:
    """The simulated user's system prompt in a multi-turn task, its instruction filled in."""
    data = task.initial_data or {}
    kind = "phone" if "BaseApi" in data["classes"] else "travel"
    return _text(f"user_{kind}_{task.tags['language']}").format(instruction=task.scenario)


def user_messages(task: Task, conversation: Sequence[Message]) -> list[dict[str, str]]:
    """What the model that plays the user is sent: the conversation as the user saw it, with upstream's roles.

    What the agent said has role "user", and what the user said itself has role "system", as upstream has it.
    ``conversation`` may begin with the opening line, or not.
    """
    lines = list(conversation)
    if not lines or lines[0].role != "assistant":
        lines.insert(0, Message("assistant", OPENING[task.tags["language"]]))
    out = [{"role": "system", "content": user_system(task)}]
    for message in lines:
        text = message.content or ""
        if message.role == "assistant":
            out.append({"role": "user", "content": without_prefix(text)})
        else:
            out.append({"role": "system", "content": text})
    return out


def without_prefix(text: str) -> str:
    """An agent's words as the user is shown them: without a "user:" or "agent:" that they begin with."""
    for prefix in ("user:", "agent:"):
        if text.startswith(prefix):
            return text[len(prefix) :]
    return text


def scripted_line(task: Task, spoken: int) -> str:
    """What the user of a multi-step task says: the task first, and then always that there will be no answers.

    ``spoken``: how many lines there were before.
    """
    return task.scenario if spoken == 0 else NO_QUESTIONS


def stops(index: int, message: str) -> bool:
    """Whether a message of agent or user ends the conversation. ``index``: how many of the agent's, the user's and the
    executor's messages came before it, without the user's first."""
    return index >= FIRST_STOP and STOP in message
