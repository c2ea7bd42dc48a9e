"""How hard a user model is for an agent, and how true to its scenarios: ``muarl train-user`` before and after.

The agent plays held-out tasks with the model as it is sampled in training, and as other commands play it (each message
looked at before it is said, ``user.tries``). The scripted expert, which makes no mistakes, plays them too: where it
fails more often than before, the user has learned to get past the checks of its scenario, not to be hard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import hypot
from typing import Any

from muarl.accounts.intervals import wilson
from muarl.accounts.metrics import is_success
from muarl.backends.users import goal_checks, sampled_users
from muarl.config.section import UserConfig
from muarl.config.sections import EvalConfig
from muarl.environments.places import Agents, Places
from muarl.environments.play import local_executor
from muarl.learning.checkpoints import Policy
from muarl.pages.table import table, to_markdown
from muarl.recipes.evaluation.measuring import evaluate
from muarl.recipes.training.user_side import CUT, agent_fails, is_void, judge_episodes
from muarl.runs.context import RunContext
from muarl.types.episode import Episode, StopReason
from muarl.users.constraints import VOID
from muarl.users.sampled import MakeCheck

AGENT, CHECKED, EXPERT = "agent", "agent_checked", "expert"
"""Who talks with the user model: the agent as in training, the agent with a user whose messages are checked before
they are said, the scripted expert as in training."""
ROWS = {AGENT: "the agent", CHECKED: "the agent, messages checked", EXPERT: "the scripted expert"}
SHARES = {
    "void": "void",
    "agent_fails": "agent ends wrong",
    "success": "success",
    "violating": "with a violation",
    "cut": "cut by length",
}
"""Shares of conversations and their titles: ``void`` of all, the others of those that are not void."""


def measure_hardness(
    context: RunContext,
    ev: EvalConfig,
    user: UserConfig,
    places: Places,
    agent: Agents,
    policy: Policy,
    checks: Mapping[str, MakeCheck],
    *,
    when: str,
) -> dict[str, float]:
    """Counts of conversations on the held-out tasks, one of each, flat: ``agent/void`` and so on (``counts``).

    ``policy``: the user model. ``checks``: of goals, by the name of the place. ``when``: names the files of episodes,
    ``held-out-WHEN`` and so on. MuarlError if not one conversation of an agent could be scored.
    """
    compute = context.backend.compute
    tasks = places.eval_tasks(ev.split, ev.tasks, seed=ev.seed)
    plain = sampled_users(
        user.model_copy(update={"tries": 1}), policy, compute=compute, max_context=compute.model.max_context
    )
    cast: dict[str, tuple[Agents, Any]] = {AGENT: (agent, plain)}
    if user.tries > 1:
        checked = sampled_users(user, policy, compute=compute, max_context=compute.model.max_context)
        cast[CHECKED] = agent, places.by_place(lambda place: checked.checked(goal_checks(place)))
    if all(place.expert is not None for place in places):
        cast[EXPERT] = places.experts(), plain
    context.folder.write_tasks(tasks)
    counted: dict[str, float] = {}
    for name, (who, users) in cast.items():
        executor = local_executor(places, who, users, compute.rollout.concurrency)
        label = f"held-out tasks {when}, {ROWS[name]}"
        played = evaluate(ev, places, tasks, executor, context.progress, label=label, trials=1)
        violated = judge_episodes(places, tasks, played, checks, user.guard.rules)
        context.folder.write_episodes(f"held-out-{when}-{name.replace('_', '-')}", played)
        counted |= {f"{name}/{key}": float(count) for key, count in counts(played, violated).items()}
    return counted


def counts(episodes: Sequence[Episode], violated: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """Judged episodes counted. ``violated``: by episode, the audit's rules that the agent violated.

    ``episodes`` (scored), ``excluded`` (infrastructure), ``void``, ``valid`` (the others); of the valid ones
    ``agent_fails``, ``success``, ``violating``, ``cut``, and ``violated/RULE``; of all ``breached/RULE`` (rules by
    which users left their scenario), ``user_messages`` and ``words``.
    """
    scored = [e for e in episodes if e.stop is not StopReason.INFRASTRUCTURE]
    valid = [e for e in scored if not is_void(e)]
    rules = Counter(rule for e in valid for rule in sorted(violated.get(e.id, ())))
    breached = Counter(rule for e in scored for rule in sorted({b["rule"] for b in e.tags.get(VOID, ())}))
    said = [m.content or "" for e in scored for m in e.messages if m.role == "user"]
    return {
        "episodes": len(scored),
        "excluded": len(episodes) - len(scored),
        "void": len(scored) - len(valid),
        "valid": len(valid),
        "agent_fails": sum(map(agent_fails, valid)),
        "success": sum(is_success(e.reward) for e in valid),
        "violating": sum(bool(violated.get(e.id)) for e in valid),
        "cut": sum(e.stop in CUT for e in valid),
        "user_messages": len(said),
        "words": sum(len(text.split()) for text in said),
        **{f"violated/{rule}": n for rule, n in sorted(rules.items())},
        **{f"breached/{rule}": n for rule, n in sorted(breached.items())},
    }


def shares(flat: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Counts of ``measure_hardness`` by who talked with the user, with ``SHARES`` as {"value", "interval", "n"} (95%,
    Wilson's), ``user_messages`` a conversation, ``words`` a message, and the rules' counts."""
    out: dict[str, dict[str, Any]] = {}
    for who in ROWS:
        own = {key.removeprefix(f"{who}/"): n for key, n in flat.items() if key.startswith(f"{who}/")}
        if not own:
            continue
        out[who] = {"episodes": int(own["episodes"]), "excluded": int(own["excluded"])}
        for key in SHARES:
            n = int(own["episodes"] if key == "void" else own["valid"])
            out[who][key] = {"value": own[key] / max(1, n), "interval": list(wilson(own[key], n)), "n": n}
        out[who]["user_messages"] = own["user_messages"] / max(1.0, own["episodes"])
        out[who]["words"] = own["words"] / max(1.0, own["user_messages"])
        for kind in ("violated", "breached"):
            out[who][kind] = {k.partition("/")[2]: int(n) for k, n in own.items() if k.startswith(f"{kind}/")}
    return out


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[float, tuple[float, float]]:
    """After less before of two shares, with Newcombe's 95% interval. It takes the two for independent, which is
    cautious where both are of the same tasks."""
    was, now = before["value"], after["value"]
    (low, high), (below, above) = before["interval"], after["interval"]
    return now - was, (now - was - hypot(now - below, high - was), now - was + hypot(above - now, was - low))


