"""``muarl train-user``: reinforcement learning of a user model, within its scenarios, against an agent that stays.

One step: draw tasks, have a group of users talk with the agent about each, find who left its scenario, compare within
groups, update on the users' own tokens. The learner, its loss and its advantages are those of ``muarl train``.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from muarl.agents.sampled import SampledAgent, Sampling
from muarl.backends.checkpoint_names import checkpoint_name
from muarl.backends.engines import settle
from muarl.backends.model_notes import USER_RL
from muarl.backends.models import load_model, model_format
from muarl.backends.users import goal_checks, refuse_user_tools
from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.event_loop import event_loop
from muarl.basics.files import write_text
from muarl.basics.stopping import held
from muarl.config.parts import Compute
from muarl.config.rl import RlConfig
from muarl.config.sections import ModelConfig, RunConfig
from muarl.domains.tasks import Task
from muarl.environments.configure import places_of
from muarl.environments.places import Agents, Places
from muarl.environments.play import local_executor
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoint_folders import checkpoint_path, latest_checkpoint
from muarl.learning.checkpoints import Policy
from muarl.learning.learner import Learner
from muarl.recipes.training.loop import SAVED_EPISODES
from muarl.recipes.training.loss_settings import learner_config
from muarl.recipes.training.pipeline import nothing_left
from muarl.recipes.training.reference_user import ReferenceUser, check_same_tokens
from muarl.recipes.training.user_side import CUT, UserReward, agent_fails, is_void, judge_episodes, user_side
from muarl.recipes.user_hardness import measure_hardness, report, shares, verdict
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import Executor, Group, Groups, collect_groups, rollout
from muarl.runs.checks import check_machine
from muarl.runs.context import RunContext, open_context, prepare, tell_domain
from muarl.runs.resuming import go_back, resume_point, save_last
from muarl.runs.tasks import rl_seed
from muarl.runs.user_checks import check_user_rl
from muarl.types.episode import Episode
from muarl.users.sampled import MakeCheck, SampledUserFactory

HELD_OUT = "held_out"
"""The phase of the measurements' rows of figures: step 0 is before the training, step 1 after it."""
EPISODES = "user-"
"""How the files of steps' episodes begin. Their tokens are the user's, so they are none of an agent's ``train-NNNN``,
which ``rl.replay`` would learn from."""
SHOWN: tuple[str, ...] = ("void", "agent_fails")
"""A step's figures that the progress display has."""
ROUNDS = 2
"""How often a step's episode is begun that infrastructure ended, beyond the retries of its runner."""


@dataclass(frozen=True, slots=True)
class FixedAgent:
    """The agent that the user model learns from; its weights stay."""

    name: str
    agents: Agents
    engine: TorchEngine | None
    """What samples for it; None for the scripted expert."""

    def forget(self) -> None:
        """Drop what its engine has cached of earlier conversations. It would move the last bits of later ones, so that
        a run that is resumed in between would not repeat them."""
        if self.engine is not None:
            self.engine.weights_changed()


def run(config: RunConfig) -> Path:
    """Train ``model.checkpoint``, a user model. Returns the run's folder, with checkpoints, summary.json and report.md
    in it."""
    prepare(config)
    check_user_rl(config)
    places = places_of(config, with_rl=False)
    checks = checks_of(places)
    check_machine(config, config.rl)
    policy = load_model(config.model)
    agent = fixed_agent(config, places)
    reward = user_reward(config, policy)
    with open_context(config, "train-user") as context:
        tell_domain(context.folder, config.domain_text, places)
        context.loop.closes(places)
        before = _measured(context, config, places, agent, policy, checks, when="before")
        train(context, config, places, policy, agent, reward, checks)
        after = _measured(context, config, places, agent, policy, checks, when="after")
        _tell(context, config, agent, before, after)
    return context.folder.path


def checks_of(places: Places) -> dict[str, MakeCheck]:
    """The checks of goals by place. ConfigError for a place whose tasks have none, or whose users have tools: nobody
    could say there whether a user stays within its scenario."""
    checks: dict[str, MakeCheck] = {}
    for place in places:
        refuse_user_tools(place.name, place.domain)
        check = goal_checks(place)
        if check(place.example_task("train")) is None:
            raise ConfigError(
                f"domain.name: the goals of {place.name}'s tasks cannot be checked, so a user that leaves its scenario "
                "would be paid for it: choose an environment whose requests are declared with the kit (docs/kit.md)"
            )
        checks[place.name] = check
    return checks


