"""The tables of a reproduction, as text: ours beside the paper's. The page and the Markdown file show the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from muarl.accounts.metrics import NOT_CHECKED
from muarl.observe.headline import OUTCOME
from muarl.observe.rundir import RunDirectory
from muarl.pages.words import word
from muarl_tools.experiments.reproduce import paper
from muarl_tools.experiments.reproduce.measuring import (
    BEHAVIOUR,
    PAIRS,
    ArmDifference,
    ArmScore,
    ArmsMeasured,
    Reproduction,
    groups,
)
from muarl_tools.experiments.reproduce.plan import ARMS, BASE, BOTH, MODEL, MORE, RULES, arms_of, met_in

NOT_YET = "–"
ENDS = 0.1
"""Share of the training steps that "first" and "last" mean."""
USERS = {RULES: "rule-based user", MODEL: "user model"}
"""What users are called; those of other difficulty are "typical users" and so on."""


@dataclass(frozen=True)
class Sheet:
    """A table: its title, what must be known to read it, and its cells. ``key``: its anchor. ``words``: how many of its
    columns, the first ones, are of words."""

    key: str
    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


def sheets(found: Reproduction) -> list[Sheet]:
    """All tables that there are figures for."""
    out = [_stages(found)]
    if (rules := found.by_user.get(RULES)) is not None:
        out += [_ablation(found, rules), _everywhere(found, rules, RULES), _obeying(found, rules)]
        out.append(_transfer(found, rules))
        out.append(_pairs(found, rules))
        out.append(_behaviour(found, rules))
        if any("2" in hats for own in rules.hats.values() for hats in own.values()):
            out.append(_repeated(found, rules))
        if rules.turns:
            out.append(_turns(found, rules))
    for user in (*found.config.reproduce.user_traits, MODEL):
        if (other := found.by_user.get(user)) is not None:
            out += [_everywhere(found, other, user), _other_users(found, other, user)]
    if found.training:
        out.append(_training(found))
    if found.learned:
        out.append(_learned(found))
    return out


def _stages(found: Reproduction) -> Sheet:
    config, base = found.config, found.base
    wanted, sft, rl = config.reproduce, config.sft, config.rl
    episodes = rl.steps * rl.tasks_per_step * rl.group_size
    size = f"{base['parameters']:,} parameters, {base['vocabulary']:,} tokens; " if base else ""
    read = f"{size}{config.base.steps:,} steps on {config.base.conversations:,} conversations of wandering agents"
    shown = f"{sft.steps} steps on {sft.demonstrations:,} demonstrations of scripted experts"
    only = f" (only {', '.join(wanted.intents)})" if wanted.intents else ""
    held_out = f"{config.eval.tasks} held-out tasks of each, temperature {config.eval.temperature:g}"
    if wanted.unseen_tasks is not None:
        held_out = f"{config.eval.tasks} held-out tasks of each environment of RL, {wanted.unseen_tasks} of each other "
        held_out += f"one, temperature {config.eval.temperature:g}"
    others = [name for name in wanted.evaluated if name not in wanted.rl]
    rows = [
        ("cold start", shown, _listed(wanted.cold_start)),
        ("RL", f"{rl.steps} steps, {episodes:,} episodes", _listed(wanted.rl) + only),
        ("evaluation", held_out, ", ".join(filter(None, (_listed(wanted.rl) + only, _listed(others))))),
    ]
    if MORE in arms_of(wanted):
        more = wanted.further_cold_start
        shown = f"{more} steps on {more * sft.batch:,} other demonstrations, from where the cold start ended"
        rows.insert(1, (ARMS[MORE], shown, _listed(wanted.cold_start)))
    if not wanted.pretrained:
        rows.insert(0, ("base", read, _listed(wanted.read)))
    start = f"the base is {config.model.checkpoint}" if wanted.pretrained else "one base"
    note = (
        f"{'Seeds' if len(found.seeds) > 1 else 'Seed'} {', '.join(map(str, found.seeds))} of cold start and RL; "
        f"{start}. {found.done} of {found.planned} stages are finished."
    )
    return Sheet("stages", "What each stage saw", note, ("stage", "size", "environments"), tuple(rows), words=3)


def _ablation(found: Reproduction, measured: ArmsMeasured) -> Sheet:
    names = found.config.reproduce.rl
    rows = []
    for arm, label in arms_of(found.config.reproduce).items():
        ours = [_score(measured.score(arm, (name,))) for name in names]
        together = _score(measured.score(arm, names))
        theirs = [f"{value:.1f}" for value in paper.ABLATION[arm]] if arm in paper.ABLATION else [NOT_YET] * 2
        rows.append((label, *ours, together, *theirs))
    for baseline, label in (("do_nothing", "doing nothing"), ("always_transfer", "always transferring")):
        floor = measured.floor(baseline)
        shares = [floor[name] for name in names if name in floor]
        mean = fmean(shares) if len(shares) == len(names) else None  # as many tasks are played of each
        if shares or baseline == "do_nothing":
            rows.append((label, *(_percent(floor.get(name)) for name in names), _percent(mean), "", ""))
    return Sheet(
        "ablation",
        "Each without the other",
        f"{_how_scored(found)} The paper's: 32B parameters, TAU2 ({paper.SOURCE}).",
        ("arm", *map(_short, names), "together", "paper: retail", "paper: airline"),
        tuple(rows),
    )


def _how_scored(found: Reproduction) -> str:
    several = ", and the lowest and highest seed" if len(found.seeds) > 1 else ""
    return f"Success in percent, 95% interval over tasks{several}."


def _everywhere(found: Reproduction, measured: ArmsMeasured, user: str) -> Sheet:
    rows = []
    transfer = measured.floor("always_transfer")
    for name in met_in(found.config.reproduce, user):
        kind = next((group for group, own in groups(found.config.reproduce).items() if name in own), "")
        cells = [_score(measured.score(arm, (name,))) for arm in arms_of(found.config.reproduce)]
        floors = [_percent(measured.nothing.get(name)), *([_percent(transfer.get(name))] if transfer else [])]
        rows.append((_short(name), kind, *floors, *cells))
    floors = ["doing nothing", *(["always transferring"] if transfer else [])]
    return Sheet(
        f"worlds-{user}",
        f"Every environment, {USERS.get(user, f'{user} users')}",
        _how_scored(found),
        ("environment", "", *floors, *arms_of(found.config.reproduce).values()),
        tuple(rows),
        words=2,
    )


def _other_users(found: Reproduction, measured: ArmsMeasured, user: str) -> Sheet:
    """What there is of rules and behaviour with a user that training has not met."""
    rows = []
    names = met_in(found.config.reproduce, user)
    for arm, label in arms_of(found.config.reproduce).items():
        clean, success = measured.score(arm, names, clean=True), measured.score(arm, names)
        cell = NOT_YET if success is None else NOT_CHECKED if clean is None else _score(clean)
        figures = next(iter(measured.figures.get(arm, {}).values()), {})
        rows.append((label, cell, *(_figure(name, figures.get(name)) for name in BEHAVIOUR)))
    return Sheet(
        f"obeying-{user}",
        f"Success without any violation and behaviour, {USERS.get(user, f'{user} users')}",
        f"{_how_scored(found)} Behaviour: means over episodes and seeds.",
        ("arm", "without any violation", *(word(name).label.lower() for name in BEHAVIOUR)),
        tuple(rows),
    )


def _repeated(found: Reproduction, measured: ArmsMeasured) -> Sheet:
    """pass^k, where tasks were tried several times."""
    rows = []
    ks = sorted({int(k) for own in measured.hats.values() for hats in own.values() for k in hats})
    for name in found.config.reproduce.evaluated:
        for arm, label in arms_of(found.config.reproduce).items():
            hats = measured.hats.get(arm, {}).get(name)
            if hats is not None:
                rows.append((_short(name), label, *(_percent(hats.get(str(k))) for k in ks)))
    return Sheet(
        "hats",
        "Again and again: pass^k",
        f"Percent of tasks that are done in all of k tries, from {found.config.eval.trials} of each; means over seeds.",
        ("environment", "arm", *(f"pass^{k}" for k in ks)),
        tuple(rows),
        words=2,
    )


def _obeying(found: Reproduction, measured: ArmsMeasured) -> Sheet:
    """Success without any violation, beside success, of every arm; and what a reward of the outcome alone costs."""
    rows = []
    for name in found.config.reproduce.evaluated:
        cells = []
        for arm in arms_of(found.config.reproduce):
            clean, success = measured.score(arm, (name,), clean=True), measured.score(arm, (name,))
            cells.append(NOT_YET if success is None else NOT_CHECKED if clean is None else _score(clean))
        rows.append((_short(name), *cells))
    return Sheet(
        "obeying",
        "Success without any violation",
        f"{_how_scored(found)} Of tasks that were done, those in which the audit found no violation of policy, "
        f"communication, safety or recovery.{_cost(found, measured)}",
        ("environment", *arms_of(found.config.reproduce).values()),
        tuple(rows),
    )


def _cost(found: Reproduction, measured: ArmsMeasured) -> str:
    """What the paper's reward costs, in a sentence; "" where it was another, or nothing shows it."""
    names = found.config.reproduce.rl
    success, clean = measured.score(BOTH, names), measured.score(BOTH, names, clean=True)
    if found.config.rl.reward != OUTCOME or success is None or clean is None or success.tasks != clean.tasks:
        return ""
    if not success.value or clean.value >= success.value:
        return ""
    share = 1 - clean.value / success.value
    return (
        f" The reward of RL was the task's outcome alone, as in the paper: where it played, {100 * share:.0f}% of the "
        f"successes of “{ARMS[BOTH]}” broke a rule. rl.layers pays for obeying."
    )


