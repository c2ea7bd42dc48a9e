"""The charts of a run's figures, and how several runs share a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from muarl.accounts.metrics import SUCCESS_WITHOUT_VIOLATION
from muarl.basics.json_values import as_figure
from muarl.pages.charts import Point, Series, area_chart, line_chart
from muarl.pages.markup import Html, join, tag
from muarl.pages.words import phase_name, word
from muarl.report.figures import MEASURED, RunFigures, points, spent, thin
from muarl.report.report_curves import CLEAN_TASKS

COLOURS = 6
"""Runs that are drawn; more are in the table only."""
OBEYED = "Held out, without any violation"
"""The chart of several runs' success without any violation; of a single run it is in that of the reward."""


Line = Callable[[RunFigures], list[Point]]


@dataclass(frozen=True)
class FigureLine:
    """The line of a figure that may go by several names: the first that a run has."""

    names: tuple[str, ...]

    def __call__(self, s: RunFigures) -> list[Point]:
        """Its points."""
        return points(s.rows, *self.names)


def _named(*names: str) -> Line:
    return FigureLine(names)


def _ratio(above: str, below: str) -> Line:
    def line(s: RunFigures) -> list[Point]:
        out = []
        for row in s.rows:
            x, a, b = (as_figure(row.get(n)) for n in ("step", above, below))
            if x is not None and a is not None and b:
                out.append((x, a / b))
        return out

    return line


def _lost(s: RunFigures) -> list[Point]:
    out = []
    for row in s.rows:
        x, lost, scored = (as_figure(row.get(n)) for n in ("step", "excluded", "episodes"))
        if x is not None and lost is not None and scored is not None and lost + scored:
            out.append((x, lost / (lost + scored)))
    return out


def _spent(s: RunFigures) -> list[Point]:
    out, so_far = [], 0.0
    for row in s.rows:
        so_far += spent([row])
        if (x := as_figure(row.get("step"))) is not None:
            out.append((x, so_far))
    return out if so_far else []


def _user_errors(s: RunFigures) -> list[Point]:
    errors = points(s.rows, USER_ERRORS, "user/errors")
    if errors:
        return errors
    return [*s.user_errors()]


USER_ERRORS, EXCLUDED = "user_errors", "excluded"
"""Figures that have parts: user_errors/RULE, and excluded/WHO (user, agent, world, judge)."""
SIDES = {"agent": "the agent’s sampler", "world": "tools", "user": "the user", "judge": "a judge"}
LINES = 5
"""Parts that have a line of their own."""


def parts_of(s: RunFigures, name: str) -> list[str]:
    """The parts of a figure that a run's rows tell, the largest first."""
    sizes: dict[str, float] = {}
    for row in s.rows:
        for key, value in row.items():
            if key.startswith(f"{name}/") and (n := as_figure(value)):
                sizes[key] = sizes.get(key, 0.0) + n
    return sorted(sizes, key=lambda key: (-sizes[key], key))


def _user_rules(s: RunFigures) -> list[Series]:
    """Which rules users broke, where the rows tell."""
    names = parts_of(s, USER_ERRORS)[:LINES]
    return [
        Series(n.removeprefix(f"{USER_ERRORS}/").replace("_", " "), thin(filled(s, n)), f"r{i + 1}")
        for i, n in enumerate(names)
    ]


def _sides(s: RunFigures) -> list[Series]:
    """At whose side conversations were lost, as shares of all of a step."""
    out = []
    names = [n for n in parts_of(s, EXCLUDED) if n != f"{EXCLUDED}/void"]  # void ones are among the sides
    for i, name in enumerate(names[:LINES]):
        line = []
        for row in s.rows:
            x, scored, lost = (as_figure(row.get(n)) for n in ("step", "episodes", EXCLUDED))
            if x is not None and scored is not None and lost is not None and scored + lost:
                line.append((x, (as_figure(row.get(name)) or 0.0) / (scored + lost)))
        side = name.removeprefix(f"{EXCLUDED}/")
        out.append(Series(SIDES.get(side, side), thin(line), f"r{i + 1}"))
    return out


