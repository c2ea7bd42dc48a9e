"""``muarl sft``: the cold start. Fine-tune on demonstrations; only the agent's own tokens are learned."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from muarl.config import RunConfig, SftConfig
from muarl.domains.experts import Habits
from muarl.episode import Episode, StopReason, read_episodes
from muarl.errors import ConfigError, DataError
from muarl.learning.checkpoints import Policy, checkpoint_path, latest_checkpoint
from muarl.learning.learner import LearnerConfig, PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.observe.loggers import MetricLogger
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.recipes.common import load_model, make_users, open_logger, open_run, prepare, tell_domain
from muarl.recipes.demonstrations import DEMONSTRATIONS, demonstrate, supervised_samples
from muarl.recipes.engines import learns_here, machines, make_learner, settle
from muarl.recipes.ledger import Ledger
from muarl.recipes.notes import COLD_START as COLD_START
from muarl.recipes.preflight import check_disk, check_memory, check_roles
from muarl.recipes.resuming import go_back, prune, resume_point
from muarl.recipes.setting import Setting, make_setting
from muarl.recipes.spending import Spending, check_prices
from muarl.stopping import held
from muarl.tokens import ChatTokens


def run(config: RunConfig) -> Path:
    """Fine-tune ``model.checkpoint`` on demonstrations. Returns the run's folder, with a checkpoint in it."""
    prepare(config)
    setting = make_setting(config)
    check_demonstrations(config)
    check_memory(config, sampling=False)
    check_disk(config)
    policy = load_model(config.model, weights=learns_here(config))
    if config.sft.demonstrations_file is not None:  # others are made within the run
        check_lengths(
            config, policy, _samples(config, setting, policy, read_demonstrations(config.sft.demonstrations_file))
        )
    with (
        machines(config, alone=True),
        open_run(config, "sft") as run,
        Progress() as progress,
        open_logger(config, run) as logger,
    ):
        cold_start(config, setting, policy, run, logger, progress)
    return run.path


def check_demonstrations(config: RunConfig) -> None:
    """Find out whether there will be demonstrations before anything is made: the file is read, or the user asked."""
    if config.sft.demonstrations_file is not None:
        read_demonstrations(config.sft.demonstrations_file)
        return
    if not config.domain.generated:
        raise ConfigError(
            f"sft: the scripted expert knows generated tasks only, not those of {config.domain.name}: set "
            "sft.demonstrations_file"
        )
    check_prices(config, config.user)
    check_roles(config, "user")


def demonstrations(config: RunConfig, setting: Setting, progress: Progress, run: RunDirectory) -> list[Episode]:
    """The demonstrations to learn from: a file's, or the scripted expert's with the configured bad habits.

    The first 50 are kept in the run's folder. Those with a language model as the user are paid for, and would be others
    a second time: each is kept there as soon as it is final.

    DataError if the file is missing, malformed or empty, or if every conversation failed.
    """
    if config.sft.demonstrations_file is not None:
        found = read_demonstrations(config.sft.demonstrations_file)
        run.write_episodes(DEMONSTRATIONS, found[:50])
        return found
    tasks = setting.draw("train", config.sft.demonstrations, config.sft.seed + 1000 * config.seed, 0)
    habits = Habits(**config.sft.habits.model_dump())
    users = make_users(config.user, setting)
    ledger = Ledger(run, DEMONSTRATIONS, phase=DEMONSTRATIONS) if config.user.kind == "llm" else None
    with progress.phase("demonstrations", len(tasks), "conversations") as phase:
        found = demonstrate(
            setting,
            users,
            tasks,
            habits,
            seed=config.seed,
            progress=lambda *_: phase.advance(),
            ledger=ledger,
            spending=Spending(config, run),
        )
    if not found:
        raise DataError("demonstrations: every conversation failed; is the simulated user's endpoint in order?")
    if ledger is None:
        run.write_episodes(DEMONSTRATIONS, found[:50])
    return found


def read_demonstrations(path: Path) -> list[Episode]:
    """The episodes of a demonstrations file, those that broke off left out. DataError says what is wrong and where."""
    try:
        found = [e for e in read_episodes(path.expanduser()) if e.stop is not StopReason.INFRASTRUCTURE]
    except (OSError, ValueError) as problem:
        text = str(problem) if str(path) in str(problem) else f"{path}: {problem}"
        raise DataError(f"sft.demonstrations_file: {text}") from None
    if not found:
        raise DataError(f"sft.demonstrations_file: {path} holds no episode")
    return found


def cold_start(
    config: RunConfig, setting: Setting, policy: Policy, run: RunDirectory, logger: MetricLogger, progress: Progress
) -> list[Episode]:
    """Fine-tune the policy's model in place and leave a checkpoint; returns the demonstrations that it learned from."""
    tell_domain(run, config, setting)
    found = demonstrations(config, setting, progress, run)
    fit(config, policy, _samples(config, setting, policy, found), run, logger, progress)
    return found