def _transfer(found: Reproduction, measured: ArmsMeasured) -> Sheet:
    rows = []
    for name in (n for n in found.config.reproduce.evaluated if n not in found.config.reproduce.rl):
        benchmark = paper.LIKE.get(name)
        ours = measured.difference(BOTH, BASE, (name,))
        at = None if benchmark is None else paper.TRANSFER_TO.index(benchmark)
        theirs = [
            NOT_YET if at is None else f"{before[at]:.1f} → {after[at]:.1f}"
            for before, after in paper.TRANSFER.values()
        ]
        change = NOT_YET
        if ours is not None:
            before, after = measured.score(BASE, (name,)), measured.score(BOTH, (name,))
            assert before is not None and after is not None
            change = f"{_percent(before.value)} → {_percent(after.value)}"
        rows.append((_short(name), change, *_gap(ours), benchmark or NOT_YET, *theirs))
    return Sheet(
        "transfer",
        "What RL never played",
        f"Success in percent, base → both. p: sign flips over tasks. The paper's: its models before and after MUA-RL "
        f"({paper.SOURCE}).",
        ("environment", "ours", "difference", "p", "paper", *(f"paper: {model}" for model in paper.TRANSFER)),
        tuple(rows),
    )


def _pairs(found: Reproduction, measured: ArmsMeasured) -> Sheet:
    rows = []
    for group, names in groups(found.config.reproduce).items():
        for one, other in (pair for pair in PAIRS if set(pair) <= set(arms_of(found.config.reproduce))):
            gap = measured.difference(one, other, names)
            tasks = NOT_YET if gap is None else str(gap.tasks)
            rows.append((group, f"{ARMS[one]} – {ARMS[other]}", *_gap(gap), tasks, *_paper_gap(group, one, other)))
    return Sheet(
        "pairs",
        "Arms against each other",
        "Points of success at the same tasks, each task's outcome being the mean over seeds; 95% bootstrap interval "
        "and two-sided p by sign flips, both over tasks. The paper's: 32B parameters, TAU2 retail and airline.",
        ("environments", "comparison", "difference", "p", "tasks", "paper: retail", "paper: airline"),
        tuple(rows),
        words=2,
    )


