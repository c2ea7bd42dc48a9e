"""What a service is declared with: who its customers are, what they ask for, and how each request is served.

    from muarl.kit import Identity, Plan, Service, Slot, environment, intent

``environment(Service(...))`` is an environment that every command takes: tasks with gold actions, a scripted expert, a
rule-based user, audit rules and red-team tasks all follow from the declaration. See docs/kit.md.
"""

from __future__ import annotations

from muarl import moved
from muarl.domains.auditing import Obligation, Resource
from muarl.domains.kit.authority import Limit
from muarl.domains.kit.colleague import ApprovalDomain, ApprovalRequest, Colleague
from muarl.domains.kit.consulting import consult
from muarl.domains.kit.declaration import (
    Draw,
    DrawContext,
    Fact,
    Identity,
    Intent,
    RecordDescription,
    Remedy,
    Slot,
    days,
    intent,
    names,
    of,
    one_of,
    own,
    pattern,
    rows,
    words,
)
from muarl.domains.kit.device import BrokenDevice, Device, Step, Trouble
from muarl.domains.kit.people import Maker, shift
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl.domains.kit.service import Service, WorldSize
from muarl.environments.service import environment
from muarl.environments.services import shared_environment
from muarl.language.values import Mention, ValueKind

__all__ = [
    "ApprovalDomain", "ApprovalRequest", "BrokenDevice", "Colleague", "Device", "Draw", "DrawContext", "Fact",
    "Identity", "Intent", "Limit", "Maker", "Mention", "Obligation", "Plan", "Record", "RecordDescription", "Remedy",
    "Resource", "Service", "Slot", "Step", "Trouble", "ValueKind", "WorldSize", "consult", "days", "environment",
    "intent", "names", "of", "one_of", "own", "pattern", "rows", "shared_environment", "shift", "words",
]  # fmt: skip


moved.keep_old_names(__name__)
