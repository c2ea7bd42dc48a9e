"""The tables of a reproduction: ours beside the paper's. The page, the Markdown file and the JSON show the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from muarl.accounts.metrics import NOT_CHECKED
from muarl.accounts.pass_hat import with_few_tasks
from muarl.observe.headline import OUTCOME
from muarl.observe.rundir import RunDirectory
from muarl.pages.table import ShownTable, table
from muarl.pages.words import word
from muarl_tools.experiments.reproduce import paper
from muarl_tools.experiments.reproduce.measuring import (
    BEHAVIOUR,
    FLOORS,
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
ABLATION = "ablation"
"""The key of the table that tells the result."""

Rows = Iterable[Sequence[str]]


def sheets(found: Reproduction) -> dict[str, ShownTable]:
    """All tables that there are figures for, by the name that the page's address and the JSON have."""
    out = dict([_stages(found)])
    if (rules := found.by_user.get(RULES)) is not None:
        out |= _Sheets(found, rules, RULES).all()
    for user in (*found.config.reproduce.user_traits, MODEL):
        if (other := found.by_user.get(user)) is not None:
            own = _Sheets(found, other, user)
            out |= dict([own.everywhere(), own.of_other_users(), own.pairs()])
    if found.training:
        out |= [_training(found)]
    if found.learned:
        out |= [_learned(found)]
    return {key: sheet for key, sheet in out.items() if sheet.rows}


Sheet = tuple[str, ShownTable]
"""A table and its name."""


def _sheet(key: str, title: str, about: str, head: Sequence[str], rows: Rows, *, words: int = 1) -> Sheet:
    kind = "figures" if words == 1 else "many"
    return key, table(head, list(rows), words=words, title=title, about=about, kind=kind)


def _stages(found: Reproduction) -> Sheet:
    config, base = found.config, found.base
    wanted, sft, rl, ev = config.reproduce, config.sft, config.rl, config.eval
    episodes = rl.steps * rl.tasks_per_step * rl.group_size
    size = f"{base['parameters']:,} parameters, {base['vocabulary']:,} tokens;\n" if base else ""
    read = f"{size}{config.base.steps:,} steps on {config.base.conversations:,} conversations of wandering agents"
    played = _listed(wanted.rl) + (f" (only {', '.join(wanted.intents)})" if wanted.intents else "")
    held_out = f"{ev.tasks} held-out tasks of each"
    if wanted.unseen_tasks is not None:
        held_out += f" environment of RL, {wanted.unseen_tasks} of each other one"
    others = _listed([name for name in wanted.evaluated if name not in wanted.rl])
    rows = [] if wanted.pretrained else [("base", read, _listed(wanted.read))]
    shown = f"{sft.steps} steps on {sft.demonstrations:,} demonstrations of scripted experts"
    rows.append(("cold start", shown, _listed(wanted.cold_start)))
    if MORE in arms_of(wanted):
        more = wanted.further_cold_start
        shown = f"{more} steps on {more * sft.batch:,} other demonstrations, from where the cold start ended"
        rows.append((ARMS[MORE], shown, _listed(wanted.cold_start)))
    rows.append(("RL", f"{rl.steps} steps, {episodes:,} episodes", played))
    temperature = f"temperature {ev.temperature:g}"
    rows.append(("evaluation", f"{held_out}, {temperature}", ", ".join(filter(None, (played, others)))))
    start = f"the base is {config.model.checkpoint}" if wanted.pretrained else "one base"
    about = (
        f"{'Seeds' if len(found.seeds) > 1 else 'Seed'} {', '.join(map(str, found.seeds))} of cold start and RL; "
        f"{start}. {found.done} of {found.planned} stages are finished."
    )
    return _sheet("stages", "What each stage saw", about, ("stage", "size", "environments"), rows, words=3)