def _paper_gap(group: str, one: str, other: str) -> tuple[str, str]:
    if group != "trained on by RL" or not {one, other} <= set(paper.ABLATION):
        return NOT_YET, NOT_YET
    (a, b), (c, d) = paper.ABLATION[one], paper.ABLATION[other]
    return f"{a - c:+.1f}", f"{b - d:+.1f}"


def _behaviour(found: Reproduction, measured: ArmsMeasured) -> Sheet:
    rows = []
    for group in groups(found.config.reproduce):
        for arm, label in arms_of(found.config.reproduce).items():
            figures = measured.figures.get(arm, {}).get(group, {})
            rows.append((group, label, *(_figure(name, figures.get(name)) for name in BEHAVIOUR)))
    return Sheet(
        "behaviour",
        "How the agents behave",
        "Means over episodes and seeds; shares in percent.",
        ("environments", "arm", *(word(name).label.lower() for name in BEHAVIOUR)),
        tuple(rows),
        words=2,
    )


def _turns(found: Reproduction, measured: ArmsMeasured) -> Sheet:
    """Calls right turn by turn, which others publish, beside what whole conversations show."""
    rows = []
    for name in found.config.reproduce.evaluated:
        for arm, label in arms_of(found.config.reproduce).items():
            shares = measured.turns.get(arm, {}).get(name)
            if shares is not None:
                cells = (_percent(shares.get(key)) for key in ("call_right", "call_tools_right", "words_kept"))
                rows.append((_short(name), label, *cells, f"{shares['calls']:.0f}"))
    return Sheet(
        "turns",
        "Calls right turn by turn",
        "Teacher forcing: in conversations that the scripted expert led so far, greedily. Percent of the expert's "
        "calls that the agent makes, too, with the same arguments, or the same tools with any; of its turns in words, "
        "those in which the agent speaks, too. Nobody answers, and errors do not add up, so that this is no success.",
        ("environment", "arm", "calls right", "tools right", "words kept", "calls"),
        tuple(rows),
        words=2,
    )


