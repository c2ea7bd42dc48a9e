"""muarl: train tool-using agents with reinforcement learning against simulated users, on a live database.

    import muarl

    shop = muarl.load_environment("retail-generated")
    report = asyncio.run(muarl.evaluate(shop, agent, tasks=100))

``__all__`` lists the names that a program needs; they stay, while the modules that they come from may move. docs/api.md
describes each in a line. Nothing is imported before it is used. What needs torch says so where it is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from muarl import moved
from muarl.basics.version import __version__ as __version__

moved.install()

if TYPE_CHECKING:
    from muarl.agents.base import Agent
    from muarl.agents.endpoint import EndpointAgent
    from muarl.agents.expert import ExpertAgent
    from muarl.agents.sampled import SampledAgent
    from muarl.audit.episodes import audit_episode
    from muarl.backends.models import load_checkpoint
    from muarl.basics.errors import MuarlError
    from muarl.domains.base import Domain, World
    from muarl.domains.database import Database
    from muarl.domains.faults.rates import FaultRates
    from muarl.domains.knowledge.discovery import discoverable
    from muarl.domains.knowledge.domain import KnowledgeDomain
    from muarl.domains.sql.declared import SqlDatabase
    from muarl.domains.tasks import Action, Task
    from muarl.domains.tooling import tool
    from muarl.endpoints.client import Endpoint
    from muarl.environments.environment import Environment
    from muarl.environments.play import evaluate, play, play_tasks
    from muarl.environments.registry import load_environment, load_task
    from muarl.environments.results import PlayResult
    from muarl.environments.session import Session
    from muarl.inference.base import Sampler
    from muarl.inference.torch_engine import TorchEngine
    from muarl.learning.advantages import group_samples
    from muarl.learning.learner import TorchLearner
    from muarl.learning.loss_options import PolicyLossConfig
    from muarl.learning.optimizer import OptimizerConfig
    from muarl.learning.settings import LearnerConfig
    from muarl.rewards.outcome import score
    from muarl.rollouts.conversation import run_episode
    from muarl.rollouts.rules import Limits, Rules
    from muarl.types.chat import Message, ToolCall
    from muarl.types.episode import Episode
    from muarl.users.base import User
    from muarl.users.llm import LLMUserFactory

__all__ = [
    # a place to practise
    "Domain",
    "tool",
    "KnowledgeDomain",
    "discoverable",
    "Database",
    "SqlDatabase",
    "Task",
    "Action",
    "World",
    "Environment",
    "load_environment",
    "load_task",
    "FaultRates",
    # who takes part
    "Agent",
    "User",
    "Message",
    "ToolCall",
    "Endpoint",
    "EndpointAgent",
    "LLMUserFactory",
    "ExpertAgent",
    # conversations and what they are worth
    "Rules",
    "Limits",
    "Episode",
    "run_episode",
    "play",
    "PlayResult",
    "Session",
    "play_tasks",
    "score",
    "audit_episode",
    "evaluate",
    # learning
    "load_checkpoint",
    "Sampler",
    "TorchEngine",
    "SampledAgent",
    "group_samples",
    "TorchLearner",
    "LearnerConfig",
    "OptimizerConfig",
    "PolicyLossConfig",
    # problems that a person can fix
    "MuarlError",
]

_HOMES = {
    "Action": "muarl.domains.tasks",
    "Agent": "muarl.agents.base",
    "Database": "muarl.domains.database",
    "FaultRates": "muarl.domains.faults.rates",
    "Domain": "muarl.domains.base",
    "Endpoint": "muarl.endpoints.client",
    "EndpointAgent": "muarl.agents.endpoint",
    "Environment": "muarl.environments.environment",
    "Episode": "muarl.types.episode",
    "ExpertAgent": "muarl.agents.expert",
    "KnowledgeDomain": "muarl.domains.knowledge.domain",
    "LLMUserFactory": "muarl.users.llm",
    "LearnerConfig": "muarl.learning.settings",
    "Limits": "muarl.rollouts.rules",
    "Message": "muarl.types.chat",
    "MuarlError": "muarl.basics.errors",
    "OptimizerConfig": "muarl.learning.optimizer",
    "PolicyLossConfig": "muarl.learning.loss_options",
    "PlayResult": "muarl.environments.results",
    "Rules": "muarl.rollouts.rules",
    "SampledAgent": "muarl.agents.sampled",
    "Sampler": "muarl.inference.base",
    "Session": "muarl.environments.session",
    "SqlDatabase": "muarl.domains.sql.declared",
    "Task": "muarl.domains.tasks",
    "ToolCall": "muarl.types.chat",
    "TorchEngine": "muarl.inference.torch_engine",
    "TorchLearner": "muarl.learning.learner",
    "User": "muarl.users.base",
    "World": "muarl.domains.base",
    "audit_episode": "muarl.audit.episodes",
    "discoverable": "muarl.domains.knowledge.discovery",
    "evaluate": "muarl.environments.play",
    "group_samples": "muarl.learning.advantages",
    "load_checkpoint": "muarl.backends.models",
    "load_environment": "muarl.environments.registry",
    "load_task": "muarl.environments.registry",
    "play": "muarl.environments.play",
    "play_tasks": "muarl.environments.play",
    "run_episode": "muarl.rollouts.conversation",
    "score": "muarl.rewards.outcome",
    "tool": "muarl.domains.tooling",
}
"""Where each name comes from; the same as the imports above, which only type checkers see."""


def __getattr__(name: str) -> Any:
    """A name of ``__all__``, imported when it is first used. MissingExtra where it needs an extra."""
    if name not in _HOMES:
        raise AttributeError(f"module 'muarl' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ImportError as problem:
        from muarl.basics.extras import missing_extra

        missing = missing_extra(problem, f"muarl.{name}")
        if missing is None:
            raise
        raise missing from problem
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
