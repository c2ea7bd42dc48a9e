"""What the steps of a training loop work with, one after another or ahead of each other: figures, checkpoints and
validations, and when each is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muarl.accounts.evaluation_report import evaluate_summary, score_text
from muarl.accounts.metrics import DOMAIN, SUCCESS_WITHOUT_VIOLATION, agent_tokens, episode_metrics
from muarl.agents.sampled import SampledAgent
from muarl.backends.engines import policy_executor
from muarl.backends.users import make_users
from muarl.basics.errors import StoppedBySignError
from muarl.config.parts import Compute
from muarl.config.rl import RlConfig
from muarl.config.section import UserConfig
from muarl.config.sections import EvalConfig
from muarl.domains.tasks import Task
from muarl.environments.places import ByPlace, Places
from muarl.inference.base import PolicySampler
from muarl.learning.checkpoint_folders import checkpoint_path
from muarl.learning.learner import Learner
from muarl.learning.packing import Sample, episode_numbers
from muarl.observe.headline import AFTER, cost_text, differing_text
from muarl.observe.progress import Phase
from muarl.recipes.evaluation.auditing import audit_episodes
from muarl.recipes.training.loss_settings import equal_groups
from muarl.recipes.training.pipeline import StepData
from muarl.rollouts.rollout import BoundedExecutor, Executor
from muarl.runs.context import RunContext
from muarl.runs.resuming import save_last
from muarl.runs.tasks import validation_tasks
from muarl.sign_rules import no_update
from muarl.signs import PHASE, Changes, Sign, Watch
from muarl.types.episode import BRANCH, Episode
from muarl.users.base import UserFactory

SAVED_EPISODES = 64
"""Episodes of a step that are kept where `rl.save_episodes` is `some`."""
VALIDATION = "validation"
"""The phase of validation's rows of figures."""


