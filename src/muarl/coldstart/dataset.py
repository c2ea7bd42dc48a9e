"""The dataset that a synthesis leaves: conversations in two forms, what was dropped and why, and a card.

episodes.jsonl   our episodes, with what the agent was told; ``sft.demonstrations_file`` reads them
messages.jsonl   {"messages", "tools", ...} in the OpenAI form, as other trainers read them
dropped.jsonl    every dropped conversation, its filter and the reason
card.json, README.md   counts by scenario and filter, sizes, cost, one conversation of each scenario
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.files import write_text
from muarl.types.chat import Message, to_openai, visible_to_agent
from muarl.types.episode import Episode, Usage, read_episodes, write_episodes

SCENARIO = "scenario"
"""The tag that names the scenario that an episode is of."""


@dataclass(frozen=True)
class DroppedConversation:
    """A conversation that was not kept: by which filter, and what it found."""

    episode: Episode
    filter: str
    detail: str


@dataclass(frozen=True)
class Dataset:
    """Kept and dropped conversations, in the order in which they were drawn."""

    kept: Sequence[Episode]
    dropped: Sequence[DroppedConversation]
    wanted: Mapping[str, int]
    """Conversations that were asked for, per scenario."""
    facts: Mapping[str, Any] = field(default_factory=dict)


def write(folder: Path, dataset: Dataset, *, spent: Usage, seconds: float) -> dict[str, Any]:
    """Write all files of the dataset, each whole or not at all; returns the card's figures."""
    folder.mkdir(parents=True, exist_ok=True)
    write_episodes(folder / "episodes.jsonl", dataset.kept, context=True)
    write_text(folder / "messages.jsonl", _lines(message_row(e) for e in dataset.kept))
    write_text(folder / "dropped.jsonl", _lines(_dropped_row(d) for d in dataset.dropped))
    numbers = figures(dataset, spent=spent, seconds=seconds)
    write_text(folder / "card.json", json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")
    write_text(folder / "README.md", card(dataset, numbers))
    return numbers


def read(folder: Path) -> list[Episode]:
    """The kept conversations of a dataset. DataError names what is wrong."""
    try:
        return list(read_episodes(folder / "episodes.jsonl"))
    except (OSError, ValueError) as problem:
        raise DataError(f"{folder} is no dataset of conversations: {problem}") from None


def message_row(episode: Episode) -> dict[str, Any]:
    """One conversation as trainers read it: system prompt, what the agent saw and said, and its tools. What was said
    before the user spoke, and after the agent's last message, is left out: there is nothing to learn from it.

    ValueError if the episode does not hold what the agent was told.
    """
    if episode.system is None or episode.tools is None:
        raise ValueError(f"episode {episode.id} does not say what the agent was told")
    seen = visible_to_agent(episode.messages)
    first = next((i for i, m in enumerate(seen) if m.role != "assistant"), len(seen))  # before that stands a greeting
    last = max((i for i, m in enumerate(seen) if m.role == "assistant"), default=-1)
    seen = seen[first : last + 1]
    return {
        "id": episode.id,
        "scenario": episode.tags.get(SCENARIO, episode.domain),
        "messages": [{"role": "system", "content": episode.system}, *map(to_openai, seen)],
        "tools": [t.to_openai() for t in episode.tools],
    }


def _dropped_row(conversation: DroppedConversation) -> dict[str, Any]:
    return {
        "id": conversation.episode.id,
        "scenario": conversation.episode.tags.get(SCENARIO, conversation.episode.domain),
        "filter": conversation.filter,
        "detail": conversation.detail,
        "episode": conversation.episode.to_json(),
    }


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def figures(dataset: Dataset, *, spent: Usage, seconds: float) -> dict[str, Any]:
    """What the card says, as numbers."""
    scenarios = {}
    for name, count in dataset.wanted.items():
        episodes = [e for e in dataset.kept if e.tags.get(SCENARIO) == name]
        lost = [d for d in dataset.dropped if d.episode.tags.get(SCENARIO) == name]
        scenarios[name] = {
            "wanted": count,
            "kept": len(episodes),
            "dropped": dict(sorted(Counter(d.filter for d in lost).items())),
            "intents": dict(sorted(Counter(str(e.tags.get("intent", "")) for e in episodes).items())),
            **sizes(episodes),
        }
    return {
        **dataset.facts,
        "kept": len(dataset.kept),
        "dropped": len(dataset.dropped),
        "dropped_by": dict(sorted(Counter(d.filter for d in dataset.dropped).items())),
        "scenarios": scenarios,
        **sizes(dataset.kept),
        "usage": spent.to_json(),
        "seconds": seconds,
    }


def sizes(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Messages, calls and words of conversations; means per conversation, and words in all."""
    if not episodes:
        return {"agent_messages": 0.0, "tool_calls": 0.0, "words": 0, "agent_words": 0}
    spoken = [m for e in episodes for m in e.messages if m.role == "assistant"]
    calls = sum(len(m.tool_calls) for m in spoken)
    return {
        "agent_messages": len(spoken) / len(episodes),
        "tool_calls": calls / len(episodes),
        "words": sum(_words(m) for e in episodes for m in e.messages),
        "agent_words": sum(map(_words, spoken)),
    }


def _words(message: Message) -> int:
    called = sum(len(json.dumps(dict(c.arguments)).split()) + 1 for c in message.tool_calls)
    return len((message.content or "").split()) + called


def card(dataset: Dataset, numbers: Mapping[str, Any]) -> str:
    """README.md: what is in the dataset, how it was made, what was dropped and why, one example per scenario."""
    return "\n".join(_card(dataset, numbers))


def _card(dataset: Dataset, numbers: Mapping[str, Any]) -> Iterator[str]:
    yield "# Synthesised conversations\n"
    yield f"{numbers['kept']} conversations between a customer and an agent with tools, made by `muarl coldstart`.\n"
    facts = [(name, str(value)) for name, value in dataset.facts.items()]
    facts += [
        ("kept", str(numbers["kept"])),
        ("dropped", str(numbers["dropped"])),
        ("words", f"{numbers['words']:,}, of which the agent's {numbers['agent_words']:,}"),
        *_models(numbers["usage"]),
        ("seconds", f"{numbers['seconds']:.0f}"),
    ]
    yield _table(("", ""), facts)
    yield "## Scenarios\n"
    rows = []
    for name, part in numbers["scenarios"].items():
        row = [name, f"{part['kept']} of {part['wanted']}", str(sum(part["dropped"].values()))]
        row += [f"{part['agent_messages']:.1f}", f"{part['tool_calls']:.1f}", f"{part['words']:,}"]
        rows.append((*row, str(len(part["intents"]))))
    head = ("scenario", "kept", "dropped", "agent messages", "tool calls", "words", "intents")
    yield _table(head, rows)
    if numbers["dropped_by"]:
        yield "## Dropped\n"
        yield _table(("filter", "conversations", "such as"), list(_reasons(dataset)))
    yield "## Files\n"
    yield "- `episodes.jsonl`: muarl's episodes, with what the agent was told (`sft.demonstrations_file`)"
    yield '- `messages.jsonl`: `{"messages", "tools"}` in the OpenAI form'
    yield "- `dropped.jsonl`: every dropped conversation with its filter and reason"
    yield "- `card.json`: the figures of this page\n"
    yield "To learn from it: `muarl sft sft.demonstrations_file=FOLDER/episodes.jsonl --checkpoint MODEL`\n"
    yield "## One conversation of each scenario\n"
    yield "Of middling length; long messages are cut.\n"
    for name in numbers["scenarios"]:
        episodes = sorted((e for e in dataset.kept if e.tags.get(SCENARIO) == name), key=lambda e: len(e.turns))
        if episodes:
            yield from _example(name, episodes[len(episodes) // 2])


def _models(usage: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was asked of models; a price of nothing is one that nobody named."""
    if not usage["requests"]:
        yield "models asked", "none"
        return
    tokens = f"{usage['prompt_tokens']:,} tokens in, {usage['completion_tokens']:,} out"
    yield "models used", f"{usage['requests']:,} requests, {tokens}"
    yield "cost", f"${usage['cost']:.2f}" if usage["cost"] else "not known (no prices named)"


def _reasons(dataset: Dataset) -> Iterator[tuple[str, str, str]]:
    for name, count in Counter(d.filter for d in dataset.dropped).most_common():
        yield name, str(count), _cut(next(d.detail for d in dataset.dropped if d.filter == name), 120)


def _example(name: str, episode: Episode) -> Iterator[str]:
    """A conversation as text, in a fence that nothing within closes."""
    yield f"### {name}\n"
    yield "````text"
    for message in visible_to_agent(episode.messages):
        if message.content:
            yield f"{message.role}: {_cut(message.content.strip().replace('````', '` ` ` `'), 400)}"
        for call in message.tool_calls:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False).replace("````", "` ` ` `")
            yield f"{message.role} calls {call.name}({_cut(arguments, 300)})"
    yield "````\n"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest].rstrip()} ..."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in row) + " |\n" for row in lines)
