"""The guard of ``muarl serve --guard`` against recorded conversations, call by call (docs/serving.md).

    python benches/guard.py [--tasks 100] [--domain retail-generated ...]
    python benches/guard.py --run runs/mine --domain retail-generated   # the conversations of a muarl eval

Three scripted agents serve generated tasks and, where there are such, red-team users: one without errors, one that
skips confirmations, and one that does much wrong. The audit of the finished conversation knows the task and its
database; the guard sees, before each call, the messages so far. Prints by domain: how many of the audit's findings
about a call (policy and safety, notes aside) the guard would have prevented; how many of the right agent's calls it
would have held back; and its milliseconds a reply.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

from muarl.audit.episodes import audit_episode
from muarl.audit.guard import CallGuard
from muarl.domains.scripted_expert import SLOPPY, ErrorProfile
from muarl.environments.registry import find
from muarl.observe.rundir import RunDirectory
from muarl.types.episode import Episode
from muarl.users.redteam.tasks import kinds_of, red_team_tasks
from muarl_tools.checks.expert_plays import ScriptedPlays

DOMAINS = ("retail-generated", "airline-generated", "bank-generated", "hotel-generated")
LAYERS = ("policy", "safety")
AGENTS = {"right": ErrorProfile(), "never asks": ErrorProfile(skip_confirmation=1.0), "sloppy": SLOPPY}


Conversation = tuple[str, Episode, set[tuple[int, str]]]
"""Who served, the episode, and the audit's findings in its calls: (message, rule)."""


def conversations(name: str, count: int) -> tuple[CallGuard, list[Conversation]]:
    """A domain's guard, and conversations of scripted agents."""
    environment = find(name)
    domain = environment.make_domain("tiny")
    rules = environment.audit_rules(domain)
    tasks = list(environment.make_tasks("test", count, seed=11, size="tiny"))
    source = environment.red_team_source()
    tasks += red_team_tasks(source, kinds_of(source, ("all",)), max(1, count // 10), split="test", size="tiny", seed=11)
    plays, out = ScriptedPlays(environment, domain), []
    for agent, errors in AGENTS.items():
        for task, episode in plays.play(plays.expert(errors), tasks):
            findings = audit_episode(episode, task, domain=domain, rules=rules)
            about_calls = {
                (f.message, f.rule)
                for f in findings
                if f.layer in LAYERS and f.severity != "note" and f.call is not None
            }
            out.append((agent, episode, about_calls))
    return CallGuard.of(rules, domain), out


def recorded(folder: Path, name: str) -> tuple[CallGuard, list[Conversation]]:
    """The same of an evaluation's own conversations, with the findings that it has written."""
    environment = find(name)
    domain = environment.make_domain("tiny")
    findings: dict[str, set[tuple[int, str]]] = {}
    for row in map(json.loads, (folder / "findings.jsonl").read_text().splitlines()):
        if row["layer"] in LAYERS and row["severity"] != "note" and row["call"] is not None:
            findings.setdefault(row["episode"], set()).add((row["message"], row["rule"]))
    episodes = RunDirectory.at(folder).read_episodes("eval")
    played = [("recorded", episode, findings.get(episode.id, set())) for episode in episodes]
    return CallGuard.of(environment.audit_rules(domain), domain), played


def succeeded(episode: Episode, index: int) -> bool:
    """Whether the call in a message was answered without an error."""
    answer = episode.messages[index + 1 : index + 2]
    return bool(answer) and answer[0].role == "tool" and not answer[0].error


def measure(name: str, guard: CallGuard, played: Sequence[Conversation]) -> None:
    """Print what the guard would have done."""
    found, prevented, right, held, seconds = Counter[str](), Counter[str](), 0, Counter[str](), list[float]()
    for agent, episode, findings in played:
        messages = episode.messages
        for index, message in enumerate(messages):
            if message.role != "assistant" or not message.tool_calls:
                continue
            begun = time.perf_counter()
            guarded = guard.findings(messages[:index], message)
            seconds.append(time.perf_counter() - begun)
            here = [rule for at, rule in findings if at == index]
            found.update(here)
            prevented.update(here if guarded else ())
            if agent in ("right", "recorded") and not here and succeeded(episode, index):
                right += 1
                held.update({f.rule for f in guarded})
    share = sum(prevented.values()) / max(1, sum(found.values()))
    ms = [1000 * s for s in seconds]
    print(
        f"{name}: {sum(prevented.values())} of {sum(found.values())} findings prevented ({share:.1%}); "
        f"{sum(held.values())} of {right} right calls held back; "
        f"{median(ms):.2f} ms a reply, p99 {quantiles(ms, n=100)[98]:.2f}"
    )
    for rule, count in sorted(found.items()):
        print(f"    {rule}: {prevented[rule]} of {count}")
    for rule, count in sorted(held.items()):
        print(f"    held back though right: {rule} {count}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100, help="generated tasks of each domain")
    parser.add_argument("--domain", action="append", help="only these domains")
    parser.add_argument("--run", type=Path, help="the run of a muarl eval in that domain, in place of scripted agents")
    args = parser.parse_args()
    for name in args.domain or DOMAINS:
        measure(name, *(conversations(name, args.tasks) if args.run is None else recorded(args.run, name)))


if __name__ == "__main__":
    main()
