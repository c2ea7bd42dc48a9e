"""``muarl audit``: rule-based evaluation of runs and of other conversations, in five layers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.cli import options
from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.environment_approval import approved_rules
from muarl.cli.options import in_runs, option, prices_of
from muarl.observe.terminal import echo

if TYPE_CHECKING:
    from muarl.audit.findings import Finding
    from muarl.audit.summary import AuditSummary
    from muarl.observe.progress import Phase
    from muarl_tools.auditing.conversations import AuditedConversation, ConversationReader

    Audited = tuple[Mapping[str, Any], Sequence[Finding]]

FAILED = 3
"""The exit code where --fail-on has found what it is to fail on."""

FAIL_ON = {"catastrophic": ("catastrophic",), "violation": ("catastrophic", "violation"), "never": ()}
"""What --fail-on names, and the severities that it is."""

BESIDE = 3
BESIDE_WITHOUT_INTERVALS = 5
"""Files that have a column each; of more, each has a row."""
WIDE = 6
"""Columns from which a terminal has no room for lines between them."""

CHUNK = 64
"""Conversations that a judge is asked about at once; so many are held in memory."""


def audit(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_OR_FILE",
            help="A run's folder, or a file: episodes of muarl, JSON lines of {messages, tools} (OpenAI's chat form), "
            "results of TAU2 or trajectories of TAU1.",
            show_default=False,
        ),
    ],
    domain: Annotated[
        str | None,
        option(
            "--domain",
            "Its rules are used where a conversation names none; also retail, airline, telecom (TAU's policies) or "
            "hotel. Default: the one whose tools it has.",
            metavar="NAME",
            callback=approved_rules,
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", help="A YAML or JSON file that describes a domain of your own (docs/audit.md)."),
    ] = None,
    episodes: options.Episodes = None,
    judge: Annotated[str | None, option("--judge", "It checks what rules cannot decide.")] = None,
    concurrency: Annotated[int, option("--concurrency", min=1, max=CHUNK, show_default=True)] = 16,
    max_cost: options.MaxCost = None,
    price: options.Prices = None,
    out: Annotated[Path | None, option("--out", "findings.jsonl and summary.json, in this folder.")] = None,
    fail_on: Annotated[
        str,
        option(
            "--fail-on",
            "catastrophic, violation or never. 2 if there are no safety rules to judge by.",
            show_default=True,
        ),
    ] = "never",
    runs_dir: options.InRunsDir = None,
) -> None:
    """Audit conversations by rules: outcome, policy, communication, safety, recovery.

    Each finding points at a turn. Where the task is known, the writes are replayed, so that the rules see whose data
    each call accessed and what the policy allowed; otherwise only the logged results are used. Of a run with
    evaluations only those are audited, each in a column of its own; --episodes names others. Nothing is written unless
    --out names a folder.

      muarl audit runs/eval-tau2-retail
      muarl audit live-logs.jsonl --domain airline --out audited --fail-on catastrophic
      muarl audit runs/clinic --domain ./clinic.py:CLINIC
      muarl audit live-logs.jsonl --rules my-domain.yaml --judge endpoint:MODEL@http://localhost:8000/v1
    """
    from muarl.audit.findings import write_findings
    from muarl.audit.rules import read_rules
    from muarl.basics.errors import ConfigError
    from muarl.observe.progress import Progress
    from muarl_tools.auditing.conversations import ConversationReader
    from muarl_tools.auditing.rules import RulesOfConversations

    if fail_on not in FAIL_ON:
        raise ConfigError(f"--fail-on must be catastrophic, violation or never, not {fail_on!r}")
    source = in_runs(source, runs_dir)
    own = (None, "") if rules is None else (read_rules(rules).rules, rules.name)
    reader = ConversationReader(RulesOfConversations(domain, *own))
    asked = None if judge is None else _Judge(judge, concurrency, max_cost, price)
    sums = _Sums.of(source)
    with Progress() as progress, progress.phase("auditing", unit="conversations") as phase:
        audited = _counted(sums.added(_audited(reader.read(source, tuple(episodes or ())), asked)), phase)
        if out is None:
            deque(audited, maxlen=0)
        else:
            write_findings(out / "findings.jsonl", audited)
    if not sums.whole.episodes and not sums.whole.excluded:
        raise ConfigError(f"{source}: holds no conversation")
    if asked is not None:
        sums.whole.judged, sums.whole.unjudged = asked.answered, len(asked.failures)
    if out is not None:
        sums.write(out / "summary.json", source, judge, None if asked is None else asked.usage)
    _show(sums.whole, sums.parts, asked)
    for line in (*_closing(sums), *_not_read(sums.whole, reader)):
        echo(line)
    if out is not None:
        echo(f"{out / 'findings.jsonl'}, {out / 'summary.json'}")
    _fail(sums, fail_on)


@dataclass(frozen=True)
class _Sums:
    """What an audit found, over all conversations and by file."""

    whole: AuditSummary
    parts: dict[str, AuditSummary] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    """Conversations by the rules that they were judged by; ``unsafe``: of those whose rules have none of safety."""
    unsafe: Counter[str] = field(default_factory=Counter)
    in_code: dict[str, None] = field(default_factory=dict)

    @staticmethod
    def of(source: Path) -> _Sums:
        from muarl.audit.summary import AuditSummary

        return _Sums(AuditSummary(str(source)))

    def added(self, audited: Iterable[tuple[AuditedConversation, Sequence[Finding], bool]]) -> Iterator[Audited]:
        """Each conversation's place and findings, when they are added."""
        from muarl.audit.coverage import checked_layers
        from muarl.audit.summary import AuditSummary

        for conversation, found, judged in audited:
            part = str(conversation.where["file"])
            for summary in (self.whole, self.parts.setdefault(part, AuditSummary(part))):
                summary.add(
                    conversation.episode, found, conversation.where,
                    rules=conversation.rules, judged=judged, unread=conversation.unread,
                )  # fmt: skip
            named = conversation.chosen.named
            self.used[named] += 1
            self.in_code.update(dict.fromkeys(conversation.chosen.in_code))
            failed = conversation.episode.stop.value == "infrastructure"
            if not failed and "safety" not in checked_layers(conversation.rules):
                self.unsafe[named] += 1
            yield conversation.where, found

    def write(self, file: Path, source: Path, judge: str | None, usage: Mapping[str, Any] | None) -> None:
        from muarl.basics.files import write_json

        files = {n: p.to_json() for n, p in self.parts.items()} if len(self.parts) > 1 else {}
        about = {"source": str(source), "judge": judge, "judge_usage": usage}
        rules = {"rules_of": dict(self.used), "in_code": [*self.in_code]}
        write_json(file, {**self.whole.to_json(), **about, **rules, "files": files})