def _held_out(s: RunFigures) -> list[Series]:
    phase = next((phase for phase in MEASURED if points(s.metrics, "success", phase=phase)), None)
    if phase is None or s.phase != "rl":
        return []
    clean = points(s.metrics, SUCCESS_WITHOUT_VIOLATION, phase=phase)
    return [
        Series("held-out tasks", points(s.metrics, "success", phase=phase), "base", dots=True),
        *([Series(CLEAN_TASKS, clean, "before", dots=True)] if clean else []),
    ]


def _obeyed(s: RunFigures) -> list[Point]:
    return [point for held_out in _held_out(s)[1:] for point in held_out.points]


KL = ("kl_k3", "update/kl_k3", "kl", "kl_loss")
"""Names of the divergence, the first that a run has is drawn."""
Chart = tuple[str, Line, bool, str]
"""Its name, its line, whether it is of shares, and a note."""
CHARTS: tuple[tuple[str, tuple[Chart, ...]], ...] = (
    (
        "Learning",
        (
            ("Success", _named("success"), True, word("success").meaning),
            ("Reward", _named("reward", "success"), False, "mean reward of a conversation, on training tasks"),
            (OBEYED, _obeyed, True, "held-out tasks solved, with no violation found"),
            ("KL", _named(*KL), False, "per token from where RL began; a sudden rise warns"),
            ("Entropy", _named("entropy"), False, "agent tokens only; a collapse to 0 warns"),
            ("Groups all solved", _named("groups/all_correct"), True, "no gradient: all rollouts of a task succeed"),
            ("Groups none solved", _named("groups/all_wrong"), True, "no gradient: no rollout of a task succeeds"),
            ("Mixed", _named("groups/mixed"), True, "groups that give a gradient"),
            ("Gradient norm", _named("update/grad_norm", "grad_norm"), False, "before clipping"),
            ("Clip fraction", _named("update/clip_fraction"), True, "share of tokens whose ratio was clipped"),
            ("Loss", _named("agent_nll", "nll", "loss"), False, "on the agent’s own tokens"),
        ),
    ),
    (
        "Conversations",
        (
            ("Turns", _named("turns"), False, "messages and tool calls of the agent in a conversation"),
            ("Response length", _named("agent_tokens_per_turn"), False, "tokens the agent writes in a turn"),
            ("Tokens", _named("agent_tokens", "response_length"), False, "tokens the agent writes in a conversation"),
            ("Truncated", _named("truncated"), True, "conversations that ran into a limit"),
            ("User errors", _user_errors, True, "conversations whose simulated user failed"),
            ("Infrastructure failures", _lost, True, "conversations that user, tools or endpoints broke off"),
            ("Retried", _named("retried"), False, "conversations of a step that took more than one attempt"),
        ),
    ),
    (
        "Tool use",
        (
            ("Tool calls", _named("calls"), False, "in a conversation"),
            ("General-purpose tools", _named("calls_general_share"), True, "calls to calculate, think or transfer"),
            ("Tool errors", _named("tool_error_rate"), True, "share of calls answered by an error"),
            ("Repeated calls", _named("audit/repeated_calls"), False, "in a conversation, with no change between"),
            ("Needless transfers", _named("needless_transfers"), True, word("needless_transfers").meaning),
            ("Writes without consent", _named("writes_without_consent"), True, "of all changes to the database"),
            ("Malformed calls", _named("malformed_calls"), False, "in a conversation"),
        ),
    ),
    (
        "Throughput and cost",
        (
            ("Rollout", _ratio("episodes", "time/rollout"), False, "conversations a second"),
            ("Update", _named("update/tokens_per_second", "tokens_per_second"), False, "tokens a second"),
            ("Sampler–learner log-prob gap", _named("update/logprob_gap_mean"), False, "mean gap in log-probability"),
            ("Largest log-prob gap", _named("update/logprob_gap_max"), False, "largest gap of one token"),
            ("Staleness", _named("staleness_mean"), False, "updates since a token was sampled"),
            ("Cost", _spent, False, "dollars so far, users and endpoints together"),
        ),
    ),
)  # fmt: skip
PARTS: Mapping[str, Callable[[RunFigures], list[Series]]] = {
    "User errors": _user_rules,
    "Infrastructure failures": _sides,
}
"""Charts of one run that show the parts of a figure beside it."""