@dataclass(frozen=True)
class _Sheets:
    """The tables about evaluations with one user."""

    found: Reproduction
    measured: ArmsMeasured
    user: str

    def all(self) -> dict[str, ShownTable]:
        """Those of the users of training."""
        out = [self._ablation(), self.everywhere(), self._obeying(), self._transfer(), self.pairs(), self._behaviour()]
        if any("2" in hats for own in self.measured.hats.values() for hats in own.values()):
            out.append(self._repeated())
        if self.measured.turns:
            out.append(self._turns())
        return dict(out)

    @property
    def arms(self) -> dict[str, str]:
        return arms_of(self.found.config.reproduce)

    @property
    def how_scored(self) -> str:
        several = ", and the lowest and highest seed" if len(self.found.seeds) > 1 else ""
        return f"Success in percent, 95% interval over tasks{several}."

    @property
    def whose(self) -> str:
        return USERS.get(self.user, f"{self.user} users")

    def _score(self, arm: str, names: Sequence[str]) -> str:
        return _score(self.measured.score(arm, names))

    def _clean(self, arm: str, names: Sequence[str]) -> str:
        """Success without any violation, where it was checked."""
        success, clean = self.measured.score(arm, names), self.measured.score(arm, names, clean=True)
        return NOT_CHECKED if clean is None and success is not None else _score(clean)

    def _ablation(self) -> Sheet:
        names, rows = self.found.config.reproduce.rl, list[Sequence[str]]()
        for arm, label in self.arms.items():
            theirs = [f"{value:.1f}" for value in paper.ABLATION.get(arm, ())] or [NOT_YET] * 2
            rows.append((label, *(self._score(arm, (name,)) for name in names), self._score(arm, names), *theirs))
        for baseline, label in FLOORS.items():
            floor = self.measured.floor(baseline)
            shares = [floor[name] for name in names if name in floor]
            mean = fmean(shares) if len(shares) == len(names) else None  # as many tasks are played of each
            if shares or baseline == "do_nothing":
                rows.append((label, *(_percent(floor.get(name)) for name in names), _percent(mean), "", ""))
        about = f"{self.how_scored} The paper's: 32B parameters, TAU2 ({paper.SOURCE})."
        head = ("arm", *map(_short, names), "together", "paper: retail", "paper: airline")
        return _sheet(ABLATION, "Each without the other", about, head, rows)

    def everywhere(self) -> Sheet:
        """Every arm in every environment where it meets this user."""
        rows, wanted = [], self.found.config.reproduce
        floors = [name for name in FLOORS if name == "do_nothing" or self.measured.floor(name)]
        for name in met_in(wanted, self.user):
            kind = next((group for group, own in groups(wanted).items() if name in own), "")
            shares = [_percent(self.measured.floor(floor).get(name)) for floor in floors]
            scores = (self._score(arm, (name,)) for arm in self.arms)
            rows.append((_short(name), *self._group(kind), *shares, *scores))
        words = ("environment", *self._group(""))
        head = (*words, *(FLOORS[floor] for floor in floors), *self.arms.values())
        title = f"Every environment, {self.whose}"
        return _sheet(f"worlds-{self.user}", title, self.how_scored, head, rows, words=len(words))

    def of_other_users(self) -> Sheet:
        """What there is of rules and behaviour with a user that training has not met."""
        names, rows = met_in(self.found.config.reproduce, self.user), []
        for arm, label in self.arms.items():
            figures = next(iter(self.measured.figures.get(arm, {}).values()), {})
            rows.append((label, self._clean(arm, names), *_figures(figures)))
        return _sheet(
            f"obeying-{self.user}",
            f"Success without any violation and behaviour, {self.whose}",
            f"{self.how_scored} Behaviour: means over episodes and seeds.",
            ("arm", "without any violation", *_labels(BEHAVIOUR)),
            rows,
        )

    def _obeying(self) -> Sheet:
        """Success without any violation, of every arm; and what a reward of the outcome alone costs."""
        names = self.found.config.reproduce.evaluated
        rows = [(_short(name), *(self._clean(arm, (name,)) for arm in self.arms)) for name in names]
        return _sheet(
            "obeying",
            "Success without any violation",
            f"{self.how_scored} Of tasks that were done, those in which the audit found no violation of policy, "
            f"communication, safety or recovery.{self._cost()}",
            ("environment", *self.arms.values()),
            rows,
        )

    def _cost(self) -> str:
        """What the paper's reward costs, in a sentence; "" where it was another, or nothing shows it."""
        names = self.found.config.reproduce.rl
        success, clean = self.measured.score(BOTH, names), self.measured.score(BOTH, names, clean=True)
        if self.found.config.rl.reward != OUTCOME or success is None or clean is None or success.tasks != clean.tasks:
            return ""
        if not success.value or clean.value >= success.value:
            return ""
        share = 1 - clean.value / success.value
        return (
            f" The reward of RL was the task's outcome alone, as in the paper: where it played, {100 * share:.0f}% of "
            f"the successes of “{ARMS[BOTH]}” broke a rule. rl.layers pays for obeying."
        )

    def _transfer(self) -> Sheet:
        rows, wanted = [], self.found.config.reproduce
        for name in (n for n in wanted.evaluated if n not in wanted.rl):
            like = paper.LIKE.get(name)
            pairs = [] if like is None else list(paper.TRANSFER.values())
            at = 0 if like is None else paper.TRANSFER_TO.index(like)
            theirs = [f"{before[at]:.1f} → {after[at]:.1f}" for before, after in pairs] or [NOT_YET] * len(
                paper.TRANSFER
            )
            gap = self.measured.difference(BOTH, BASE, (name,))
            before, after = (self.measured.score(arm, (name,)) for arm in (BASE, BOTH))
            change = NOT_YET
            if before is not None and after is not None and gap is not None:
                change = f"{_percent(before.value)} → {_percent(after.value)}"
            rows.append((_short(name), change, *gap_cells(gap), like or NOT_YET, *theirs))
        return _sheet(
            "transfer",
            "What RL never played",
            "Success in percent, base → both. p: sign flips over tasks. The paper's: its models before and after "
            f"MUA-RL ({paper.SOURCE}).",
            ("environment", "ours", "difference", "p", "paper", *(f"paper: {model}" for model in paper.TRANSFER)),
            rows,
        )

    def pairs(self) -> Sheet:
        """Arms against each other, in success and in success without any violation."""
        rows, wanted = list[Sequence[str]](), self.found.config.reproduce
        beside_paper = self.user == RULES  # its users are of one kind: beside others its figures say nothing
        for group, own in groups(wanted).items():
            names = [name for name in own if name in met_in(wanted, self.user)]
            for one, other in (pair for pair in PAIRS if names and set(pair) <= set(self.arms)):
                gap = self.measured.difference(one, other, names)
                clean = self.measured.difference(one, other, names, clean=True)
                cells = (f"{ARMS[one]} – {ARMS[other]}", *gap_cells(gap), *gap_cells(clean))
                tasks = NOT_YET if gap is None else str(gap.tasks)
                theirs = _paper_gap(one, other) if group == "trained on by RL" else (NOT_YET, NOT_YET)
                rows.append((*self._group(group), *cells, tasks, *(theirs if beside_paper else ())))
        words = (*self._group("environments"), "comparison")
        head = (*words, "success", "p", "without any violation", "p of it", "tasks")
        if not beside_paper:
            title, about = f"Arms against each other, {self.whose}", "Points, as with the rule-based user."
            return _sheet(f"pairs-{self.user}", title, about, head, rows, words=len(words))
        about = (
            "Points at the same tasks, each task's outcome being the mean over the seeds that both have; 95% bootstrap "
            "interval and two-sided p by sign flips, both over tasks. The paper's: success, 32B parameters, TAU2 "
            "retail and airline."
        )
        head = (*head, "paper: retail", "paper: airline")
        return _sheet("pairs", "Arms against each other", about, head, rows, words=len(words))

    def _group(self, name: str) -> tuple[str, ...]:
        """A cell that names a group of environments, or heads such cells; none where there is only one group."""
        return (name,) if len(groups(self.found.config.reproduce)) > 1 else ()

    def _behaviour(self) -> Sheet:
        words = (*self._group("environments"), "arm")
        rows = [
            (*self._group(group), label, *_figures(self.measured.figures.get(arm, {}).get(group, {})))
            for group in groups(self.found.config.reproduce)
            for arm, label in self.arms.items()
        ]
        return _sheet(
            "behaviour",
            "How the agents behave",
            "Means over episodes and seeds; shares in percent.",
            (*words, *_labels(BEHAVIOUR)),
            rows,
            words=len(words),
        )

    def _by_environment(
        self, of: Mapping[str, Mapping[str, Mapping[str, float]]]
    ) -> Iterator[tuple[str, str, Mapping[str, float]]]:
        """(environment, arm, figures) where there are some."""
        for name in self.found.config.reproduce.evaluated:
            for arm, label in self.arms.items():
                if (figures := of.get(arm, {}).get(name)) is not None:
                    yield _short(name), label, figures

    def _repeated(self) -> Sheet:
        """pass^k, where tasks were tried several times."""
        ks = sorted({int(k) for own in self.measured.hats.values() for hats in own.values() for k in hats})
        both = (self._by_environment(of) for of in (self.measured.hats, self.measured.hat_tasks))
        rows = [
            (name, arm, *(with_few_tasks(_percent(hats.get(k)), n.get(k), n.get("1")) for k in map(str, ks)))
            for (name, arm, hats), (_, _, n) in zip(*both, strict=True)
        ]
        trials = self.found.config.eval.trials
        about = f"Percent of tasks that are done in all of k tries, from {trials} of each; means over seeds."
        head = ("environment", "arm", *(f"pass^{k}" for k in ks))
        return _sheet("hats", "Again and again: pass^k", about, head, rows, words=2)

    def _turns(self) -> Sheet:
        """Calls right turn by turn, which others publish, beside what whole conversations show."""
        shown = ("call_right", "call_tools_right", "words_kept")
        own = self._by_environment(self.measured.turns)
        rows = [(name, arm, *(_percent(one.get(k)) for k in shown), f"{one['calls']:.0f}") for name, arm, one in own]
        return _sheet(
            "turns",
            "Calls right turn by turn",
            "Teacher forcing: in conversations that the scripted expert led so far, greedily. Percent of the expert's "
            "calls that the agent makes, too, with the same arguments, or the same tools with any; of its turns in "
            "words, those in which the agent speaks, too. Nobody answers, and errors do not add up, so that this is no "
            "success.",
            ("environment", "arm", "calls right", "tools right", "words kept", "calls"),
            rows,
            words=2,
        )


