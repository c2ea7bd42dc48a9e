"""From episodes to figures: pure functions, one flat dict of name to number.

Names are stable and are what metrics.jsonl, TensorBoard and the report use. Means are over scored episodes;
infrastructure failures are counted (``excluded``) and otherwise left out. A figure that does not apply (no tool calls,
no audit) is left out rather than reported as 0.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from muarl.types.episode import BRANCH, GUARD, Episode, StopReason, Turn

GENERAL_TOOLS = frozenset({"calculate", "think", "transfer_to_human_agents"})
"""Tools that every domain has; the paper watches their share fall as an agent learns to act. The tool that hands over
may have another name: see ``handed_over_by``."""

SUCCESS_TOLERANCE = 1e-6

SUCCESS_WITHOUT_VIOLATION = "success_without_violation"
"""The figure that stands beside success: see ``without_violation``."""

CLEAN = "success without any violation"
"""What it is called in tables and sentences."""

NOT_CHECKED = "not checked"
"""What stands where its share, or another of the audit's, would, had there been rules to audit by."""

VIOLATIONS = "violations"
"""What an audited episode's verdict has in ``audit``: how many violations the audit has found in other layers than the
task's outcome (policy, communication, safety, recovery; notes do not count). Absent where neither policy nor safety
could be checked (``audit.summary.violations``)."""

LOOP = 4
"""Equal calls (name and arguments) of an episode from which on it counts as one that goes round in circles."""

NOISE_TAG = "noise"
"""The tag of an episode that was played for ``eval.noise`` (recipes/evaluation/noise.py): {"user_seed", "repeat"}."""

DOMAIN = "domain"
"""The tag of episodes of a run with several domains: which one it is of. Figures of such a run are given by domain,
too; those of one domain are called ``domain/NAME/FIGURE``."""


def is_success(reward: float) -> bool:
    """A task counts as solved if its reward is 1 within 1e-6 (the benchmarks' own rule)."""
    return abs(reward - 1.0) <= SUCCESS_TOLERANCE


def without_violation(episode: Episode) -> bool | None:
    """Whether a scored episode is a success without any violation: its task was done, and the audit found no violation
    in any other layer. None where it was not audited, or the audit had no rules to go by: that is "not checked", and
    counts neither way."""
    violations = None if episode.verdict is None else episode.verdict.audit.get(VIOLATIONS)
    return None if violations is None else is_success(episode.reward) and not violations


def clean_outcomes(episodes: Iterable[Episode]) -> list[tuple[Episode, bool]] | None:
    """Scored episodes, each with whether it is a success without any violation. One that did not succeed is none,
    audited or not; successes that were not audited are left out. None, which is "not checked", where no episode was
    audited, or none of one of several domains, whose successes would be missing beside the others'."""
    counted = scored(episodes)
    for own in by_domain(counted).values() or [counted]:
        if all(without_violation(e) is None for e in own):
            return None
    outcomes = [(e, without_violation(e) if is_success(e.reward) else False) for e in counted]
    return [(e, clean) for e, clean in outcomes if clean is not None]


def scored(episodes: Iterable[Episode]) -> list[Episode]:
    """The episodes that count: all but infrastructure failures. ValueError if one of them has no verdict."""
    scored_episodes = [e for e in episodes if e.stop is not StopReason.INFRASTRUCTURE]
    for episode in scored_episodes:
        if episode.verdict is None:
            raise ValueError(f"episode {episode.id} has no verdict: score episodes before measuring them")
    return scored_episodes


def exclusion_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """``excluded/WHO``: how many episodes failed for good at the user's, the agent's (its sampler's), the world's (its
    tools') or the judge's side; ``excluded/void``: those in which somebody said nothing that can be used; and
    ``retried``: how many of all took more than one attempt. Only what there was."""
    everything = list(episodes)
    lost = [e for e in everything if e.stop is StopReason.INFRASTRUCTURE]
    sides = Counter(str(e.tags.get("boundary", "unknown")) for e in lost)
    out = {f"excluded/{side}": float(n) for side, n in sorted(sides.items())}
    if void := sum(bool(e.tags.get("void")) for e in lost):
        out["excluded/void"] = float(void)
    if retried := sum(int(e.tags.get("attempts", 1)) > 1 for e in everything):
        out["retried"] = float(retried)
    return out


