"""``muarl sft``: the cold start. Fine-tune on demonstrations; only the agent's own tokens are learned."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from muarl.backends.engines import settle
from muarl.backends.model_notes import COLD_START as COLD_START
from muarl.backends.models import load_model, model_format
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, DataError
from muarl.basics.event_loop import event_loop
from muarl.basics.stopping import held
from muarl.config.parts import Compute
from muarl.config.section import UserConfig
from muarl.config.sections import ModelConfig, RunConfig
from muarl.config.stages import SftConfig
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.learning.checkpoint_folders import checkpoint_path, latest_checkpoint
from muarl.learning.checkpoints import Policy
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig
from muarl.recipes.demonstrations import DEMONSTRATIONS, Segments, demonstrate, supervised_samples
from muarl.runs.checks import check_demonstrator, check_machine
from muarl.runs.context import RunContext, open_context, prepare, tell_domain
from muarl.runs.prices import Bounds
from muarl.runs.results_store import ResultsStore
from muarl.runs.resuming import go_back, resume_point
from muarl.runs.roles import Cast
from muarl.runs.tasks import check_may_train, demonstration_notes, demonstration_seed
from muarl.types.episode import Episode, read_episodes


def run(config: RunConfig) -> Path:
    """Fine-tune ``model.checkpoint`` on demonstrations. Returns the run's folder, with a checkpoint in it."""
    prepare(config)
    file = config.sft.demonstrations_file
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark, files={"sft.demonstrations_file": file})
    places = places_of(config, with_rl=False)
    check_demonstrations(file, Cast.of(config), Bounds.of(config))
    check_machine(config, config.sft, sampling=False)
    policy = load_model(config.model, weights=Compute.of(config).learns_here)
    if file is not None:  # others are made within the run
        samples = _samples(config.model, config.sft, places, policy, read_demonstrations(file))
        check_lengths(config.learner.pack_tokens, policy, samples)
    with open_context(config, "sft", on_cluster=True, learns_only=True) as context:
        context.loop.closes(places)
        for note in demonstration_notes(config.sft, places):
            context.progress.say(note)
        cold_start(context, config, places, policy)
    return context.folder.path


def check_demonstrations(file: Path | None, cast: Cast, bounds: Bounds) -> None:
    """Find out whether there will be demonstrations before anything is made: the file is read, or the user asked."""
    if file is not None:
        read_demonstrations(file)
        return
    check_demonstrator(cast, bounds)


def demonstrations(context: RunContext, sft: SftConfig, user: UserConfig, places: Places) -> list[Episode]:
    """The demonstrations to learn from: a file's, or the scripted expert's with the configured errors.

    The first 50 are kept in the run's folder. Those with a language model as the user are paid for, and would be others
    a second time: each is kept there as soon as it is final.

    DataError if the file is missing, malformed or empty, or if every conversation failed.
    """
    run = context.folder
    if sft.demonstrations_file is not None:
        episodes = read_demonstrations(sft.demonstrations_file)
        run.write_episodes(DEMONSTRATIONS, episodes[:50])
        return episodes
    tasks = places.draw("train", sft.demonstrations, demonstration_seed(sft, context.seed), 0)
    error_profile = ErrorProfile(**sft.error_profile.model_dump())
    users = make_users(user, places, context.backend.compute)
    results = ResultsStore(run, DEMONSTRATIONS, phase=DEMONSTRATIONS) if user.kind == "llm" else None
    with event_loop() as loop, context.progress.phase(DEMONSTRATIONS, len(tasks), "conversations") as phase:
        loop.closes(users)
        episodes = demonstrate(
            places,
            users,
            tasks,
            error_profile,
            seed=context.seed,
            progress=lambda *_: phase.advance(),
            results=results,
            spending=context.spending,
        )
    if not episodes:
        raise DataError("demonstrations: every conversation failed; is the simulated user's endpoint in order?")
    if results is None:
        run.write_episodes(DEMONSTRATIONS, episodes[:50])
    return episodes


def read_demonstrations(path: Path) -> list[Episode]:
    """The episodes of a demonstrations file, those that broke off left out. DataError says what is wrong and where."""
    try:
        episodes = [e for e in read_episodes(path.expanduser()) if e.learnable]
    except (OSError, ValueError) as problem:
        text = str(problem) if str(path) in str(problem) else f"{path}: {problem}"
        raise DataError(f"sft.demonstrations_file: {text}") from None
    if not episodes:
        raise DataError(f"sft.demonstrations_file: {path} holds no episode")
    return episodes