def drawn_in(run: RunFigures) -> set[str]:
    """The figures that the charts show of a run."""
    figures = {key for row in run.rows for key, value in row.items() if as_figure(value) is not None}
    lines = [line for _, charts in CHARTS for _, line, _, _ in charts if isinstance(line, FigureLine)]
    first = (next((name for name in line.names if name in figures), None) for line in lines)
    return {name for name in first if name} | {"step", "seconds", USER_ERRORS, EXCLUDED}


def chart_sections(runs: Sequence[RunFigures]) -> list[tuple[str, str, Html | None]]:
    """Sections, each an anchor, a name and its charts (None: there is nothing to draw), of one run or of several."""
    return [(title.split()[0].lower(), title, _charts(title, charts, runs)) for title, charts in CHARTS]


def _charts(title: str, charts: Sequence[Chart], runs: Sequence[RunFigures]) -> Html | None:
    alone = runs[0] if len(runs) == 1 else None
    measured = "Success" if any(points(s.rows, "success") for s in runs) else "Reward"
    drawn: list[Html | None] = []
    never: list[str] = []
    for name, line, shares, note in charts:
        if alone is not None and name in ("Groups all solved", "Groups none solved", "Mixed", OBEYED):
            if name == "Mixed":
                drawn.insert(1, _groups(alone))
            continue
        series = [Series(s.name, thin(line(s)), s.colour) for s in runs]
        series = [s for s in series if s.points]
        if not series:
            continue
        if name not in ("Success", "Reward") and not any(y for s in series for _, y in s.points):
            never.append(name.lower() if name[1:2].islower() else name)
            continue
        if name == measured and alone is not None:
            series = [Series("in training", series[0].points, "after"), *_held_out(alone)]
        elif name == measured:
            held_out = [(s, _held_out(s)[:1]) for s in runs]
            series += [replace(d, label=f"{s.name}, held out", colour=s.colour) for s, dots in held_out for d in dots]
        if alone is not None and name in PARTS and (more := PARTS[name](alone)):
            series = [Series("all", series[0].points, "after"), *more]
        if max(abs(y) for s in series for _, y in s.points) < 1e-3 and not shares:  # or the axis shows no figures
            series = [Series(s.label, [(x, y * 1e6) for x, y in s.points], s.colour, s.dots) for s in series]
            note += ", ×10⁻⁶"
        drawn.append(line_chart(name, series, shares=shares, note=note))
    if alone is not None:
        drawn += {"Learning": _cold_start, "Conversations": _stops, "Throughput and cost": _times}.get(title, _none)(
            alone
        )
    present = [c for c in drawn if c is not None]
    if not present and not never:
        return None
    return join(
        _scatter(alone) if alone is not None and title == "Learning" and present else None,
        tag("div", present, class_="charts" if alone is not None else "charts many") if present else None,
        tag("p", f"Always 0: {', '.join(never)}.", class_="soft") if never else None,
    )


def _scatter(s: RunFigures) -> Html:
    size = next((b for r in s.rows if (b := as_figure(r.get("episodes")))), None)
    on = f"{size:,.0f} fresh conversations" if size else "conversations"
    text = (
        f"{phase_name(s.phase).capitalize()}, step by step. Each step is measured on its own {on}, so single steps "
        "scatter: the pale line is the step, the strong line a moving average. "
        f"{'The agent is sampled, on training tasks, with the training customer.' if s.phase == 'rl' else ''}"
    )
    return tag("p", text, class_="soft")