def guard_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """Of users with a guard: ``user_guard/asked_again``, how often a user was asked again per episode, and
    ``user_guard/spoiled``, the share of episodes that it could not fix. Nothing where there was no guard."""
    guard_tags = [e.tags[GUARD] for e in episodes if isinstance(e.tags.get(GUARD), Mapping)]
    if not guard_tags:
        return {}
    return {
        f"{GUARD}/asked_again": fmean(float(tag.get("asked_again", 0)) for tag in guard_tags),
        f"{GUARD}/spoiled": fmean(float(bool(tag.get("left"))) for tag in guard_tags),
    }


def agent_messages(episode: Episode) -> list[Turn]:
    """What the agent produced: tool calls and texts, without the canned greeting."""
    turns = episode.turns
    first_user = next((i for i, turn in enumerate(turns) if turn.message.role == "user"), 0)
    return [turn for turn in turns[first_user:] if turn.message.role == "assistant"]


def agent_turns(episode: Episode) -> int:
    """How many messages those are."""
    return len(agent_messages(episode))


def agent_tokens(episode: Episode) -> int:
    """Tokens that the agent generated: sampled ids where we have them, else what its endpoint counted."""
    if episode.tokens is None:
        return episode.agent_usage.completion_tokens
    begun = episode.tags.get(BRANCH, {}).get("turn", 0)  # what came before was another episode's
    return episode.tokens.sampled_count - sum(b - a for a, b in (t.span for t in episode.turns[:begun] if t.span))


def group_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """``groups``, and the shares of groups whose rollouts are all right, all wrong or mixed.

    A group is the episodes with one ``group`` name (where it is None, one task id). Only mixed groups teach GRPO.
    """
    groups: dict[str, list[bool]] = defaultdict(list)
    for e in scored(episodes):
        groups[e.group if e.group is not None else e.task_id].append(is_success(e.reward))
    if not groups:
        return {}
    right = sum(all(g) for g in groups.values())
    wrong = sum(not any(g) for g in groups.values())
    n = len(groups)
    return {
        "groups": float(n),
        "groups/all_correct": right / n,
        "groups/all_wrong": wrong / n,
        "groups/mixed": (n - right - wrong) / n,
    }


def stop_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """``stop/REASON``: the share of episodes that ended so, for every reason, 0 included; they sum to 1."""
    scored_episodes = scored(episodes)
    counts = Counter(e.stop for e in scored_episodes)
    reasons = [r for r in StopReason if r is not StopReason.INFRASTRUCTURE]
    return {f"stop/{r.value}": counts[r] / len(scored_episodes) for r in reasons} if scored_episodes else {}


def handed_over_by(stop: StopReason, last_role: str | None, called: Sequence[str]) -> str:
    """The tool, whatever it is called, that has ended an episode by handing the user over; empty if none has, or nobody
    can tell which. ``last_role``: of the last message. ``called``: the tools of the agent's last message."""
    return called[0] if stop is StopReason.TRANSFER and last_role == "tool" and len(called) == 1 else ""


def general_tools(episodes: Iterable[Episode]) -> frozenset[str]:
    """``GENERAL_TOOLS``, and the tools by which some of the episodes have handed users over."""
    tools = set(GENERAL_TOOLS)
    for e in episodes:
        if e.stop is StopReason.TRANSFER and e.messages:
            called = next((m.tool_calls for m in reversed(e.messages) if m.role == "assistant"), ())
            tools.add(handed_over_by(e.stop, e.messages[-1].role, [c.name for c in called]))
    return frozenset(tools - {""})


def tool_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """Tool use, from the messages: ``calls`` per episode, ``calls/TOOL`` per episode, ``calls_general_share`` (of all
    calls, those of ``general_tools``), ``tool_error_rate`` (share of calls answered by an error), ``malformed_calls``
    per episode, ``loops`` (share of episodes in which the same call with the same arguments was made ``LOOP`` times or
    more)."""
    scored_episodes = scored(episodes)
    if not scored_episodes:
        return {}
    names: Counter[str] = Counter()
    malformed = errors = loops = 0
    for e in scored_episodes:
        same: Counter[str] = Counter()
        for m in e.messages:
            if m.role == "assistant":
                malformed += sum(c.invalid is not None for c in m.tool_calls)
                names.update(c.name for c in m.tool_calls if c.invalid is None)
                same.update(
                    f"{c.name} {json.dumps(dict(c.arguments), sort_keys=True, default=str)} {c.raw or ''}"
                    for c in m.tool_calls
                )
            elif m.role == "tool" and m.requestor == "assistant":
                errors += m.error
        loops += max(same.values(), default=0) >= LOOP
    total = sum(names.values()) + malformed
    out = {
        "calls": total / len(scored_episodes),
        "malformed_calls": malformed / len(scored_episodes),
        "loops": loops / len(scored_episodes),
    }
    if total:
        out["calls_general_share"] = sum(names[g] for g in general_tools(scored_episodes)) / total
        out["tool_error_rate"] = errors / total
    out.update({f"calls/{name}": n / len(scored_episodes) for name, n in sorted(names.items())})
    return out


