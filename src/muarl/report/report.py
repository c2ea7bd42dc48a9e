"""The run report: one HTML file that shows a newcomer what a run did. No scripts, no requests to anywhere.

``write_report(path, data)`` writes it; ``collect(run)`` gathers its data from a run directory's files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from muarl.accounts.evaluation_report import evaluate_summary
from muarl.accounts.metrics import GENERAL_TOOLS
from muarl.audit.findings import Finding, read_findings
from muarl.audit.rules import kept_rules, read_rules
from muarl.basics.files import write_text
from muarl.basics.json_values import mapping
from muarl.basics.untrusted import parse_yaml
from muarl.observe.rundir import RunDirectory
from muarl.pages.conversations import choose_tasks, conversation, gold_list, verdict_chips, wanted
from muarl.pages.markup import Child, Html, join, tag
from muarl.pages.templates import filled
from muarl.report.figures import RunFigures, nowhere, read_resumes
from muarl.report.report_audit import finding_notes
from muarl.report.sections import AFTER, Section, before_text, head_of, links_to, sections_of, shown
from muarl.types.episode import Episode

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The page holds what models wrote. It is escaped; this makes the browser refuse scripts and requests besides."""


@dataclass(frozen=True, eq=False)
class ReportData(RunFigures):
    """Everything the report shows: a run's figures, and the conversations from which some are chosen."""

    before: Sequence[Episode] = ()
    """The evaluation's episodes after the cold start."""
    after: Sequence[Episode] = ()
    """The evaluation's episodes after RL, on the same tasks."""
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Task id to a mapping with "scenario" and "actions" (gold actions: mappings with "name" and "arguments")."""
    conversations: int = 4
    """How many tasks are shown whole."""
    findings: Mapping[tuple[str, str], Sequence[Finding]] | None = None
    """The audit's, by the file of episodes and the episode's id; None if the run has none on record."""
    files: tuple[str, str] = ("eval-before", "eval-after")
    """The names of those files, before and after."""

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
            block = summary.get(key)
            summary[key] = {**evaluate_summary(episodes), **(block if isinstance(block, Mapping) else {})}
    config = run.read_config()
    return ReportData(
        name=run.name,
        summary=summary,
        metrics=run.read_metrics(),
        before=before,
        after=after or alone,
        tasks=run.read_tasks(),
        config=config,
        settings=settings_of(config),
        versions=run.read_json("versions"),
        status=run.read_json("status"),
        redteam=run.read_json("redteam"),
        resumes=read_resumes(run.path),
        general=GENERAL_TOOLS.union(*(read_rules(path).rules.transfer_tools for path in kept_rules(run.path))),
        findings=_findings(run.path / "findings.jsonl"),
        files=("eval-before", "eval" if alone else "eval-after"),
    )


def settings_of(config: str) -> Mapping[str, Any]:
    """What a configuration's text says; empty where it is no configuration."""
    try:
        return mapping(parse_yaml(config))
    except ValueError:
        return {}


def _findings(path: Path) -> dict[tuple[str, str], list[Finding]] | None:
    """By file and episode what an audit found; None if there was none. DataError names a line that is broken."""
    if not path.is_file():
        return None
    by_episode: dict[tuple[str, str], list[Finding]] = {}
    for where, finding in read_findings(path):
        by_episode.setdefault((str(where.get("file")), str(where.get("episode"))), []).append(finding)
    return by_episode


def write_report(path: str | Path, data: ReportData) -> Path:
    """Write the report whole or not at all; returns its path. MuarlError if the disk is full."""
    write_text(Path(path), render(data))
    return Path(path)


def render(data: ReportData) -> str:
    """The report as a complete HTML document: the viewer's overview of the run, and conversations."""
    top = tag("p", "muarl · run report", class_="eyebrow"), tag("h1", data.name), head_of(data)
    sections = sections_of(data, nowhere, ("episodes", "Whole conversations", _conversations(data)))
    foot = tag(
        "p",
        f"Made by muarl {data.versions.get('muarl') or ''} from the run’s own files; ",
        tag("code", "muarl report"),
        " makes it again.",
    )
    return sectioned(f"{data.name} · muarl run report", top, sections, foot)


def sectioned(title: str, top: Child, sections: Sequence[Section], foot: Child) -> str:
    """A document of sections below ``top`` and a list of links to them."""
    return document(title, filled("sectioned", top=top, links=links_to(sections), sections=shown(sections), foot=foot))


def document(title: str, body: Html) -> str:
    """A complete HTML document in the report's style, without scripts or requests."""
    return filled("document", title=title, policy=POLICY, css=Html(_css()), body=body)


def _css() -> str:
    return resources.files("muarl.report").joinpath("report.css").read_text(encoding="utf-8")


def _conversations(data: ReportData) -> Html | None:
    pairs = choose_tasks(data.before, data.after, data.conversations)
    first, last = data.files
    if not pairs:
        candidates = [*((last, e) for e in data.after), *((first, e) for e in data.before)]
        single = [(file, e) for file, e in candidates if e.verdict is not None][: data.conversations]
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
        intro, [_task(data, i, b, [(before_text(data), first, b), (AFTER, last, a)]) for i, (b, a) in enumerate(pairs)]
    )


def _task(data: ReportData, index: int, episode: Episode, columns: Iterable[tuple[str, str, Episode]]) -> Html:
    """A task and what came of it. ``columns``: (head, file of episodes, episode)."""
    task = data.tasks.get(episode.task_id, {})
    tags = [
        tag("span", f"{key}: {str(value).replace('_', ' ')}", class_="chip")
        for key, value in episode.tags.items()
        if key in ("persona", "difficulty")
    ]
    intent = str(episode.tags.get("intent") or f"Task {episode.task_id}").replace("_", " ")
    has_gold = isinstance(task.get("actions"), Sequence)
    gold = [a for a in task["actions"] if isinstance(a, Mapping)] if has_gold else []
    talks = [
        tag(
            "div",
            tag("h4", label),
            verdict_chips(e),
            tag(
                "details",
                tag("summary", f"Conversation, {len(e.messages)} messages"),
                conversation(e.messages, gold, finding_notes(findings or ()), findings),
                open=index == 0,
            ),
        )
        for label, file, e in columns
        for findings in (data.found(file, e),)
    ]
    return tag(
        "article",
        tag("h3", intent[:1].upper() + intent[1:]),
        tag("div", tags, tag("span", f"task {episode.task_id}", class_="chip")),
        wanted(task.get("scenario"), gold if has_gold else None, "customer", (False, index == 0)) if task else None,
        gold_list(None) if task and not has_gold else None,
        tag("div", talks, class_="pair"),
        class_="task",
    )
