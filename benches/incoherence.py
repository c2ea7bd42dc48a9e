"""The rule ``incoherent`` of ``muarl user check``: counts its table of pairs of words, and measures it.

    python benches/incoherence.py count                       # writes src/muarl/language/word_pairs.txt
    python benches/incoherence.py measure [CONVERSATIONS.json ...]

``count`` reads the documentation, the policies, and conversations of rule-based users with the scripted experts of all
generated domains (split train). ``measure`` plays other tasks (split test) of other seeds, with users of every level of
traits: how many messages the rule finds fault with, and how many when their words are others. A file is a JSON list of
conversations, each a list of [role, text]: messages of people, or of language models, for false alarms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from muarl.accounts.intervals import wilson
from muarl.agents.probes import InquisitiveAgent
from muarl.backends.users import make_users
from muarl.basics.errors import MuarlError
from muarl.config.load import load_config
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find, names
from muarl.language.coherence import COMMON_WORDS, EDGE, classes, tokens
from muarl.types.chat import Message
from muarl.user_errors.conduct import find_conduct

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/muarl/language/word_pairs.txt"
WORDS = 500
"""Words that are classes of their own."""
LEAST = 2
"""Pairs that were counted more seldom are left out."""
TRAITS = ("easy", "typical", "hard")
Talk = tuple[Task, tuple[Message, ...]]


def talks(
    split: str, tasks: int, seed: int, traits: Sequence[str], foreign: bool = False
) -> Iterator[tuple[str, Talk]]:
    """Conversations of rule-based users in all generated domains that can be played here, with (domain and traits)."""
    for name in (n for n in names() if n.endswith("-generated")):
        place = find(name).place()
        places = Places([place])
        drawn = list(find(name).make_tasks(split, tasks, seed=seed))
        expert = place.expert_agent()
        plain = name == "bfcl-generated"  # its users follow a script
        levels = [f"eval_user.traits={level}" for level in traits]
        levels += ["eval_user.traits.foreign_language=0.6"] if foreign else []
        for level in [""] if plain else levels:
            users = make_users(
                load_config("quickstart", [f"domain.name={name}", *filter(None, [level])]).eval_user, places
            )
            for agent in (expert, InquisitiveAgent(expert)):
                played = asyncio.run(play_in(places, agent, users, drawn, 1, seed=seed)).episodes
                for task, episode in zip(drawn, played, strict=True):
                    if episode.error:
                        raise MuarlError(f"{name}: {episode.error}")
                    yield f"{name} {level.rpartition('.')[2]}", (task, episode.messages)


def prose() -> Iterator[str]:
    """Paragraphs of the documentation and of the policies."""
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("src/**/policy*.md")]
    for page in sorted(p for p in pages if "_zh" not in p.name):
        text = re.sub(r"```.*?```", " ", page.read_text("utf-8"), flags=re.DOTALL)
        text = re.sub(r"^(    |\|).*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "it", text))
        for paragraph in re.split(r"\n\s*\n|\n-", re.sub(r"[#*]", "", text)):
            yield " ".join(paragraph.split())


def count() -> None:
    """Write the table."""
    said: dict[str, None] = {}
    for _, (task, messages) in talks("train", 6, 5, TRAITS):
        said.update(dict.fromkeys(line.strip() for line in task.scenario.splitlines()))
        said.update((m.content, None) for m in messages if m.role in ("user", "assistant") and m.content)
    read = list(prose())
    spoken = Counter(w.lower() for text in said for w in tokens(text))
    every = spoken + Counter(w.lower() for text in read for w in tokens(text))
    fit = [w for w, _ in every.most_common() if re.fullmatch(r"[a-z]+(?:'[a-z]+)?", w)]
    known = frozenset([w for w in fit if w in COMMON_WORDS or spoken[w] > 2][:WORDS])
    ones: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for text in (*read, *said):
        if written := tokens(text):
            kinds = [EDGE, *classes(written, known), EDGE]
            pairs.update(p for p in pairwise(kinds) if p != (EDGE, EDGE))
            ones.update(kinds[:-1])
    lines = [
        "# Pairs of words, counted by benches/incoherence.py: class, how often, and what stood behind it how often.",
        *(
            " ".join([one, str(n), *(f"{b}:{k}" for (a, b), k in sorted(pairs.items()) if a == one and k >= LEAST)])
            for one, n in sorted(ones.items())
        ),
    ]
    TABLE.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{sum(ones.values()):,} pairs, {len(known)} words; {TABLE} has {TABLE.stat().st_size:,} bytes")


def found_in(task: Task, messages: Sequence[Message]) -> list[bool]:
    """Of each of the user's messages whether the rule finds fault with it."""
    hits = {e.turn for e in find_conduct(task, messages) if e.rule == "incoherent"}
    return [turn in hits for turn, m in enumerate(messages) if m.role == "user" and not m.tool_calls]


