"""What an agent is told before a conversation begins: for those who serve it by other means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muarl.chat import ToolSpec
from muarl.config import load_config
from muarl.domains.generated import NAMES, ON_SERVERS, generated
from muarl.errors import ConfigError
from muarl.recipes.setting import make_setting


@dataclass(frozen=True, slots=True)
class Briefing:
    """``policy``: the system message; ``tools``: in the order in which the agent sees them; ``size``: of a generated
    domain, empty for a benchmark."""

    policy: str
    tools: Sequence[ToolSpec]
    size: str = ""


def briefing(name: str, size: str | None = None) -> Briefing:
    """The policy and tools of a domain, of its first test task where they depend on the task. ``size`` None: the
    smallest. ConfigError for a size that it does not come in; DataError for a benchmark whose files are missing."""
    own = name in (*NAMES, *ON_SERVERS)
    if own:
        sizes = generated(name).sizes
        size = size or sizes[0]
        if size not in sizes:
            raise ConfigError(f"--size: {size!r} is unknown; {name} has {', '.join(sizes)}")
        settings = [f"domain.size={size}"]
    elif size is not None:
        raise ConfigError(f"--size: {name} is a benchmark, which comes in one size; leave it out")
    else:
        settings = ["eval_user.kind=llm", "eval_user.endpoint={model: nobody}"]
    setting = make_setting(load_config("cpu", [f"domain.name={name}", *settings]), measuring=True)
    task = setting.some_task("test")
    return Briefing(setting.told(task), setting.tools(task), size or "")