def fixed_agent(config: RunConfig, places: Places) -> FixedAgent:
    """The agent that ``user_rl.agent`` names. CheckpointError if its model cannot be loaded."""
    chosen, ev = str(config.user_rl.agent), config.eval
    if chosen == "expert":
        return FixedAgent("the scripted expert", places.experts(), None)
    context = config.user_rl.agent_context
    model = ModelConfig(checkpoint=chosen, device=config.model.device, dtype=config.model.dtype, max_context=context)
    policy = load_model(model)
    engine = TorchEngine(policy.model, max_slots=config.rollout.concurrency, max_context=context, seed=config.seed)
    sampling = Sampling(config.rollout.tokens_per_turn, context, ev.temperature, ev.top_p)
    name = checkpoint_name(policy.path)
    agent = SampledAgent(engine, model_format(policy.tokenizer, model), sampling, name=name)
    return FixedAgent(name, places.sampled_agents(agent), engine)


def user_reward(config: RunConfig, policy: Policy) -> UserReward:
    """What ``user_rl`` rewards. ``policy``: the user model as it begins. ConfigError for a reference with another
    tokenizer."""
    section = config.user_rl
    if section.objective == "hard":
        return UserReward(margin=section.void_margin)
    if section.reference is None:
        reference = Policy(copy.deepcopy(policy.model), policy.tokenizer, policy.path)
    else:
        reference = load_model(config.model.model_copy(update={"checkpoint": section.reference}))
        check_same_tokens(reference, policy)
    likeness = ReferenceUser(
        reference,
        likeness=section.likeness,
        temperature=config.rl.temperature,
        token_budget=config.learner.pack_tokens,
    )
    return UserReward(likeness, section.void_margin)


def train(
    context: RunContext,
    config: RunConfig,
    places: Places,
    policy: Policy,
    agent: FixedAgent,
    reward: UserReward,
    checks: Mapping[str, MakeCheck],
) -> None:
    """The training loop; the policy's model is updated in place. MuarlError if a step has no group to learn from."""
    rl, folder, progress = config.rl, context.folder, context.progress
    learner = context.backend.learner(policy, learner_config(rl, config.model), USER_RL)
    engine = TorchEngine(
        policy.model,
        max_slots=Compute.of(config).user_slots,
        max_context=config.model.max_context,
        seed=config.user.seed,
    )
    users = SampledUserFactory(
        engine,
        model_format(policy.tokenizer, config.model),
        temperature=rl.temperature,
        context=config.model.max_context,
        seed=config.user.seed,
        name="user model in training",
        keeps_tokens=True,
    )
    executor = local_executor(places, agent.agents, users, config.rollout.concurrency)
    root, first, written = folder.checkpoints / "rl", 0, 0  # written: the last that was, or could not be

    def save(step: int) -> None:
        nonlocal written
        path = checkpoint_path(root, step)
        if step != written and not path.exists():
            written = step
            learner.save(path, {"step": step, "phase": USER_RL})
            context.prune(root)

    with event_loop() as here, progress.phase("reinforcement learning of the user", rl.steps) as phase:
        if context.resumed:
            resumed = resume_point(root, progress.say)
            if resumed is not None:
                first = _first(learner.load(resumed), rl.steps)
                here.run(engine.update(learner.weights, learner.version))
            go_back(folder, root, resumed, {USER_RL: first, HELD_OUT: 1}, lambda name: _is_later(name, first))
        phase.resume(first)
        made, whole = first, True  # whole: the learner is as the last step left it
        try:
            for step in range(first, rl.steps):
                started = time.perf_counter()
                agent.forget()
                tasks, episodes = here.run(_play(context, places, rl, executor, step))
                rolled_out = time.perf_counter()
                with held():
                    violated = judge_episodes(places, tasks, episodes, checks, config.user.guard.rules)
                    groups = _groups(rl, step, episodes)
                    whole = False
                    figures = _learn(learner, rl, reward, groups)
                    # New weights: what the engine has cached of conversations is of the old ones, and goes.
                    here.run(engine.update(learner.weights, learner.version))
                    figures |= step_figures(episodes, violated)
                    figures |= {"time/rollout": rolled_out - started, "time/update": time.perf_counter() - rolled_out}
                    context.logger.log(figures, phase=USER_RL, step=step)
                    made, whole = step + 1, True
                due = made == rl.steps or (rl.checkpoint_every > 0 and made % rl.checkpoint_every == 0)
                _keep_episodes(context, rl, step, groups.kept, due=due)
                phase.advance(1, **{name: figures[name] for name in SHOWN if name in figures})
                if due:
                    save(made)
        except (MuarlError, KeyboardInterrupt) as problem:
            if whole:
                save_last(problem, made, lambda: save(made), progress.say)
            raise
    settle(policy, learner, latest_checkpoint(root))


async def _play(
    context: RunContext, places: Places, rl: RlConfig, executor: Executor, step: int
) -> tuple[Sequence[Task], list[Episode]]:
    """A step's tasks, and a group of episodes of each."""
    tasks = places.draw("train", rl.tasks_per_step, rl_seed(rl, context.seed), step * rl.tasks_per_step)
    places.check(tasks)
    requests = requests_for(tasks, rl.group_size, seed=context.seed, label=str(step))
    return tasks, (await rollout(requests, executor, rounds=ROUNDS)).episodes