def report(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> str:
    """Both measurements as a Markdown table, shares in percent with their intervals."""
    rows = []
    for who, title in ROWS.items():
        for key, what in SHARES.items() if who in before and who in after else ():
            change, (low, high) = difference(before[who][key], after[who][key])
            both = before[who][key]["n"] and after[who][key]["n"]
            moved = f"{_points(change)} ({_points(low)} to {_points(high)})" if both else "–"
            rows.append((title, what, _share(before[who][key]), _share(after[who][key]), moved))
    head = ("user with", "share of conversations", "before", "after", "change in points")
    return to_markdown(table(head, rows, words=2, title="The user model on held-out tasks"))


def verdict(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What came of the training, in sentences: what the intervals allow to say, and no more."""
    lines = [
        _change_in_words("The user is void", before[AGENT]["void"], after[AGENT]["void"]),
        _change_in_words("The agent ends wrong", before[AGENT]["agent_fails"], after[AGENT]["agent_fails"]),
    ]
    if EXPERT in before and EXPERT in after:
        was, now = before[EXPERT]["success"], after[EXPERT]["success"]
        lines.append(_change_in_words("The scripted expert succeeds", was, now))
        if not now["n"] or difference(was, now)[1][1] < 0:
            lines.append(
                "The expert makes no mistakes, so some of the agent's new failures are the user's doing: it gets past "
                "the checks of its scenario. Look at held-out-after-expert with `muarl view`."
            )
    return lines


def _change_in_words(what: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if not was["n"] or not now["n"]:
        return f"{what}: cannot be told, since there was no such conversation {'after' if was['n'] else 'before'}."
    change, (low, high) = difference(was, now)
    sentence = f"{what} in {_share(now)} of {now['n']} conversations, before {_share(was)} of {was['n']}"
    if low > 0 or high < 0:
        return f"{sentence}: {_points(change)} points ({_points(low)} to {_points(high)})."
    return f"{sentence}: no difference is shown ({_points(low)} to {_points(high)} points)."


def _share(share: Mapping[str, Any]) -> str:
    if not share["n"]:
        return "none of 0"
    low, high = share["interval"]
    return f"{100 * share['value']:.1f}% ({100 * low:.1f} to {100 * high:.1f})"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"