def cold_start(context: RunContext, config: RunConfig, places: Places, policy: Policy) -> list[Episode]:
    """Fine-tune the policy's model in place and leave a checkpoint; returns the demonstrations that it learned from."""
    tell_domain(context.folder, config.domain_text, places)
    conversations = demonstrations(context, config.sft, config.user, places)
    fit(context, config.sft, policy, _samples(config.model, config.sft, places, policy, conversations))
    return conversations


def _samples(
    model: ModelConfig, sft: SftConfig, places: Places, policy: Policy, episodes: Sequence[Episode]
) -> list[Segments]:
    chat = model_format(policy.tokenizer, model)
    return supervised_samples(episodes, places, chat, other_weight=sft.other_token_weight)


def check_lengths(pack_tokens: int, policy: Policy, conversations: Sequence[Segments]) -> None:
    """ConfigError if a demonstration has more tokens than the model reads, or than one pass of the update takes."""
    longest = max(len(s.ids) for segments in conversations for s in segments)
    most = policy.model.config.max_position_embeddings
    if longest > most:
        raise ConfigError(
            f"sft: a demonstration has {longest:,} tokens, and the model in {policy.path} reads at most "
            f"{most:,}: choose shorter demonstrations, or another model.checkpoint"
        )
    if longest > pack_tokens:
        raise ConfigError(f"learner.pack_tokens is {pack_tokens}, and a demonstration takes {longest}: raise it")


def fit(
    context: RunContext, sft: SftConfig, policy: Policy, conversations: Sequence[Segments], *, name: str = "cold start"
) -> None:
    """Fine-tune the policy's model in place on conversations, each with all of its segments; leaves checkpoints."""
    folder, progress, backend = context.folder, context.progress, context.backend
    check_lengths(backend.compute.learner.pack_tokens, policy, conversations)
    steps = sft.step_count(len(conversations))
    schedule = ScheduleConfig(sft.schedule, sft.warmup, max(steps, 1), sft.decay or 1e-6)
    optimizer = OptimizerConfig(
        kind=sft.optimizer,
        lr=sft.lr,
        muon_lr=sft.matrix_lr,
        weight_decay=sft.weight_decay,
        max_grad_norm=sft.grad_clip,
        schedule=schedule,
    )
    settings = LearnerConfig(optimizer=optimizer, policy=PolicyLossConfig(kl_coef=0.0))
    learner = backend.learner(policy, settings, COLD_START)
    first = 0
    if context.resumed:
        resumed = resume_point(folder.checkpoints, progress.say)
        if resumed is not None:
            first = int(learner.load(resumed)["step"])
            if first > steps:
                raise ConfigError(
                    f"sft: {steps} steps, and this run has made {first} already: it cannot become shorter"
                )
        later = first < steps and latest_checkpoint(folder.checkpoints / "rl") is None
        go_back(
            folder,
            folder.checkpoints,
            resumed,
            {COLD_START: first} | ({"rl": 0, "validation": 0, "evaluation": 0} if later else {}),
            (lambda name: name != DEMONSTRATIONS) if later else None,
        )

    def save(step: int) -> None:
        path = checkpoint_path(folder.checkpoints, step)
        if step and not path.exists():
            learner.save(path, {"step": step, "phase": COLD_START})
            context.prune(folder.checkpoints)

    made, whole = first, True  # whole: the learner is as the last step left it
    with progress.phase(name, steps) as phase:
        phase.resume(first)
        try:
            for step in range(first, steps):
                with held():
                    whole = False
                    metrics = learner.sft_step(_batch(conversations, step, sft.batch, context.seed))
                    context.logger.log(timed(metrics), phase=COLD_START, step=step)
                    made, whole = step + 1, True
                phase.advance(nll=metrics.get("agent_nll", 0.0))
                if made == steps or (sft.checkpoint_every and made % sft.checkpoint_every == 0):
                    save(made)
        except KeyboardInterrupt:
            if whole:
                save(made)
            raise
    settle(policy, learner, latest_checkpoint(folder.checkpoints))


def timed(metrics: Mapping[str, float]) -> dict[str, float]:
    """A step's figures with its seconds as ``time/update``: in a row, ``seconds`` are those of the run."""
    return {"time/update" if name == "seconds" else name: value for name, value in metrics.items()}


def _batch(conversations: Sequence[Segments], step: int, size: int, seed: int) -> list[Sample]:
    """Batch number ``step``: ``size`` conversations, in a new order every round, a function of (seed, step) alone."""
    picked: list[Sample] = []
    for position in range(step * size, (step + 1) * size):
        turn, place = divmod(position, len(conversations))
        picked += conversations[_order(len(conversations), seed, turn)[place]]
    return picked


@lru_cache(maxsize=2)
def _order(count: int, seed: int, turn: int) -> list[int]:
    return random.Random(f"sft order {seed} {turn}").sample(range(count), count)
