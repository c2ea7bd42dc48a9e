"""The run report: one HTML file that shows a newcomer what a run did. No scripts, no requests to anywhere.

``write_report(path, data)`` writes it; ``collect(run)`` gathers its data from a run directory's files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from muarl.accounts.statistics import evaluate_summary
from muarl.audit.findings import Finding, read_findings
from muarl.basics.files import write_text
from muarl.observe.headline import headline_of, what_went_wrong
from muarl.observe.rundir import RunDirectory
from muarl.pages.conversations import choose_tasks, conversation, gold_list, verdict_chips
from muarl.pages.markup import Child, Html, join, tag
from muarl.report.report_audit import audit_section, finding_notes
from muarl.report.report_curves import learning_section
from muarl.report.report_domains import domains_section
from muarl.report.report_story import notice, scores_section, story
from muarl.report.report_tables import (
    ReportStage,
    behaviour_section,
    kinds_section,
    setup_section,
    users_section,
)
from muarl.types.episode import Episode
from muarl.user_errors.errors import RULES

BEFORE, AFTER = "after the cold start", "after reinforcement learning"
UNTRAINED = "before reinforcement learning"
"""What comes before where a run's figures show reinforcement learning and no cold start."""
STAGES = (
    ("cold_start", "Cold start", BEFORE, "before"),
    ("rl", "RL", AFTER, "after"),
    ("evaluation", "Score", "", "after"),
)
"""Blocks of summary.json that are evaluations; "evaluation" is what ``muarl eval`` writes."""


@dataclass(frozen=True)
class ReportData:
    """Everything the report shows. Every part may be missing; what is missing is left out, or said to be missing.

    ``name``: of the run. ``summary``: as in summary.json. ``metrics``: rows as in metrics.jsonl. ``before``, ``after``:
    the evaluation's episodes after the cold start and after RL, on the same tasks. ``tasks``: task id to a mapping
    with "scenario" and "actions" (gold actions: mappings with "name" and "arguments"). ``config``: YAML text.
    ``versions``, ``status``: as in versions.json and status.json. ``conversations``: how many tasks are shown whole.
    ``findings``: the audit's, by the file of episodes and the episode's id; None if the run has none on record.
    ``files``: the names of those files, before and after.
    """

    name: str
    summary: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[Mapping[str, Any]] = ()
    before: Sequence[Episode] = ()
    after: Sequence[Episode] = ()
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    config: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    conversations: int = 4
    findings: Mapping[tuple[str, str], Sequence[Finding]] | None = None
    files: tuple[str, str] = ("eval-before", "eval-after")

    @property
    def before_text(self) -> str:
        """When the first of two evaluations was."""
        phases = {row.get("phase") for row in self.metrics}
        return UNTRAINED if "rl" in phases and not phases & {"cold_start", "sft"} else BEFORE

    def found(self, file: str, episode: Episode) -> Sequence[Finding] | None:
        """What the audit found in an episode; None if nobody knows."""
        return None if self.findings is None else self.findings.get((file, episode.id), ())


def collect(run: RunDirectory) -> ReportData:
    """The report's data from a run's files. What summary.json lacks of its evaluations is measured again from their
    episodes. MuarlError names a file that is broken."""
    before, after = run.read_episodes("eval-before"), run.read_episodes("eval-after")
    alone = [] if before or after else run.read_episodes("eval")
    summary = dict(run.read_json("summary"))
    for key, episodes in (("cold_start", before), ("rl", after), ("evaluation", alone)):
        if episodes:
            given = summary.get(key)
            summary[key] = {**evaluate_summary(episodes), **(given if isinstance(given, Mapping) else {})}
    return ReportData(
        name=run.name,
        summary=summary,
        metrics=run.read_metrics(),
        before=before,
        after=after or alone,
        tasks=run.read_tasks(),
        config=run.read_config(),
        versions=run.read_json("versions"),
        status=run.read_json("status"),
        findings=_findings(run.path / "findings.jsonl"),
        files=("eval-before", "eval" if alone else "eval-after"),
    )


def _findings(path: Path) -> dict[tuple[str, str], list[Finding]] | None:
    """By file and episode what an audit found; None if there was none. DataError names a line that is broken."""
    if not path.is_file():
        return None
    found: dict[tuple[str, str], list[Finding]] = {}
    for where, finding in read_findings(path):
        found.setdefault((str(where.get("file")), str(where.get("episode"))), []).append(finding)
    return found


def write_report(path: str | Path, data: ReportData) -> Path:
    """Write the report whole or not at all; returns its path. MuarlError if the disk is full."""
    write_text(Path(path), render(data))
    return Path(path)