def _training(found: Reproduction) -> Sheet:
    shown = ("success", "turns", "needless_transfers", "writes_without_consent")
    rows = []
    for arm, runs in found.training.items():
        cells = []
        for name in shown:
            ends = [e for e in (_ends(run, name) for run in runs) if e is not None]
            first, last = (fmean(own) for own in zip(*ends, strict=True)) if ends else (None, None)
            cells.append(f"{_figure(name, first)} → {_figure(name, last)}")
        rows.append((ARMS[arm], str(len(runs)), *cells))
    low, high = paper.TURNS
    about = f"First → last tenth of the steps, means over seeds. In the paper turns settle at {low} to {high}."
    return _sheet("training", "During RL", about, ("arm", "seeds", *_labels(shown)), rows)


def _learned(found: Reproduction) -> Sheet:
    """What each arm was trained on, so that arms can be told apart from those that only saw more."""
    rows = []
    for arm, stages in found.learned.items():
        for phase, runs in stages.items():
            tokens, loss_tokens, seconds = (fmean(r[n] for r in runs) for n in ("tokens", "loss_tokens", "seconds"))
            rows.append((ARMS[arm], phase, f"{tokens:,.0f}", f"{loss_tokens:,.0f}", f"{seconds / 3600:.1f}"))
    return _sheet(
        "learned",
        "What each arm learned from",
        "Means over seeds, of the stage that makes the arm what it is: “both” and “further cold start” begin where the "
        "cold start ended. Tokens are those of all conversations that updates learned from, beginnings in common "
        "counted with each; RL's were sampled besides. Hours on the clock.",
        ("arm", "stage", "tokens", "of them with loss", "hours"),
        rows,
        words=2,
    )


