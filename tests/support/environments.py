"""The environments that come with muarl, by kind, and their rule-based users."""

from __future__ import annotations

from typing import Any

from muarl.domains.auditing import AuditRules
from muarl.environments.registry import built_in, environment_of, find
from muarl.users.agenda import AgendaUserFactory
from muarl_worlds.data import TASK_SETS

MADE = tuple(name for name in built_in() if name.endswith("-generated"))
"""Those whose worlds and tasks are made from seeds, in this process."""
ON_SERVERS = tuple(name for name in built_in() if name.startswith("mcp-"))
"""Those whose tools run on MCP servers."""
BENCHMARKS = tuple(name for name in built_in() if name not in (*MADE, *ON_SERVERS) and not name.startswith(TASK_SETS))


def rules_of(domain: str, *, benchmark: bool = False) -> AuditRules:
    """The audit rules for tasks of a domain: of the environment with made tasks, or of the ``benchmark``."""
    environment = environment_of(domain, benchmark=benchmark)
    assert environment is not None, domain
    return environment.audit_rules()


def users_of(name: str, **options: Any) -> AgendaUserFactory:
    """The rule-based users of an environment: by its name, or by that of its tasks' domain."""
    name = name if name in built_in() else f"{name}-generated"
    return AgendaUserFactory(find(name).rule_based_user, **options)
