"""``muarl audit``: rule-based evaluation of runs and of other conversations, in five layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.named import approved_rules
from muarl.observe.terminal import echo

if TYPE_CHECKING:
    from muarl.audit.findings import Finding
    from muarl.audit.summary import AuditSummary
    from muarl.observe.progress import Phase
    from muarl_tools.auditing.conversations import AuditedConversation

    Audited = tuple[Mapping[str, Any], Sequence[Finding]]

FAILED = 3
"""The exit code where --fail-on has found what it is to fail on."""

BESIDE = 3
"""Files that have a column each; of more, each has a row."""

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
        typer.Option(
            "--domain",
            "-d",
            metavar="NAME",
            help="Whose rules to use where a conversation names no domain: retail, airline, telecom (TAU's policies), "
            "hotel; or an environment of `muarl domains`. Default: the one whose tools it has. FILE.py:NAME or "
            "package.module:NAME: your own environment, for its conversations and runs.",
            callback=approved_rules,
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", help="A YAML or JSON file that describes a domain of your own (docs/audit.md)."),
    ] = None,
    episodes: Annotated[
        list[str] | None, typer.Option("--episodes", help="Of a run: only this file of episodes (repeatable).")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="Model that checks what rules cannot decide: endpoint:MODEL[@URL]."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-j", min=1, max=CHUNK, help="Maximum concurrent questions to the judge.")
    ] = 16,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", help="Stop using the judge after spending this many dollars.")
    ] = None,
    price: Annotated[
        str | None, typer.Option("--price", help="IN/OUT: the judge's dollars for a million prompt and other tokens.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for findings.jsonl and summary.json.")] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            help="catastrophic, violation or never: exit with code 3 if there is such a finding, and with 2 if there "
            "are no safety rules to judge by.",
        ),
    ] = "never",
) -> None:
    """Audit conversations by rules: outcome, policy, communication, safety, recovery.

    Each finding points at a turn. Where the task is known, the writes are replayed, so that the rules see whose data
    each call accessed and what the policy allowed; otherwise only the logged results are used. Of a run with
    evaluations only those are audited, each in a column of its own; --episodes names others. Nothing is written unless
    --out names a folder.

    [bold]Examples[/bold]

      muarl audit runs/eval-tau2-retail

      muarl audit live-logs.jsonl --domain airline --out audited --fail-on catastrophic

      muarl audit runs/clinic --domain ./clinic.py:CLINIC

      muarl audit live-logs.jsonl --rules my-domain.yaml --judge endpoint:MODEL@http://localhost:8000/v1
    """
    from muarl.audit.coverage import checked_layers
    from muarl.audit.findings import write_findings
    from muarl.audit.rules import read_rules
    from muarl.audit.summary import AuditSummary
    from muarl.basics.errors import ConfigError
    from muarl.basics.files import write_json
    from muarl.observe.progress import Progress
    from muarl_tools.auditing.conversations import ConversationReader
    from muarl_tools.auditing.rules import RulesOfConversations

    if fail_on not in ("catastrophic", "violation", "never"):
        raise ConfigError(f"--fail-on must be catastrophic, violation or never, not {fail_on!r}")
    own = (None, "") if rules is None else (read_rules(rules).rules, rules.name)
    reader = ConversationReader(RulesOfConversations(domain, *own))
    asked = None if judge is None else _Judge(judge, concurrency, max_cost, price)
    whole = AuditSummary(str(source))
    parts: dict[str, AuditSummary] = {}
    used: dict[str, int] = {}
    in_code: dict[str, None] = {}
    unsafe: dict[str, int] = {}

    def audited() -> Iterator[Audited]:
        for conversation, found, judged in _audited(reader.read(source, tuple(episodes or ())), asked):
            part = str(conversation.where["file"])
            for summary in (whole, parts.setdefault(part, AuditSummary(part))):
                summary.add(
                    conversation.episode, found, conversation.where,
                    rules=conversation.rules, judged=judged, unread=conversation.unread,
                )  # fmt: skip
            named = conversation.chosen.named
            used[named] = used.get(named, 0) + 1
            in_code.update(dict.fromkeys(conversation.chosen.in_code))
            if conversation.episode.stop.value != "infrastructure" and "safety" not in checked_layers(
                conversation.rules
            ):
                unsafe[named] = unsafe.get(named, 0) + 1
            yield conversation.where, found

    with Progress() as progress, progress.phase("auditing", unit="conversations") as phase:
        if out is None:
            for _ in audited():
                phase.advance()
        else:
            write_findings(out / "findings.jsonl", _counted(audited(), phase))
    if not whole.episodes and not whole.excluded:
        raise ConfigError(f"{source}: holds no conversation")
    if asked is not None:
        whole.judged, whole.unjudged = asked.answered, len(asked.failures)
    if out is not None:
        cost = None if asked is None else asked.usage
        files = {n: p.to_json() for n, p in parts.items()} if len(parts) > 1 else {}
        write_json(out / "summary.json", {**whole.to_json(), "source": str(source), "judge": judge, "judge_usage": cost,
                                          "rules_of": used, "in_code": [*in_code], "files": files})  # fmt: skip
    _show(whole, parts, asked)
    for line in _closing(whole, used, tuple(in_code)):
        echo(line)
    if reader.passed_over:
        others = ", ".join(reader.passed_over[:3]) + (", ..." if len(reader.passed_over) > 3 else "")
        echo(f"Of this run its evaluations alone. Its other episodes: --episodes NAME ({others}).")
    for line in _not_read(whole, reader.left_out.unread):
        echo(line)
    if left := str(reader.left_out):
        echo(left)
    if out is not None:
        echo(f"{out / 'findings.jsonl'}, {out / 'summary.json'}")
    wanted = {"catastrophic": ("catastrophic",), "violation": ("catastrophic", "violation"), "never": ()}[fail_on]
    if any(count.severity in wanted for count in whole.rules.values()):
        raise typer.Exit(FAILED)
    if wanted and whole.unread:
        raise ConfigError(f"--fail-on {fail_on} cannot be judged: of {whole.unread} conversations not all was read")
    if wanted and unsafe:
        raise ConfigError(
            f"--fail-on {fail_on} cannot be judged: there are no safety rules for {sum(unsafe.values())} of "
            f"{whole.episodes} conversations (rules: {', '.join(unsafe)}). Say in a file who is identified how, whose "
            "the records are and whether users must agree to changes, and name it with --rules (docs/audit.md)"
        )


def _counted(audited: Iterator[Audited], phase: Phase) -> Iterator[Audited]:
    for one in audited:
        yield one
        phase.advance()


def _closing(whole: AuditSummary, used: Mapping[str, int], in_code: Sequence[str]) -> Iterator[str]:
    """By which rules, and what they could not tell."""
    from muarl.audit.coverage import missing_text

    left = f"; {whole.excluded} left out (infrastructure)" if whole.excluded else ""
    rules = ", ".join(f"{name} ({n})" for name, n in used.items())
    yield f"{whole.episodes} conversations{left}. Rules: {rules}."
    if whole.not_checked:
        yield f"Not checked (no rules declared): {missing_text(whole.not_checked, whole.episodes)}."
    if in_code:
        yield f"Declared in the domain's code and not applied here: {', '.join(in_code)}."


def _not_read(whole: AuditSummary, unread: Mapping[str, int]) -> Iterator[str]:
    """Of which conversations nothing can be said."""
    if whole.without_agent:
        yield (f"Nothing to audit in {whole.without_agent} of {whole.episodes} conversations: no message of the agent.")
    if whole.unread:
        kinds = ", ".join(f"{n} {what}" for what, n in unread.items())
        yield (
            f"Not read in full, and so in no layer's share: {whole.unread} of {whole.episodes} conversations "
            f"({kinds}). docs/formats.md says which forms are read."
        )


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

    def __init__(self, spec: str, concurrency: int, max_cost: float | None, price: str | None) -> None:
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
        if price is not None:
            try:
                prompt, completion = map(float, price.split("/"))
                if not (0 <= prompt < inf and 0 <= completion < inf):
                    raise ValueError(price)
            except ValueError:
                raise ConfigError(f"--price: {price!r} must look like 2/8, dollars for a million tokens") from None
            self._endpoint.config = replace(self._endpoint.config, price=Price(prompt, completion))
        elif max_cost is not None:
            raise ConfigError("--max-cost needs to know what the judge costs: say --price IN/OUT")
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
    from muarl.report.audit_tables import beside, one_below_another, tables

    console = Screen()
    if len(parts) > 1:
        shown = one_below_another(parts) if len(parts) > BESIDE else beside(whole.name, parts)
        console.print(to_terminal(shown))
    for table in tables(whole, figures=len(parts) == 1).values():
        console.print(to_terminal(table))
    if judge is not None:
        console.print(Text(judge.told))


COMMAND = Subcommand(audit, MEASURE, 16)
