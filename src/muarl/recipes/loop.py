"""What the steps of a training loop work with, one after another or ahead of each other: figures, checkpoints and
validations, and when each is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.agents.sampled import SampledAgent
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.errors import MuarlError
from muarl.inference.base import PolicySampler
from muarl.learning.checkpoint_paths import checkpoint_path
from muarl.learning.learner import Learner
from muarl.learning.packing import Sample
from muarl.observe.loggers import MetricLogger
from muarl.observe.metrics import episode_metrics
from muarl.observe.progress import Phase, Progress
from muarl.observe.rundir import RunDirectory
from muarl.observe.training import IdleSteps, differing_text, no_update
from muarl.recipes.pipeline import Played
from muarl.recipes.preflight import validation_tasks
from muarl.recipes.resuming import prune
from muarl.recipes.setting import Setting
from muarl.recipes.spending import Spending
from muarl.recipes.updates import equal_groups
from muarl.recipes.user_review import look_at_users
from muarl.rollout import Executor
from muarl.users.base import UserFactory

SAVED_EPISODES = 64
"""Episodes of a step that are kept where `rl.save_episodes` is `some`."""
VALIDATION = "validation"
"""The phase of validation's rows of figures."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What all steps of a training loop work with."""

    config: RunConfig
    setting: Setting
    learner: Learner
    engine: PolicySampler
    agent: SampledAgent
    users: UserFactory
    executor: Executor
    run: RunDirectory
    logger: MetricLogger
    progress: Progress
    phase: Phase
    after_step: Callable[[int, SampledAgent], None] | None
    spending: Spending
    idle: IdleSteps = field(default_factory=IdleSteps)

    def due(self, every: int, step: int) -> bool:
        """Whether something that happens every so many steps (0: never) does after this one."""
        return bool(every) and (step + 1) % every == 0

    def note(
        self,
        step: int,
        played: Played,
        samples: Sequence[Sample],
        update: Mapping[str, float],
        figures: Mapping[str, float],
    ) -> None:
        """Log a step, and keep its episodes as ``rl.save_episodes`` says."""
        rl = self.config.rl
        metrics = episode_metrics(played.episodes)
        if self.config.user.kind in ("llm", "sampled"):  # those of rules make none
            metrics |= look_at_users(self.setting, played.tasks, [e for e in played.episodes if e.verdict is not None])
        metrics |= {f"update/{k}": v for k, v in update.items()}
        metrics |= {k: update[k] for k in ("kl", "entropy") if k in update}
        kept, equal = len(played.groups.kept), equal_groups(played.groups, self.config)
        metrics |= {
            "groups_kept": float(kept),
            "groups_equal": float(equal),
            "groups_dropped": float(len(played.groups.dropped)),
            "samples": float(len(samples)),
            **figures,
        }
        self.logger.log(metrics, phase="rl", step=step)
        self.phase.note = f"no update: {differing_text(kept, equal)}" if no_update(metrics) else None
        self.phase.advance(success=metrics["success"], turns=metrics["turns"])
        if (warning := self.idle.note(metrics)) is not None:
            self.progress.say(warning)
        every = rl.save_episodes == "all"
        if every or (rl.save_episodes == "some" and (step in (0, rl.steps - 1) or self.due(rl.checkpoint_every, step))):
            self.run.write_episodes(f"train-{step:04d}", played.episodes[: None if every else SAVED_EPISODES])

    def save(self, step: int, extra: Mapping[str, Any] | None = None, *, now: bool = False) -> None:
        """Write the checkpoint of ``step`` steps if one is due (or ``now``), and delete those that need not be kept."""
        rl = self.config.rl
        root = self.run.checkpoints / "rl"
        path = checkpoint_path(root, step)
        if (now and step > 0 and not path.exists()) or step == rl.steps or self.due(rl.checkpoint_every, step - 1):
            self.learner.save(path, {"step": step, "phase": "rl", **(extra or {})})
            prune(self.config, root, self.validated())

    def save_stopped(self, step: int, extra: Mapping[str, Any] | None = None) -> None:
        """``save`` where the run is being stopped: what keeps it from that does not hide why it stops."""
        try:
            self.save(step, extra, now=True)
        except MuarlError as problem:
            self.progress.say(f"No checkpoint of step {step} could be saved: {problem}")

    def validation(self) -> tuple[Sequence[Task], SampledAgent]:
        """Validation tasks, and the policy as it is, sampled as evaluation will sample it."""
        e = self.config.eval
        tasks = validation_tasks(self.config, self.setting)
        sampling = replace(self.agent.sampling, temperature=e.temperature, top_p=e.top_p)
        return tasks, SampledAgent(self.agent.sampler, self.agent.chat, sampling)

    def validated(self) -> dict[int, float]:
        """Success in validation by the number of steps made before."""
        rows = (r for r in self.run.read_metrics() if r.get("phase") == VALIDATION and "success" in r)
        return {int(r["step"]) + 1: float(r["success"]) for r in rows}

    def validation_due(self, step: int) -> bool:
        """Whether a validation comes after this step."""
        return self.due(self.config.rl.eval_every, step) and step + 1 < self.config.rl.steps

    def missed(self, first: int) -> bool:
        """Whether an interrupted run, which goes on with step ``first``, has saved its checkpoint, and no more."""
        return first > 0 and self.validation_due(first - 1) and first not in self.validated()
