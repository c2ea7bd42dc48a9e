"""The audit of one episode: every layer's findings, in the order of the conversation."""

from __future__ import annotations

from muarl.audit import communication, outcome, policy, recovery, safety
from muarl.audit.calls import KindOf
from muarl.audit.findings import LAYERS, Finding
from muarl.audit.transcript import Transcript, transcript_of
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.types.episode import Episode

FINDERS = (outcome.find, policy.find, communication.find, safety.find, recovery.find)


def audit_episode(
    episode: Episode,
    task: Task | None = None,
    *,
    domain: Domain | None = None,
    rules: AuditRules | None = None,
    kind_of: KindOf | None = None,
    beside: bool = False,
) -> tuple[Finding, ...]:
    """What an audit by rules finds in an episode.

    ``task`` and ``domain``: where they are known, the world is brought to the state before each call, so that it tells
    whose data are meant and whether a change was allowed; else what the tools' results show must do. ``rules``: instead
    of those that the domain's class declares; an environment's are ``Environment.audit_rules``. ``kind_of``: says of a
    tool whether it reads, writes or neither, where there is no domain. ``beside``: see ``Transcript``.
    """
    transcript = transcript_of(episode, task, domain=domain, rules=rules, kind_of=kind_of, beside=beside)
    return findings_in(transcript)


def findings_in(transcript: Transcript) -> tuple[Finding, ...]:
    """The findings of all layers in a transcript."""
    findings = [finding for find in FINDERS for finding in find(transcript)]
    return tuple(sorted(findings, key=lambda f: (f.message, LAYERS.index(f.layer), f.rule)))