def render(data: ReportData) -> str:
    """The report as a complete HTML document."""
    phases = {str(row.get("phase", "")) for row in data.metrics}
    if data.before_text == BEFORE:
        phases |= {key for key in ("cold_start", "rl") if isinstance(data.summary.get(key), Mapping)}
    stages = stages_of(data.summary, data.before_text)
    sections = [
        ("scores", "Scores", scores_section(data.summary, stages)),
        ("audit", "Audit", audit_section(data.summary)),
        ("learning", "Learning", learning_section(data.metrics)),
        ("behaviour", "Behaviour", behaviour_section(stages)),
        ("domains", "By domain", domains_section(data.summary, stages, data.metrics)),
        ("kinds", "By task type", kinds_section(stages)),
        ("customers", "Simulator errors", users_section(data.summary, RULES)),
        ("conversations", "Conversations", _conversations(data)),
        ("setup", "Setup", setup_section(data.summary, data.metrics, data.config, data.versions)),
    ]
    top = (
        tag("p", "muarl · run report", class_="eyebrow"),
        tag("h1", data.name),
        notice(data.status, bool(stages)),
        [tag("div", text, class_="notice") for text in what_went_wrong(data.metrics)],
        tag("p", story(data.summary, stages, phases), class_="lede"),
    )
    foot = tag(
        "p",
        f"Made by muarl {data.versions.get('muarl') or ''} from the run’s own files; ",
        tag("code", "muarl report"),
        " makes it again.",
    )
    return sectioned(f"{data.name} · muarl run report", top, sections, foot)


def sectioned(title: str, top: Child, sections: Iterable[tuple[str, str, Html | None]], foot: Child) -> str:
    """A document of sections, each an id, a name and its content (None: it is left out), below ``top`` and a list of
    links to them."""
    shown = [(key, name, body) for key, name, body in sections if body is not None]
    links = tag("nav", [tag("a", name, href=f"#{key}") for key, name, _ in shown], aria_label="Sections")
    main = tag("main", [tag("section", tag("h2", name), body, id=key) for key, name, body in shown])
    return document(title, join(tag("header", top, links, class_="top"), main, tag("footer", foot)))


def document(title: str, body: Html) -> str:
    """A complete HTML document in the report's style, without scripts or requests."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # The page holds what models wrote. It is escaped; this makes the browser refuse scripts and requests besides.
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
        ),
        tag("title", title),
        tag("style", Html(_css())),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def stages_of(summary: Mapping[str, Any], before: str = BEFORE) -> list[ReportStage]:
    """The evaluations that a summary holds, in the order of the run. ``before``: when the first one was."""
    found: list[ReportStage] = []
    for key, short, long, colour in STAGES:
        if key == "cold_start" and before != BEFORE:
            short, long = "Before RL", before
        block = summary.get(key)
        if (
            isinstance(block, Mapping)
            and (stage := ReportStage(short, long, colour, block, headline_of(summary, key))).success is not None
        ):
            found.append(stage)
    return found[:2]


def _css() -> str:
    return resources.files("muarl.report").joinpath("report.css").read_text(encoding="utf-8")


def _conversations(data: ReportData) -> Html | None:
    pairs = choose_tasks(data.before, data.after, data.conversations)
    first, last = data.files
    if not pairs:
        known = [*((last, e) for e in data.after), *((first, e) for e in data.before)]
        single = [(file, e) for file, e in known if e.verdict is not None][: data.conversations]
        if not single:
            return None
        return join([_task(data, i, e, [("the conversation", file, e)]) for i, (file, e) in enumerate(single)])
    intro = tag(
        "p",
        "The same task and customer before and after training. Tasks are selected by rule: some newly solved, one "
        "still failing and one newly failing, if there are any.",
        class_="soft",
    )
    return join(
        intro, [_task(data, i, b, [(data.before_text, first, b), (AFTER, last, a)]) for i, (b, a) in enumerate(pairs)]
    )


def _task(data: ReportData, index: int, episode: Episode, columns: Iterable[tuple[str, str, Episode]]) -> Html:
    """A task and what came of it. ``columns``: (head, file of episodes, episode)."""
    task = data.tasks.get(episode.task_id, {})
    tags = [
        tag("span", f"{key}: {str(value).replace('_', ' ')}", class_="chip")
        for key, value in episode.tags.items()
        if key in ("persona", "difficulty")
    ]
    scenario = task.get("scenario")
    intent = str(episode.tags.get("intent") or f"Task {episode.task_id}").replace("_", " ")
    actions = task.get("actions") if isinstance(task.get("actions"), Sequence) else None
    gold = [a for a in actions or () if isinstance(a, Mapping)]
    talks = [
        tag(
            "div",
            tag("h4", label),
            verdict_chips(e),
            tag(
                "details",
                tag("summary", f"Conversation, {len(e.messages)} messages"),
                conversation(e.messages, gold, finding_notes(found or ()), found),
                open=index == 0,
            ),
        )
        for label, file, e in columns
        for found in (data.found(file, e),)
    ]
    return tag(
        "article",
        tag("h3", intent[:1].upper() + intent[1:]),
        tag("div", tags, tag("span", f"task {episode.task_id}", class_="chip")),
        tag("details", tag("summary", "What the customer wants"), tag("p", str(scenario), class_="scenario"))
        if scenario
        else None,
        tag(
            "details",
            tag("summary", "Gold actions"),
            gold_list(None if actions is None else gold),
            open=index == 0,
        )
        if task
        else None,
        tag("div", talks, class_="pair"),
        class_="task",
    )