def _training(found: Reproduction) -> Sheet:
    shown = ("success", "turns", "needless_transfers", "writes_without_consent")
    rows = []
    for arm, runs in found.training.items():
        cells = []
        for name in shown:
            ends = [e for e in (_ends(run, name) for run in runs) if e is not None]
            first, last = (fmean(e[0] for e in ends), fmean(e[1] for e in ends)) if ends else (None, None)
            cells.append(f"{_figure(name, first)} → {_figure(name, last)}")
        rows.append((ARMS[arm], str(len(runs)), *cells))
    low, high = paper.TURNS
    return Sheet(
        "training",
        "During RL",
        f"First → last tenth of the steps, means over seeds. In the paper turns settle at {low} to {high}.",
        ("arm", "seeds", *(word(name).label.lower() for name in shown)),
        tuple(rows),
    )


def _learned(found: Reproduction) -> Sheet:
    """What each arm was trained on, so that arms can be told apart from those that only saw more."""
    rows = []
    for arm, stages in found.learned.items():
        for phase, runs in stages.items():
            mean = {name: fmean(run[name] for run in runs) for name in runs[0]}
            hours = f"{mean['seconds'] / 3600:.1f}"
            rows.append((ARMS[arm], phase, f"{mean['tokens']:,.0f}", f"{mean['loss_tokens']:,.0f}", hours))
    return Sheet(
        "learned",
        "What each arm learned from",
        "Means over seeds, of the stage that makes the arm what it is: “both” and “further cold start” begin where the "
        "cold start ended. Tokens are those of all conversations that updates learned from, beginnings in common "
        "counted with each; RL's were sampled besides. Hours on the clock.",
        ("arm", "stage", "tokens", "of them with loss", "hours"),
        tuple(rows),
        words=2,
    )


def _ends(run: RunDirectory, name: str) -> tuple[float, float] | None:
    """The means of a figure over the first and the last steps of RL."""
    rows: Sequence[Mapping[str, float]] = [r for r in run.read_metrics() if r.get("phase") == "rl" and name in r]
    if not rows:
        return None
    count = max(1, round(ENDS * len(rows)))
    return fmean(float(r[name]) for r in rows[:count]), fmean(float(r[name]) for r in rows[-count:])


def _score(score: ArmScore | None) -> str:
    if score is None:
        return NOT_YET
    low, high = score.interval
    text = f"{_percent(score.value)} ({_percent(low)} to {_percent(high)})"
    return text if len(score.seeds) < 2 else f"{text}; {_percent(min(score.seeds))} to {_percent(max(score.seeds))}"


def _gap(gap: ArmDifference | None) -> tuple[str, str]:
    if gap is None:
        return NOT_YET, NOT_YET
    low, high = gap.interval
    p = "< 0.001" if gap.p < 0.001 else f"{gap.p:.3f}"
    return f"{100 * gap.value:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})", p


def _percent(share: float | None) -> str:
    return NOT_YET if share is None else f"{100 * share:.1f}"


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return NOT_YET
    return f"{100 * value:.1f}%" if word(name).share else f"{value:.1f}"


def _short(name: str) -> str:
    return name.removesuffix("-generated")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_short, names))