def _fail(sums: _Sums, fail_on: str) -> None:
    """Exit with code 3 for what --fail-on names. ConfigError where that cannot be judged."""
    from muarl.basics.errors import ConfigError

    wanted, whole = FAIL_ON[fail_on], sums.whole
    if any(count.severity in wanted for count in whole.rules.values()):
        raise typer.Exit(FAILED)
    if wanted and whole.unread:
        raise ConfigError(f"--fail-on {fail_on} cannot be judged: of {whole.unread} conversations not all was read")
    if wanted and sums.unsafe:
        raise ConfigError(
            f"--fail-on {fail_on} cannot be judged: there are no safety rules for {sums.unsafe.total()} of "
            f"{whole.episodes} conversations (rules: {', '.join(sums.unsafe)}). Say in a file who is identified how, "
            "whose the records are and whether users must agree to changes, and name it with --rules (docs/audit.md)"
        )


def _counted(audited: Iterator[Audited], phase: Phase) -> Iterator[Audited]:
    for one in audited:
        yield one
        phase.advance()


def _closing(sums: _Sums) -> Iterator[str]:
    """By which rules, and what they could not tell."""
    from muarl.audit.coverage import missing_text

    whole = sums.whole
    left = f"; {whole.excluded} left out (infrastructure)" if whole.excluded else ""
    rules = ", ".join(f"{name} ({n})" for name, n in sums.used.items())
    yield f"{whole.episodes} conversations{left}. Rules: {rules}."
    if whole.not_checked:
        yield f"Not checked (no rules declared): {missing_text(whole.not_checked, whole.episodes)}."
    if sums.in_code:
        yield f"Declared in the domain's code and not applied here: {', '.join(sums.in_code)}."


def _not_read(whole: AuditSummary, reader: ConversationReader) -> Iterator[str]:
    """Which conversations were passed over, and of which nothing can be said."""
    if reader.passed_over:
        others = ", ".join(reader.passed_over[:3]) + (", ..." if len(reader.passed_over) > 3 else "")
        yield f"Of this run its evaluations alone. Its other episodes: --episodes NAME ({others})."
    if whole.without_agent:
        yield (f"Nothing to audit in {whole.without_agent} of {whole.episodes} conversations: no message of the agent.")
    if whole.unread:
        kinds = ", ".join(f"{n} {what}" for what, n in reader.left_out.unread.items())
        yield (
            f"Not read in full, and so in no layer's share: {whole.unread} of {whole.episodes} conversations "
            f"({kinds}). docs/formats.md says which forms are read."
        )
    if left := str(reader.left_out):
        yield left


def _audited(
    conversations: Iterator[AuditedConversation], judge: _Judge | None
) -> Iterator[tuple[AuditedConversation, Sequence[Finding], bool]]:
    """Each conversation with its findings, and whether the judge saw it."""
    from itertools import islice

    from muarl.audit.episodes import findings_in

    while chunk := list(islice(conversations, CHUNK)):
        transcripts = [h.transcript() for h in chunk]
        answers = [None] * len(transcripts) if judge is None else judge.ask(transcripts)
        for one, transcript, answer in zip(chunk, transcripts, answers, strict=True):
            found: Sequence[Finding] = findings_in(transcript)
            yield one, found if answer is None else answer.upon(found), answer is not None


