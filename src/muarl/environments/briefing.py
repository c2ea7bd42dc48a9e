"""What an agent is told before a conversation begins: for those who serve it by other means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muarl.basics.errors import ConfigError
from muarl.config import load_config
from muarl.environments.configure import configure_environment
from muarl.environments.registry import find
from muarl.types.chat import ToolSpec


@dataclass(frozen=True, slots=True)
class Briefing:
    """``policy``: the system message; ``tools``: in the order in which the agent sees them; ``size``: empty for an
    environment that comes in one."""

    policy: str
    tools: Sequence[ToolSpec]
    size: str = ""


def briefing(name: str, size: str | None = None) -> Briefing:
    """The policy and tools of a domain, of its first test task where they depend on the task. ``size`` None: the
    smallest. ConfigError for a size that it does not come in; DataError for a benchmark whose files are missing."""
    declared = find(name)
    if size is not None and declared.sizes:
        declared.check_size(size, "--size")
    elif size is not None:
        raise ConfigError(f"--size: {name} has only one size; remove --size")
    elif declared.sizes:
        size = declared.sizes[0]
    settings = [] if size is None else [f"domain.size={size}"]
    environment = configure_environment(load_config("cpu", [f"domain.name={name}", *settings]), measuring=True)
    task = environment.example_task("test")
    return Briefing(environment.system_prompt(task), environment.tools(task), size or "")