def _ends(run: RunDirectory, name: str) -> tuple[float, float] | None:
    """The means of a figure over the first and the last steps of RL."""
    found = [float(r[name]) for r in run.read_metrics() if r.get("phase") == "rl" and name in r]
    count = max(1, round(ENDS * len(found)))
    return (fmean(found[:count]), fmean(found[-count:])) if found else None


def _score(score: ArmScore | None) -> str:
    """A score with its interval; on a line of its own the range of its seeds."""
    if score is None:
        return NOT_YET
    text = f"{_percent(score.value)} ({' to '.join(map(_percent, score.interval))})"
    return text if len(score.seeds) < 2 else f"{text};\n{_percent(min(score.seeds))} to {_percent(max(score.seeds))}"


def gap_cells(gap: ArmDifference | None) -> tuple[str, str]:
    """A difference in points with its interval, and its p."""
    if gap is None:
        return NOT_YET, NOT_YET
    low, high = gap.interval
    p = "< 0.001" if gap.p < 0.001 else f"{gap.p:.3f}"
    return f"{100 * gap.value:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})", p


def _paper_gap(one: str, other: str) -> tuple[str, str]:
    """How many points one arm of the paper is better than another, in retail and airline."""
    if not {one, other} <= set(paper.ABLATION):
        return NOT_YET, NOT_YET
    retail, airline = (a - b for a, b in zip(paper.ABLATION[one], paper.ABLATION[other], strict=True))
    return f"{retail:+.1f}", f"{airline:+.1f}"


def _percent(share: float | None) -> str:
    return NOT_YET if share is None else f"{100 * share:.1f}"


def _figures(figures: Mapping[str, float]) -> list[str]:
    return [_figure(name, figures.get(name)) for name in BEHAVIOUR]


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return NOT_YET
    return f"{100 * value:.1f}%" if word(name).share else f"{value:.1f}"


def _labels(names: Sequence[str]) -> Iterator[str]:
    return (word(name).label.lower() for name in names)


def _short(name: str) -> str:
    return name.removesuffix("-generated")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_short, names))