def _groups(rl: RlConfig, step: int, episodes: Sequence[Episode]) -> Groups:
    """The groups of a step's judged episodes, from the user's side. MuarlError if none is large enough."""
    sides = [user_side(e) if e.learnable else e for e in episodes]
    groups = collect_groups(sides, rl.group_size, minimum=rl.min_group)
    if not groups.kept:
        raise nothing_left(step, episodes)
    return groups


def _learn(learner: Learner, rl: RlConfig, reward: UserReward, groups: Groups) -> dict[str, float]:
    """Update on a step's groups. Returns the figures of rewards and update."""
    samples, figures = reward.samples(groups.kept, rl)
    update = learner.policy_step(samples)
    figures |= {f"update/{k}": v for k, v in update.items()} | {k: update[k] for k in ("kl", "entropy") if k in update}
    return figures | {"groups_dropped": float(len(groups.dropped)), "samples": float(len(samples))}


def step_figures(episodes: Sequence[Episode], violated: Mapping[str, frozenset[str]]) -> dict[str, float]:
    """A step's judged episodes in figures: ``episodes`` (scored) and ``excluded``, ``void`` (share of the scored ones),
    of those that are not void the shares ``agent_fails``, ``violating`` and ``cut`` (left out where there are none),
    and a conversation's ``user_messages``."""
    scored = [e for e in episodes if e.verdict is not None]
    valid = [e for e in scored if not is_void(e)]
    out = {"episodes": float(len(scored)), "excluded": float(len(episodes) - len(scored))}
    if scored:
        out["void"] = 1 - len(valid) / len(scored)
        out["user_messages"] = fmean(sum(m.role == "user" for m in e.messages) for e in scored)
    if valid:
        out["agent_fails"] = fmean(map(agent_fails, valid))
        out["violating"] = fmean(bool(violated.get(e.id)) for e in valid)
        out["cut"] = fmean(e.stop in CUT for e in valid)
    return out


def _first(checkpoint: Mapping[str, Any], steps: int) -> int:
    """The step that a run continues with. ConfigError if it has made more than ``rl.steps`` already."""
    first = int(checkpoint["step"])
    if first > steps:
        raise ConfigError(f"rl.steps: {steps}, and this run has made {first} steps already: it cannot become shorter")
    return first


def _is_later(name: str, first: int) -> bool:
    """Whether a file of episodes is of a step from ``first`` on, or of the measurement after the training."""
    number = name.removeprefix(EPISODES)
    return int(number) >= first if number.isdecimal() else name.startswith("held-out-after-")


def _keep_episodes(context: RunContext, rl: RlConfig, step: int, groups: Sequence[Group], *, due: bool) -> None:
    """Keep a step's episodes, from the user's side, as ``rl.save_episodes`` says. ``due``: it has a checkpoint."""
    episodes = [episode for group in groups for episode in group.episodes]
    if rl.save_episodes == "all":
        context.folder.write_episodes(f"{EPISODES}{step:04d}", episodes)
    elif rl.save_episodes == "some" and (due or step == 0):
        context.folder.write_episodes(f"{EPISODES}{step:04d}", episodes[:SAVED_EPISODES])


def _measured(
    context: RunContext,
    config: RunConfig,
    places: Places,
    agent: FixedAgent,
    policy: Policy,
    checks: Mapping[str, MakeCheck],
    *,
    when: Literal["before", "after"],
) -> dict[str, dict[str, Any]]:
    """How hard the user model is on held-out tasks. A resumed run that has measured before its training takes that."""
    step = 0 if when == "before" else 1
    rows = {row["step"]: row for row in context.folder.read_metrics() if row.get("phase") == HELD_OUT}
    if when == "before" and context.resumed and step in rows:
        return shares({k: v for k, v in rows[step].items() if isinstance(v, float | int)})
    agent.forget()
    counted = measure_hardness(context, config.eval, config.user, places, agent.agents, policy, checks, when=when)
    context.logger.log(counted, phase=HELD_OUT, step=step)
    return shares(counted)


def _tell(
    context: RunContext,
    config: RunConfig,
    agent: FixedAgent,
    before: Mapping[str, Mapping[str, Any]],
    after: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write summary.json and report.md, and say what came of it."""
    rows = [row for row in context.folder.read_metrics() if row.get("phase") == USER_RL]
    verdict_lines = verdict(before, after)
    context.folder.write_summary(
        {
            "objective": config.user_rl.objective,
            "agent": agent.name,
            "training": {"steps": len(rows), **({"first": rows[0], "last": rows[-1]} if rows else {})},
            "held_out": {"before": before, "after": after},
            "verdict": verdict_lines,
            "seed": config.seed,
            "seconds": context.folder.seconds,
        }
    )
    text = report(before, after)
    write_text(context.folder.path / "report.md", text + "\n" + "\n".join(verdict_lines) + "\n")
    for line in (text, *verdict_lines):
        context.progress.say(line)