def told(about: str, conversations: Iterable[Talk]) -> None:
    """Print one line of figures."""
    found = [found_in(task, messages) for task, messages in conversations]
    flags = [flag for one in found for flag in one]
    low, high = wilson(sum(flags), len(flags))
    print(
        f"{about}: {sum(flags):,} of {len(flags):,} messages ({sum(flags) / len(flags):.2%}, {low:.2%} to {high:.2%}), "
        f"{sum(map(any, found)):,} of {len(found):,} conversations",
        flush=True,
    )


def otherwise(talk: Talk, words: Callable[[str], str]) -> Talk:
    """A conversation in which the user says something else."""
    task, messages = talk
    other = [replace(m, content=words(m.content)) if m.role == "user" and m.content else m for m in messages]
    return task, tuple(other)


def spoiled(every: Sequence[Talk], seed: int = 0) -> None:
    """Say what is found where the users' words are random ones, or in another order."""
    rng = random.Random(seed)
    dictionary = sorted({w.lower() for text in prose() for w in re.findall(r"[A-Za-z]{2,}", text)})

    def shuffled(text: str) -> str:
        words = text.split()
        rng.shuffle(words)
        return " ".join(words)

    def drawn(words: Sequence[str], count: int) -> Callable[[str], str]:
        return lambda _: " ".join(rng.choice(words) for _ in range(count))

    for count in (5, 10, 20):
        told(f"{count} random words of the dictionary", (otherwise(t, drawn(dictionary, count)) for t in every))
        own = (otherwise(t, drawn(words_around(t), count)) for t in every)
        told(f"{count} random words of the conversation", own)
    told("their own words, shuffled", (otherwise(t, shuffled) for t in every))


def words_around(talk: Talk) -> list[str]:
    """Words of a scenario and of what the agent said."""
    task, messages = talk
    texts = [task.scenario, *(m.content or "" for m in messages if m.role == "assistant")]
    return sorted(set(re.findall(r"[A-Za-z]{2,}", " ".join(texts))))


def measure(files: Sequence[Path]) -> None:
    """Print false alarms and recall."""
    plain: list[Talk] = []
    by_traits: dict[str, list[Talk]] = {}
    for about, talk in talks("test", 4, 9, TRAITS, foreign=True):
        by_traits.setdefault(about.partition(" ")[2] or "script", []).append(talk)
        if about.endswith("easy"):
            plain.append(talk)
    for traits, every in by_traits.items():
        told(f"rule-based users, {traits}", every)
    spoiled(plain)
    nobody = Task(id="file", domain="file", scenario="", actions=())
    for file in files:
        rows = json.loads(file.read_text("utf-8"))
        told(file.name, ((nobody, tuple(Message(role, text) for role, text in row)) for row in rows))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["count", "measure"])
    parser.add_argument("files", nargs="*", type=Path)
    asked = parser.parse_args()
    if asked.what == "count":
        count()
    else:
        measure(asked.files)


if __name__ == "__main__":
    main()
