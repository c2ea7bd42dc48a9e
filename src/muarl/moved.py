"""Where modules used to be, and what classes used to be called. Other people's files have the old names, which still
work, with a warning.

What programs need is in ``muarl`` and ``muarl.kit``; the modules' old names are for those that imported modules.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED: Mapping[str, str] = {
    "muarl.accounts.statistics": "muarl.accounts.evaluation_report",
    "muarl.audit.report": "muarl.report.audit_tables",
    "muarl.backends.elsewhere": "muarl.backends.process_config",
    "muarl.backends.memory_estimate": "muarl.backends.plans",
    "muarl.backends.prompt_lengths": "muarl.backends.plans",
    "muarl.benchmarks": "muarl_worlds",
    "muarl.benchmarks.acebench": "muarl_worlds.acebench.official",
    "muarl.benchmarks.bfcl": "muarl_worlds.bfcl.official",
    "muarl.benchmarks.messages": "muarl.records.messages",
    "muarl.benchmarks.tau1": "muarl_worlds.tau.tau1_benchmark",
    "muarl.benchmarks.tau1_source": "muarl_worlds.tau.tau1_source",
    "muarl.benchmarks.tau1_trajectories": "muarl_worlds.tau.tau1_trajectories",
    "muarl.benchmarks.tau2": "muarl_worlds.tau.tau2_benchmark",
    "muarl.benchmarks.tau2.results": "muarl_worlds.tau.tau2_results",
    "muarl.budgets": "muarl.accounts.budgets",
    "muarl.chat": "muarl.types.chat",
    "muarl.cli.named": "muarl.cli.environment_approval",
    "muarl.cluster": "muarl.workers.cluster",
    "muarl.cluster.places": "muarl.workers.cluster.machines",
    "muarl.cluster.versions": "muarl.workers.cluster.machines",
    "muarl.cluster.weights": "muarl.models.buckets",
    "muarl.commands": "muarl.cli",
    "muarl.commands.audit": "muarl_tools.commands.audit",
    "muarl.commands.audited": "muarl_tools.auditing.conversations",
    "muarl.commands.bench": "muarl_tools.commands.bench",
    "muarl.commands.compare": "muarl_tools.commands.compare",
    "muarl.commands.datasets": "muarl_tools.commands.datasets",
    "muarl.commands.doctor": "muarl_tools.commands.doctor",
    "muarl.commands.doctor_check": "muarl_tools.commands.doctor_model",
    "muarl.commands.doctor_model": "muarl_tools.commands.doctor_model",
    "muarl.commands.domains": "muarl_tools.commands.domains",
    "muarl.commands.env": "muarl_tools.commands.env",
    "muarl.commands.evaluate": "muarl_tools.commands.evaluate",
    "muarl.commands.export": "muarl_tools.commands.export",
    "muarl.commands.log_files": "muarl.records.rows",
    "muarl.commands.log_messages": "muarl.records.chat",
    "muarl.commands.mcp": "muarl_tools.commands.mcp",
    "muarl.commands.plan": "muarl_tools.commands.plan",
    "muarl.commands.recorded": "muarl_tools.scoring.jobs",
    "muarl.commands.report": "muarl_tools.commands.report",
    "muarl.commands.reproduce": "muarl_tools.commands.reproduce",
    "muarl.commands.scoring": "muarl_tools.scoring.verdicts",
    "muarl.commands.seeds": "muarl_tools.commands.seeds",
    "muarl.commands.serve": "muarl_tools.commands.serve",
    "muarl.commands.serving": "muarl_tools.commands.serving",
    "muarl.commands.suite": "muarl_tools.commands.suite",
    "muarl.commands.tasks": "muarl_tools.commands.tasks",
    "muarl.commands.tasks_check": "muarl_tools.commands.tasks_check",
    "muarl.commands.tasks_practise": "muarl_tools.commands.tasks_practise",
    "muarl.commands.tasksets": "muarl_tools.commands.tasksets",
    "muarl.commands.traces": "muarl_tools.scoring.traces",
    "muarl.commands.user": "muarl_tools.commands.user",
    "muarl.commands.user_fit": "muarl_tools.commands.user_fit",
    "muarl.commands.view": "muarl_tools.commands.view",
    "muarl.comparison": "muarl_tools.compare",
    "muarl.comparison.groups": "muarl_tools.compare.differences",
    "muarl.comparison.intervals": "muarl_tools.compare.differences",
    "muarl.conversation": "muarl.rollouts.conversation",
    "muarl.data": "muarl_worlds.data",
    "muarl.domains.acebench": "muarl_worlds.acebench",
    "muarl.domains.airline": "muarl_worlds.tau.airline",
    "muarl.domains.banking": "muarl_worlds.tau.banking",
    "muarl.domains.bfcl": "muarl_worlds.bfcl",
    "muarl.domains.calculator": "muarl_worlds.tau.calculator",
    "muarl.domains.companies": "muarl_worlds.companies",
    "muarl.domains.mcp.scenarios": "muarl_worlds.mcp",
    "muarl.domains.mock": "muarl_worlds.tau.mock",
    "muarl.domains.retail": "muarl_worlds.tau.retail",
    "muarl.domains.scenarios": "muarl_worlds.services",
    "muarl.domains.tau1": "muarl_worlds.tau.tau1",
    "muarl.domains.telecom": "muarl_worlds.tau.telecom",
    "muarl.environments.asking": "muarl_tools.checks.expert_plays",
    "muarl.environments.briefing": "muarl.environments.configure",
    "muarl.environments.builtin": "muarl_worlds.environments",
    "muarl.environments.by_domain": "muarl.environments.registry",
    "muarl.environments.checks": "muarl_tools.checks.environment",
    "muarl.environments.checks.context": "muarl_tools.checks.environment.samples",
    "muarl.environments.checks.elsewhere": "muarl_tools.checks.environment.other_process",
    "muarl.environments.checks.every": "muarl_tools.checks.environment.rules",
    "muarl.environments.checks.parts": "muarl_tools.checks.environment.declarations",
    "muarl.environments.checks.playing": "muarl_tools.checks.environment.conversations",
    "muarl.environments.checks.prompt": "muarl_tools.checks.environment.declarations",
    "muarl.environments.checks.replies": "muarl_tools.checks.environment.odd_replies",
    "muarl.environments.checks.tasks": "muarl_tools.checks.environment.made_tasks",
    "muarl.environments.checks.worlds": "muarl_tools.checks.environment.gold_and_tools",
    "muarl.environments.configured": "muarl.environments.place",
    "muarl.environments.draws": "muarl.environments.task_draws",
    "muarl.environments.episodes": "muarl.environments.play",
    "muarl.environments.mixture": "muarl.environments.places",
    "muarl.environments.official": "muarl.environments.benchmark",
    "muarl.environments.official.acebench": "muarl_worlds.acebench.protocol",
    "muarl.environments.official.base": "muarl.environments.benchmark",
    "muarl.environments.official.bfcl": "muarl_worlds.bfcl.protocol",
    "muarl.environments.official.draws": "muarl.environments.benchmark",
    "muarl.environments.official.tau": "muarl_worlds.tau.protocol",
    "muarl.environments.one_task": "muarl.environments.play",
    "muarl.environments.playing": "muarl.environments.play",
    "muarl.environments.practice_tasks": "muarl_tools.practice_tasks",
    "muarl.environments.recorded": "muarl.environments.recorded_episodes",
    "muarl.environments.server": "muarl_tools.serve_environments",
    "muarl.environments.server.app": "muarl_tools.serve_environments.http",
    "muarl.environments.sessions": "muarl.environments.session",
    "muarl.environments.task_checks": "muarl_tools.checks.tasks",
    "muarl.environments.task_checks.altered": "muarl_tools.checks.tasks.wrong_writes",
    "muarl.environments.task_checks.choices": "muarl_tools.checks.tasks.open_choices",
    "muarl.environments.task_checks.figures": "muarl_tools.checks.tasks.derived_figures",
    "muarl.environments.task_checks.findings": "muarl.domains.checking",
    "muarl.environments.task_checks.fixing": "muarl_tools.checks.tasks.fixes",
    "muarl.environments.task_checks.gold": "muarl_tools.checks.tasks.gold_actions",
    "muarl.environments.task_checks.played": "muarl_tools.checks.tasks.experts",
    "muarl.environments.task_checks.replaying": "muarl_tools.checks.tasks.checked_task",
    "muarl.environments.task_checks.rewarded": "muarl_tools.checks.tasks.rewards",
    "muarl.environments.task_checks.run": "muarl_tools.checks.tasks.report",
    "muarl.environments.task_checks.scenario": "muarl_tools.checks.tasks.scenarios",
    "muarl.environments.usual": "muarl.environments.play",
    "muarl.episode": "muarl.types.episode",
    "muarl.episode_runner": "muarl.rollouts.episode_runner",
    "muarl.errors": "muarl.basics.errors",
    "muarl.event_loop": "muarl.basics.event_loop",
    "muarl.extras": "muarl.basics.extras",
    "muarl.files": "muarl.basics.files",
    "muarl.formats": "muarl.records",
    "muarl.formats.chat_forms": "muarl.records.chat",
    "muarl.formats.logs": "muarl.records.reading",
    "muarl.formats.rows": "muarl.records.parquet",
    "muarl.formats.tau2": "muarl_worlds.tau.tau2_results",
    "muarl.inference.server": "muarl_tools.serve_model",
    "muarl.inference.server.app": "muarl_tools.serve_model.http",
    "muarl.inference.server.length": "muarl_tools.serve_model.problems",
    "muarl.integrations": "muarl_integrations",
    "muarl.keys": "muarl.basics.keys",
    "muarl.language.corrections": "muarl.language.user_acts",
    "muarl.language.outcomes": "muarl.language.user_acts",
    "muarl.metering": "muarl.accounts.budgets",
    "muarl.metrics": "muarl.accounts.metrics",
    "muarl.observe.charts": "muarl.pages.charts",
    "muarl.observe.conversations": "muarl.pages.conversations",
    "muarl.observe.last_screen": "muarl.report.last_screen",
    "muarl.observe.markup": "muarl.pages.markup",
    "muarl.observe.report": "muarl.report.report",
    "muarl.observe.report_audit": "muarl.report.report_audit",
    "muarl.observe.report_curves": "muarl.report.report_curves",
    "muarl.observe.report_domains": "muarl.report.report_domains",
    "muarl.observe.report_story": "muarl.report.report_story",
    "muarl.observe.report_tables": "muarl.report.report_tables",
    "muarl.observe.seeds": "muarl_tools.experiments.seeds",
    "muarl.observe.shortening": "muarl.pages.shortening",
    "muarl.observe.words": "muarl.pages.words",
    "muarl.planning.report": "muarl.report.plan_tables",
    "muarl.patterns": "muarl.basics.patterns",
    "muarl.planning.splitting": "muarl.planning.nearest",
    "muarl.processes": "muarl.workers.processes",
    "muarl.processes.weights": "muarl.models.buckets",
    "muarl.recipes.chat_server": "muarl_tools.serve_model.recipe",
    "muarl.recipes.exporting": "muarl_tools.export",
    "muarl.recipes.replayed": "muarl.recipes.replay_updates",
    "muarl.recipes.reproduce": "muarl_tools.experiments.reproduce",
    "muarl.recipes.suite": "muarl_tools.experiments.suite",
    "muarl.recipes.training.recorded": "muarl.recipes.training.recorded_steps",
    "muarl.recipes.usercheck": "muarl_tools.checks.user",
    "muarl.recipes.usercheck.playing": "muarl_tools.checks.user.conversations",
    "muarl.records.formats": "muarl.records",
    "muarl.records.formats.chat_forms": "muarl.records.chat",
    "muarl.records.formats.logs": "muarl.records.reading",
    "muarl.records.formats.rows": "muarl.records.parquet",
    "muarl.records.formats.tau2": "muarl_worlds.tau.tau2_results",
    "muarl.records.log_files": "muarl.records.rows",
    "muarl.records.log_messages": "muarl.records.chat",
    "muarl.retrieval.shell": "muarl_worlds.tau.banking.shell",
    "muarl.rewards.abandoned": "muarl.user_errors.endings",
    "muarl.rewards.closings": "muarl.user_errors.endings",
    "muarl.rewards.facts": "muarl.language.facts",
    "muarl.rewards.user_conduct": "muarl.user_errors.conduct",
    "muarl.rewards.user_errors": "muarl.user_errors.errors",
    "muarl.rewards.user_judge": "muarl.user_errors.judge",
    "muarl.rollout": "muarl.rollouts.rollout",
    "muarl.rules": "muarl.rollouts.rules",
    "muarl.runs.beforehand": "muarl.runs.checks",
    "muarl.runs.bounds": "muarl.runs.prices",
    "muarl.runs.changes": "muarl.runs.config_changes",
    "muarl.runs.judges": "muarl.runs.roles",
    "muarl.runs.opening": "muarl.runs.context",
    "muarl.runs.packs": "muarl.runs.room",
    "muarl.runs.preflight": "muarl.runs.roles",
    "muarl.runs.restarting": "muarl.runs.context",
    "muarl.runs.search_models": "muarl.runs.roles",
    "muarl.runs.task_seeds": "muarl.runs.tasks",
    "muarl.seeds": "muarl.basics.seeds",
    "muarl.statistics": "muarl.accounts.evaluation_report",
    "muarl.stopping": "muarl.basics.stopping",
    "muarl.system": "muarl.basics.system",
    "muarl.toolcalls": "muarl.types.toolcalls",
    "muarl.untrusted": "muarl.basics.untrusted",
    "muarl.users.agenda_bfcl": "muarl_worlds.bfcl.agenda_user",
    "muarl.users.proxy": "muarl_tools.checks.user.proxy",
    "muarl.users.proxy.reading": "muarl_tools.checks.user.proxy.requests",
    "muarl.users.redteam.behaviours": "muarl.users.behaviours.altered",
    "muarl.users.redteam.foreign": "muarl.users.behaviours.foreign",
    "muarl.users.redteam.languages": "muarl.users.behaviours.languages",
    "muarl.users.redteam.service_speech": "muarl.users.behaviours.service_speech",
    "muarl.users.redteam.words": "muarl.users.behaviours.languages",
    "muarl.version": "muarl.basics.version",
    "muarl.view": "muarl_tools.view",
    "muarl.web": "muarl.basics.web",
    "muarl.wheels": "muarl.basics.wheels",
}
"""Old names of modules and packages, and today's. What is below a package has moved with it."""