def _none(s: RunFigures) -> list[Html | None]:
    return []


def _cold_start(s: RunFigures) -> list[Html | None]:
    loss = points(s.trained.get("cold_start", ()), "loss") if s.phase != "cold_start" else []
    return [line_chart("Loss in the cold start", [Series("loss", thin(loss))], note=word("loss").meaning)]


def _times(s: RunFigures) -> list[Html | None]:
    return [_time(s), _episode_time(s)]


def _area(s: RunFigures, title: str, note: str, parts: list[tuple[str, list[Point], str]]) -> Html | None:
    return area_chart(title, [Series(label, thin(line), colour) for label, line, colour in parts if line], note=note)


def _groups(s: RunFigures) -> Html | None:
    note = "only groups with mixed outcomes give a gradient"
    parts = (("all solved", "groups/all_correct", "after"), ("mixed", "groups/mixed", "mid"),
             ("none solved", "groups/all_wrong", "bad"))  # fmt: skip
    return _area(s, "Outcomes of groups", note, [(label, points(s.rows, name), c) for label, name, c in parts])


def _stops(s: RunFigures) -> list[Html | None]:
    names = sorted({k for r in s.rows for k, v in r.items() if k.startswith("stop/") and as_figure(v)})
    usual = [n for n in ("stop/user_stop", "stop/agent_stop", "stop/transfer") if n in names]
    names = usual + [n for n in names if n not in usual]
    if names == usual[:1]:
        return []
    parts = [(word(n).label.removeprefix("stop/"), filled(s, n), f"s{i}") for i, n in enumerate(names)]
    return [_area(s, "Stop reasons", "how conversations end", parts)]


def filled(s: RunFigures, name: str) -> list[Point]:
    """A share at every step, 0 where a row does not tell it, so that shares can be stacked."""
    return [(x, as_figure(r.get(name)) or 0.0) for r in s.rows if (x := as_figure(r.get("step"))) is not None]


def _time(s: RunFigures) -> Html | None:
    """Shares of a step's wall time; what is neither rollout nor update is evaluation, saving and waiting."""
    parts: dict[str, list[Point]] = {"rollout": [], "update": [], "the rest": []}
    before: float | None = None
    for row in s.rows:
        x, now = as_figure(row.get("step")), as_figure(row.get("seconds"))
        roll, update = as_figure(row.get("time/rollout")), as_figure(row.get("time/update"))
        if x is None or now is None or roll is None or update is None:
            continue
        rest = 0.0 if before is None else max(0.0, now - before - roll - update)
        before = now
        whole = (roll + update + rest) or 1.0
        for name, part in zip(parts, (roll, update, rest), strict=True):
            parts[name].append((x, part / whole))
    areas = [(n, line, f"s{i}") for i, (n, line) in enumerate(parts.items())]
    return _area(s, "Where a step’s time goes", "the rest: evaluation, saving, waiting", areas)


def _episode_time(s: RunFigures) -> Html | None:
    names = ("time/agent", "time/user", "time/world")
    areas = []
    for i, name in enumerate(names):
        line = []
        for row in s.rows:
            x, whole = as_figure(row.get("step")), sum(as_figure(row.get(n)) or 0.0 for n in names)
            if x is not None and whole:
                line.append((x, (as_figure(row.get(name)) or 0.0) / whole))
        areas.append((name.removeprefix("time/").replace("world", "tools"), line, f"s{i}"))
    return _area(s, "Where a conversation’s time goes", "agent, simulated user and tools", areas)


MORE = {"Learning": _cold_start, "Conversations": _stops, "Throughput and cost": _times}
"""Charts of a single run, at the end of a section."""