def _samples(config: RunConfig, setting: Setting, policy: Policy, found: Sequence[Episode]) -> list[Sample]:
    chat = ChatTokens(policy.tokenizer, thinking=config.model.thinking)
    weight = config.sft.other_token_weight
    return supervised_samples(found, setting.domain, chat, setting.rules, system=setting.system, other_weight=weight)


def check_lengths(config: RunConfig, policy: Policy, samples: Sequence[Sample]) -> None:
    """ConfigError if a demonstration has more tokens than the model reads, or than one pass of the update takes."""
    longest, most = max(len(s.ids) for s in samples), policy.model.config.max_position_embeddings
    if longest > most:
        raise ConfigError(
            f"sft: a demonstration has {longest:,} tokens, and the model in {config.model.checkpoint} reads at most "
            f"{most:,}: choose shorter demonstrations, or another model.checkpoint"
        )
    if longest > config.rl.pack_tokens:
        raise ConfigError(f"rl.pack_tokens is {config.rl.pack_tokens}, and a demonstration takes {longest}: raise it")


def fit(
    config: RunConfig,
    policy: Policy,
    samples: Sequence[Sample],
    run: RunDirectory,
    logger: MetricLogger,
    progress: Progress,
    *,
    name: str = "cold start",
) -> None:
    """Fine-tune the policy's model in place on weighted samples, by the settings of ``sft``; leaves checkpoints."""
    sft = config.sft
    check_lengths(config, policy, samples)
    steps = step_count(sft, len(samples))
    schedule = ScheduleConfig(sft.schedule, sft.warmup, max(steps, 1), sft.decay or 1e-6)
    optimizer = OptimizerConfig(
        kind=sft.optimizer,
        lr=sft.lr,
        muon_lr=sft.matrix_lr,
        weight_decay=sft.weight_decay,
        max_grad_norm=sft.grad_clip,
        schedule=schedule,
    )
    settings = LearnerConfig(
        optimizer=optimizer,
        policy=PolicyLossConfig(kl_coef=0.0),
        token_budget=config.rl.pack_tokens,
        precision=config.model.dtype,
        seed=config.seed,
    )
    learner = make_learner(policy, config, settings)
    first = 0
    if config.resume is not None:
        resumed = resume_point(run.checkpoints, progress.say)
        if resumed is not None:
            first = int(learner.load(resumed)["step"])
            if first > steps:
                raise ConfigError(
                    f"sft: {steps} steps, and this run has made {first} already: it cannot become shorter"
                )
        later = first < steps and latest_checkpoint(run.checkpoints / "rl") is None
        go_back(
            run,
            run.checkpoints,
            resumed,
            {COLD_START: first} | ({"rl": 0, "validation": 0, "evaluation": 0} if later else {}),
            (lambda name: name != DEMONSTRATIONS) if later else None,
        )

    def save(step: int) -> None:
        path = checkpoint_path(run.checkpoints, step)
        if step and not path.exists():
            learner.save(path, {"step": step, "phase": COLD_START})
            prune(config, run.checkpoints)

    made, whole = first, True  # whole: the learner is as the last step left it
    with progress.phase(name, steps) as phase:
        phase.resume(first)
        try:
            for step in range(first, steps):
                with held():
                    whole = False
                    metrics = learner.sft_step(_batch(samples, step, sft.batch, config.seed))
                    logger.log(timed(metrics), phase=COLD_START, step=step)
                    made, whole = step + 1, True
                phase.advance(nll=metrics.get("agent_nll", 0.0))
                if made == steps or (sft.checkpoint_every and made % sft.checkpoint_every == 0):
                    save(made)
        except KeyboardInterrupt:
            if whole:
                save(made)
            raise
    settle(policy, learner, latest_checkpoint(run.checkpoints))


def timed(metrics: Mapping[str, float]) -> dict[str, float]:
    """A step's figures with its seconds as ``time/update``: in a row, ``seconds`` are those of the run."""
    return {"time/update" if name == "seconds" else name: value for name, value in metrics.items()}


def step_count(sft: SftConfig, demonstrations: int) -> int:
    """How many steps a cold start on so many demonstrations takes."""
    return sft.steps if sft.epochs is None else -(-sft.epochs * demonstrations // sft.batch)


def _batch(samples: Sequence[Sample], step: int, size: int, seed: int) -> list[Sample]:
    """Batch number ``step``: the samples in a new order every round, a function of (seed, step) alone."""
    picked = []
    for position in range(step * size, (step + 1) * size):
        turn, place = divmod(position, len(samples))
        picked.append(samples[_order(len(samples), seed, turn)[place]])
    return picked


@lru_cache(maxsize=2)
def _order(count: int, seed: int, turn: int) -> list[int]:
    return random.Random(f"sft order {seed} {turn}").sample(range(count), count)