def audit_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """From the verdicts' audits: ``writes_without_consent`` (share of successful writes), ``success_with_consent``
    (share of the episodes that solved the task and wrote nothing without the customer's yes), ``needless_transfers``
    (share of the episodes where it can be told), ``grounded`` (share of the writes and answers that hang on documents
    which go by the document that holds), and means per episode of the other findings, as ``audit/NAME``."""
    findings: dict[str, list[float]] = defaultdict(list)
    agreed: list[bool] = []
    for e in scored(episodes):
        if e.verdict is not None:
            for name, value in e.verdict.audit.items():
                findings[name].append(float(value))
            if (unasked := e.verdict.audit.get("writes_without_consent")) is not None:
                agreed.append(is_success(e.reward) and not unasked)
    out: dict[str, float] = {"success_with_consent": fmean(agreed)} if agreed else {}
    writes = sum(findings.get("writes", ()))
    if writes and "writes_without_consent" in findings:  # some domains' users are not to be asked
        out["writes_without_consent"] = sum(findings["writes_without_consent"]) / writes
    if judged := findings.get("needless_transfers"):
        out["needless_transfers"] = fmean(v > 0 for v in judged)
    if documented := sum(findings.get("documented", ())):
        out["grounded"] = sum(findings["grounded"]) / documented
    skipped = {"writes_without_consent", "needless_transfers", "grounded", "calls", "tool_errors", "malformed_calls"}
    out.update({f"audit/{name}": fmean(values) for name, values in sorted(findings.items()) if name not in skipped})
    return out


def usage_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """Tokens and money of user and endpoint agent: per episode, and ``user/cost`` and ``agent/cost`` in total dollars.

    Failed episodes cost too, so here they count. A side that made no request is left out.
    """
    everything = list(episodes)
    out: dict[str, float] = {}
    for side in ("user", "agent"):
        usages = [e.user_usage if side == "user" else e.agent_usage for e in everything]
        if not sum(u.requests for u in usages):
            continue
        out[f"{side}/prompt_tokens"] = fmean(u.prompt_tokens for u in usages)
        out[f"{side}/completion_tokens"] = fmean(u.completion_tokens for u in usages)
        out[f"{side}/retries"] = float(sum(u.retries for u in usages))
        out[f"{side}/cost"] = sum(u.cost for u in usages)
    return out


def diversity(episodes: Iterable[Episode], n: int = 4) -> float | None:
    """Unique n-grams over all n-grams of what the agents generated, in [0, 1]; None where there are none.

    Over token ids where the episodes have them, never across the border of two turns; else over words and calls.
    """
    seen: set[tuple[object, ...]] = set()
    total = 0
    for e in scored(episodes):
        for piece in _generated(e):
            for i in range(len(piece) - n + 1):
                seen.add(tuple(piece[i : i + n]))
                total += 1
    return len(seen) / total if total else None


def _generated(episode: Episode) -> list[Sequence[object]]:
    if episode.tokens is not None:
        pieces: list[Sequence[object]] = []
        current: list[int] = []
        for token, ours in zip(episode.tokens.ids, episode.tokens.loss_mask, strict=True):
            if ours:
                current.append(token)
            elif current:
                pieces.append(current)
                current = []
        return [*pieces, current]
    out: list[Sequence[object]] = []
    for m in episode.messages:
        if m.role == "assistant":
            calls = " ".join(f"{c.name} {json.dumps(dict(c.arguments), default=str)}" for c in m.tool_calls)
            out.append(f"{m.content or ''} {calls}".split())
    return out