def validation_scores(rows: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """What a run's validations choose checkpoints by, by the number of steps made before: success without any violation
    where every validation tells it of all domains, else success."""
    held = [r for r in rows if r.get("phase") == VALIDATION and "success" in r]
    name = SUCCESS_WITHOUT_VIOLATION if all(SUCCESS_WITHOUT_VIOLATION in r for r in held) else "success"
    return {int(r["step"]) + 1: float(r[name]) for r in held}


@dataclass(frozen=True, slots=True)
class Validation:
    """How the policy in training is validated: as the sections ``eval`` and ``eval_user`` would evaluate it, on tasks
    of another split."""

    ev: EvalConfig
    user: UserConfig
    compute: Compute
    places: Places

    @property
    def repeatable(self) -> bool:
        """Whether it gives the same a second time, and costs nothing."""
        return self.user.kind != "llm"

    def tasks(self) -> Sequence[Task]:
        """What it is held on."""
        return validation_tasks(self.ev, self.places)

    def users(self) -> ByPlace[UserFactory]:
        """Its simulated users."""
        return make_users(self.user, self.places, self.compute)

    def executor(self, policy: SampledAgent, users: ByPlace[UserFactory]) -> BoundedExecutor:
        """Plays its episodes on this machine: the policy as it is, sampled as evaluation will sample it."""
        sampling = replace(policy.sampling, temperature=self.ev.temperature, top_p=self.ev.top_p)
        agent = SampledAgent(policy.sampler, policy.chat, sampling)
        return policy_executor(self.compute, self.places, agent, users, self.compute.rollout.concurrency)


@dataclass(frozen=True, slots=True)
class Loop:
    """What all steps of a training loop work with."""

    context: RunContext
    rl: RlConfig
    places: Places
    learner: Learner
    engine: PolicySampler
    agent: SampledAgent
    users: ByPlace[UserFactory]
    executor: Executor
    validation: Validation
    concurrency: int
    """Max concurrent episodes."""
    phase: Phase
    after_step: Callable[[int, SampledAgent], None] | None = None
    reviews_users: bool = False
    """Look for errors of simulated users, which those of rules do not make."""
    sleeps: bool = False
    """The sampler gives its memory back while the learner updates."""
    watch: Watch = field(default_factory=Watch)
    """Looks for signs that the training goes wrong, and has seen the steps so far."""
    _stops: list[Sign] = field(default_factory=list)
    _saved: set[int] = field(default_factory=set)
    """The steps of checkpoints that were written, or could not be."""

    def due(self, every: int, step: int) -> bool:
        """Whether something that happens every so many steps (0: never) does after this one."""
        return bool(every) and (step + 1) % every == 0

    def note(
        self,
        step: int,
        played: StepData,
        samples: Sequence[Sample],
        update: Mapping[str, float],
        figures: Mapping[str, float],
    ) -> None:
        """Log a step, and keep its episodes as ``rl.save_episodes`` says."""
        rl = self.rl
        # What begins as another does is no sample of how tasks go.
        began = [e for e in played.episodes if BRANCH in e.tags]
        metrics = episode_metrics([e for e in played.episodes if BRANCH not in e.tags])
        metrics["sampled_tokens"] = float(sum(map(agent_tokens, played.episodes)))
        if began:
            own, names = episode_metrics(began), ("episodes", "excluded", "success", "agent_tokens")
            metrics |= {f"branches/{name}": own[name] for name in names if name in own}
        if self.reviews_users:
            from muarl.recipes.evaluation.user_review import look_at_users  # users of rules make no such errors

            metrics |= look_at_users(self.places, played.tasks, [e for e in played.episodes if e.verdict is not None])
        metrics |= {f"update/{k}": v for k, v in update.items()}
        metrics |= {k: update[k] for k in ("kl", "entropy") if k in update}
        kept_count, equal = len(played.groups.kept), equal_groups(played.groups, self.rl)
        metrics |= {
            "groups_kept": float(kept_count),
            "groups_equal": float(equal),
            "groups_dropped": float(len(played.groups.dropped)),
            "samples": float(len(set(episode_numbers(samples)))),
            **self._groups_by_domain(played),
            **figures,
        }
        self.context.logger.log(metrics, phase="rl", step=step)
        if not rl.rollouts_only:
            idle = f"no update: {differing_text(kept_count, equal)}" if no_update(metrics) else None
            self._tell(step, self.watch.note({**metrics, "phase": PHASE, "step": step}), idle)
        self.phase.advance(success=metrics["success"], turns=metrics["turns"])
        every = rl.save_episodes == "all" or rl.rollouts_only
        if every or (rl.save_episodes == "some" and (step in (0, rl.steps - 1) or self.due(rl.checkpoint_every, step))):
            self.context.folder.write_episodes(
                f"train-{step:04d}", played.episodes[: None if every else SAVED_EPISODES]
            )

    def _tell(self, step: int, changes: Changes, idle: str | None) -> None:
        """Say which signs a step has begun or ended; name the first cause on the line, and all in status.json."""
        standing = self.watch.standing
        for sign in changes.began:
            brought = [other.name for other in standing if other.follows == sign.name and other not in changes.began]
            before = f" It explains {' and '.join(brought)}." if brought else ""
            self.context.progress.say(f"Step {step}: {sign.name}. {sign.sentence}{before}")
        for sign in changes.ended:
            self.context.progress.say(f"Step {step}: {sign.name} has ended.")
        self._stops.extend(sign for sign in changes.began if sign.name in self.rl.stop_on)
        self.phase.note = " · ".join(part for part in (idle, standing[0].name if standing else None) if part) or None
        self.context.folder.show_signs([sign.to_json() for sign in standing])

    def stop_if_told(self, made: int) -> None:
        """StoppedBySignError where ``rl.stop_on`` names a sign that has begun, and there are steps to come after those
        that are ``made``."""
        if self._stops and made < self.rl.steps:
            raise StoppedBySignError(
                f"Stopped after {made} of {self.rl.steps} steps by rl.stop_on: {self._stops[0].name}. "
                f"{self._stops[0].sentence}"
            )

    def _groups_by_domain(self, played: StepData) -> dict[str, float]:
        """How many groups of each domain were kept, and so on; nothing in a run of one domain."""
        figures: dict[str, float] = {}
        for name in {task.tags[DOMAIN]: None for task in played.tasks.values() if DOMAIN in task.tags}:
            of_domain = lambda g, name=name: played.tasks[g.task_id].tags[DOMAIN] == name  # noqa: E731
            own = replace(played.groups, kept=[*filter(of_domain, played.groups.kept)])
            dropped = [*filter(of_domain, played.groups.dropped)]
            counts = {"kept": len(own.kept), "equal": equal_groups(own, self.rl), "dropped": len(dropped)}
            figures |= {f"{DOMAIN}/{name}/groups_{kind}": float(count) for kind, count in counts.items()}
        return figures

    def save(self, step: int, extra: Mapping[str, Any] | None = None) -> None:
        """Write the checkpoint of ``step`` steps if one is due, and delete those that need not be kept."""
        if step == self.rl.steps or self.due(self.rl.checkpoint_every, step - 1):
            self._write(step, extra)

    def save_stopped(self, problem: BaseException, step: int, extra: Mapping[str, Any] | None = None) -> None:
        """``problem`` ends the run: write the checkpoint of ``step`` steps, unless it is there, or could not be written
        (``save_last``)."""
        if step not in self._saved and not checkpoint_path(self._root, step).exists():
            save_last(problem, step, lambda: self._write(step, extra), self.context.progress.say)

    @property
    def _root(self) -> Path:
        return self.context.folder.checkpoints / "rl"

    def _write(self, step: int, extra: Mapping[str, Any] | None) -> None:
        self._saved.add(step)
        self.learner.save(checkpoint_path(self._root, step), {"step": step, "phase": "rl", **(extra or {})})
        self.context.prune(self._root, self.validated())

    def note_validation(self, step: int, episodes: Sequence[Episode]) -> None:
        """Audit a validation's episodes, log their figures, and say what they come to."""
        audited = audit_episodes(self.places, self.validation.tasks(), episodes)
        self.context.logger.log(episode_metrics(episodes), phase=VALIDATION, step=step)
        summary = evaluate_summary(episodes)
        self.context.progress.say(
            f"Validation after step {step + 1}: {score_text(summary)} on {summary['tasks']} tasks."
        )
        last = step + 1 + self.rl.eval_every >= self.rl.steps
        facts = {"reward": self.rl.reward, AFTER: summary, "audit": {AFTER: audited.summary.to_json()}}
        if last and (cost := cost_text(facts)) is not None:
            self.context.progress.say(cost)

    def validated(self) -> dict[int, float]:
        """See ``validation_scores``."""
        return validation_scores(self.context.folder.read_metrics())

    def validation_due(self, step: int) -> bool:
        """Whether a validation comes after this step."""
        return self.due(self.rl.eval_every, step) and step + 1 < self.rl.steps

    def missed(self, first: int) -> bool:
        """Whether an interrupted run, which continues with step ``first``, has saved its checkpoint, and no more."""
        return first > 0 and self.validation_due(first - 1) and first not in self.validated()