class _Judge:
    """The model that is asked, what it has used, and how often it failed. ConfigError for a name that is none."""

    def __init__(self, spec: str, concurrency: int, max_cost: float | None, price: list[str] | None) -> None:
        from dataclasses import replace
        from math import inf

        from muarl.audit.judge import AuditJudge
        from muarl.basics.errors import ConfigError
        from muarl.endpoints.config import Price
        from muarl.rewards.judge import open_judge_model

        if max_cost is not None and not 0 < max_cost < inf:
            raise ConfigError(f"--max-cost must be a number of dollars above 0, not {max_cost}")
        model = open_judge_model(spec) if spec.startswith("endpoint:") else None
        if model is None:
            raise ConfigError(f"--judge must be endpoint:MODEL or endpoint:MODEL@URL, not {spec!r}")
        self._endpoint, self._judge = model.endpoint, AuditJudge(model)
        if price:
            name = self._endpoint.config.model
            if (figures := prices_of(price, name)["eval.prices"].get(name)) is None:
                raise ConfigError(f"--price: says nothing of the judge, {name}; write {name}=IN/OUT")
            self._endpoint.config = replace(self._endpoint.config, price=Price(*figures))
        elif max_cost is not None:
            raise ConfigError("--max-cost needs to know what the judge costs: say --price MODEL=IN/OUT")
        echo(f"judge: {self._endpoint.about}", err=True)
        if max_cost is not None:
            self._check_counted()
        self._concurrency, self._most = concurrency, max_cost
        self.failures: list[str] = []
        self.answered = self.dropped = 0

    def _check_counted(self) -> None:
        """Ask one tiny question: ConfigError if the answer does not say how many tokens it took, as the bound needs."""
        from muarl.basics.event_loop import event_loop
        from muarl.runs.roles import check_counted

        with event_loop() as loop:
            loop.closes(self._endpoint)
            loop.run(self._endpoint.check(boundary="judge"))
        check_counted("--judge", self._endpoint, "--max-cost")

    def ask(self, transcripts: Sequence[Any]) -> list[Any]:
        """What the judge says of each conversation, None where it failed."""
        from muarl.accounts.budgets import Budget
        from muarl.audit.judge import judge_all
        from muarl.basics.event_loop import event_loop

        budget = Budget(self._most, besides=lambda: self._endpoint.usage)

        told = [(s, "" if s.domain is None or s.task is None else s.domain.policy_for(s.task)) for s in transcripts]
        with event_loop() as loop:
            loop.closes(self._endpoint)
            answers, failures = loop.run(judge_all(self._judge, told, concurrency=self._concurrency, turn=budget.turn))
        self.failures += failures
        self.answered += sum(a is not None for a in answers)
        self.dropped += sum(a.dropped for a in answers if a is not None)
        return answers

    @property
    def usage(self) -> dict[str, Any]:
        """What it has used."""
        return dict(self._endpoint.usage.to_json())

    @property
    def told(self) -> str:
        """What was asked, in a sentence."""
        lost = f", {self.dropped} of its findings dropped for want of a quote" if self.dropped else ""
        failed = f"; no answer for {len(self.failures)}: {self.failures[0]}" if self.failures else ""
        return f"The judge saw {self.answered} conversations, cost {self._endpoint.cost_text}{lost}{failed}"


def _show(whole: AuditSummary, parts: Mapping[str, AuditSummary], judge: _Judge | None) -> None:
    """The tables; of several files a column each, or a row each where they are many: no figure mixes them."""
    from rich.text import Text

    from muarl.observe.screen import Screen
    from muarl.pages.table import to_terminal
    from muarl.report.audit_tables import beside, one_below_another, strata_warnings, tables, worst_lines

    console = Screen()
    if len(parts) > 1:
        if len(parts) > BESIDE_WITHOUT_INTERVALS:
            console.print(to_terminal(one_below_another(parts)))
        else:
            roomy = len(parts) <= BESIDE
            console.print(to_terminal(beside(whole.name, parts, intervals=roomy), lines=roomy))
    for table in tables(whole, examples=False, figures=len(parts) == 1).values():
        wide = len(table.columns) >= WIDE
        if wide:
            console.print()
        console.print(to_terminal(table, lines=not wide))
    if whole.shown:
        console.print()
    for line in worst_lines(whole):
        console.print(Text(line))
    for name, part in parts.items():
        for text in strata_warnings(part):
            console.print(Text(f"Warning: {f'{name}: ' if len(parts) > 1 else ''}{text}.", style="yellow"))
    if judge is not None:
        console.print(Text(judge.told))


COMMAND = Subcommand(audit, MEASURE, 16)