def timing_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """``time/NAME``: mean seconds per episode of every timing that the episodes carry."""
    timings: dict[str, list[float]] = defaultdict(list)
    for e in scored(episodes):
        for name, value in e.timings.items():
            timings[name].append(value)
    return {f"time/{name}": fmean(values) for name, values in sorted(timings.items())}


def by_domain(episodes: Iterable[Episode]) -> dict[str, list[Episode]]:
    """The episodes of a run with several domains by domain, in the order in which they come; empty for other runs."""
    domains: dict[str, list[Episode]] = {}
    for episode in episodes:
        if (name := episode.tags.get(DOMAIN)) is not None:
            domains.setdefault(str(name), []).append(episode)
    return dict(sorted(domains.items()))


def episode_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """Everything for one step's or one evaluation's episodes; of several domains' also each domain's, under
    ``domain/NAME/``."""
    everything = list(episodes)
    out = _episode_metrics(everything)
    for name, own in by_domain(everything).items():
        out |= {f"{DOMAIN}/{name}/{metric}": value for metric, value in _episode_metrics(own).items()}
    return out


def _episode_metrics(episodes: Iterable[Episode]) -> dict[str, float]:
    """Everything above.

    Besides those: ``episodes`` (scored), ``excluded`` (see also ``exclusion_metrics``), ``reward`` and ``success``
    (means), ``turns`` (agent messages),
    ``agent_tokens``, ``agent_tokens_per_turn``, ``truncated`` (share cut by a limit), ``diversity``; and, where they
    were audited, ``success_without_violation`` (of ``clean_outcomes``, a mean as well).
    """
    everything = list(episodes)
    scored_episodes = scored(everything)
    out: dict[str, float] = {
        "episodes": float(len(scored_episodes)),
        "excluded": float(len(everything) - len(scored_episodes)),
    }
    out |= exclusion_metrics(everything) | guard_metrics(everything)
    if not scored_episodes:
        return {**out, **usage_metrics(everything)}
    turns = [agent_turns(e) for e in scored_episodes]
    tokens = [agent_tokens(e) for e in scored_episodes]
    out["reward"] = fmean(e.reward for e in scored_episodes)
    out["success"] = fmean(is_success(e.reward) for e in scored_episodes)
    if checked := clean_outcomes(scored_episodes):
        out[SUCCESS_WITHOUT_VIOLATION] = fmean(clean for _, clean in checked)
    out["turns"] = fmean(turns)
    out["agent_tokens"] = fmean(tokens)
    if sum(turns):
        out["agent_tokens_per_turn"] = sum(tokens) / sum(turns)
    out["truncated"] = fmean(e.stop.truncated for e in scored_episodes)
    if (varied := diversity(scored_episodes)) is not None:
        out["diversity"] = varied
    for part in (group_metrics, stop_metrics, tool_metrics, audit_metrics, timing_metrics):
        out.update(part(scored_episodes))
    out.update(usage_metrics(everything))
    return out


BEHAVIOUR = (
    "writes_without_consent", "needless_transfers", "grounded", "tool_error_rate", "malformed_calls", "calls",
    "calls_general_share", "audit/searches", "audit/documented", "audit/repeated_calls",
    "audit/access_before_authentication", "audit/foreign_access", "audit/questions", "audit/writes", "audit/transfers",
    "audit/failed_calls", "audit/failed_calls_tried_again", "audit/timed_out_writes", "audit/timed_out_writes_checked",
    "audit/blind_repeats", "audit/failed_calls_told", "audit/failed_calls_handed_over",
    "truncated", "turns", "agent_tokens", "agent_tokens_per_turn", "diversity",
)  # fmt: skip
"""The figures of an evaluation's ``behaviour`` block, in the order in which the report shows them."""


def behaviour(episodes: Iterable[Episode]) -> dict[str, float]:
    """How an agent behaves, beside whether it succeeds: the figures of ``BEHAVIOUR`` and the stop reasons seen."""
    metrics = _episode_metrics(episodes)
    out = {name: metrics[name] for name in BEHAVIOUR if name in metrics}
    return out | {k: v for k, v in metrics.items() if k.startswith("stop/") and v > 0}


def flatten(values: Mapping[str, object], prefix: str = "") -> dict[str, float]:
    """Nested figures as one flat dict with "/" between names; what is no number is left out."""
    out: dict[str, float] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            out.update(flatten(value, f"{name}/"))
        elif isinstance(value, (int, float)):
            out[name] = float(value)
    return out