RENAMED: Mapping[str, str] = {
    "muarl.basics.copies.Shared": "SharedInCopies",
    "muarl.domains.auditing.Asked": "UserQuestion",
    "muarl.domains.checking.Checked": "CheckReport",
    "muarl.domains.kit.declaration.Described": "RecordDescription",
    "muarl.domains.kit.declaration.Drawn": "DrawContext",
    "muarl.domains.kit.device.Broken": "BrokenDevice",
    "muarl.domains.kit.moves.Refused": "WriteRefusal",
    "muarl.inference.base.Sampled": "Completion",
    "muarl.kit.Broken": "BrokenDevice",
    "muarl.kit.Described": "RecordDescription",
    "muarl.kit.Drawn": "DrawContext",
    "muarl.records.conversation.LeftOut": "LeftOutCounts",
}
"""Old dotted names of classes that programs import, and today's name in the same module, which calls
``keep_old_names``."""


def name_of_today(name: str) -> str | None:
    """Where a module is that was called so; None if it has not moved. The longest old name that fits counts."""
    prefix = name
    while prefix:
        if prefix in MOVED:
            return MOVED[prefix] + name[len(prefix) :]
        prefix = prefix.rpartition(".")[0]
    return None


def keep_old_names(module: str) -> None:
    """Let a module, which calls this with its ``__name__``, have its classes under their old names, too."""

    def renamed(name: str) -> Any:
        new = RENAMED.get(f"{module}.{name}")
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} has a new name: import {new}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], new)

    vars(sys.modules[module])["__getattr__"] = renamed


class _MovedLoader(Loader):
    """Gives the module of today."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just put the old name's there


class _MovedFinder(MetaPathFinder):
    """Finds modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = name_of_today(fullname) if fullname.startswith("muarl.") else None
        if name is None:
            return None
        warnings.warn(f"{fullname} has moved: import {name}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _MovedLoader(name), is_package=True)


def install() -> None:
    """Make old names work in this process."""
    if not any(isinstance(finder, _MovedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedFinder())
