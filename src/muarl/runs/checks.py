"""What has to hold before a run opens anything: one list of checks for each recipe, in the order in which they are
made.

Each check raises the error that names the setting and the remedy; what it looks at is in roles.py (who takes part),
users.py (that users can be made), prices.py (what they cost), tasks.py and room.py (memory, disk, context). Before the
recipe is imported, which with its models takes many seconds, a command makes those of ``check_beforehand``: a typo is
answered at once. The recipes check the same, and more, for those who call them from Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from muarl.backends.checkpoint_names import SHIPPED, existing_checkpoint, shipped_with
from muarl.basics.errors import ConfigError
from muarl.basics.extras import require
from muarl.config.parts import PlannedRun
from muarl.config.rl import RlConfig
from muarl.config.sections import DomainConfig, EvalConfig, RunConfig
from muarl.environments.configure import places_of
from muarl.environments.environment import Environment
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.environments.task_draws import check_intents
from muarl.runs.eval_agent import has_models
from muarl.runs.prices import Bounds, check_prices
from muarl.runs.roles import Cast, Role, UserRole, check_fits, check_roles
from muarl.runs.room import Stage, check_disk, check_memory
from muarl.runs.tasks import check_gold, check_tasks
from muarl.runs.users import check_users

MODELS = ("sft", "rl", "quickstart", "user_model", "user_fidelity", "user_rl")
"""Recipes that begin with ``model.checkpoint``."""


def check_beforehand(config: RunConfig, recipe: str, command: str) -> None:
    """What ``command`` needs is installed, checkpoint, file of tasks and intents are there, and endpoints answer.
    CheckpointError, ConfigError, DataError or InfrastructureError names the setting."""
    measured = recipe == "evaluate"
    if recipe in (*MODELS, "pretraining") or (measured and has_models(config.eval, config.eval_user)):
        require("train", command)
    if recipe in MODELS or (measured and config.eval.agent == "sampled"):
        existing_checkpoint(config.model.checkpoint)
    if recipe == "pretraining" and config.base.checkpoint is not None:
        existing_checkpoint(config.base.checkpoint)
    if any(domain.tasks is not None for domain in config.domains) and recipe in ("rl", "evaluate"):
        places_of(config, measuring=measured)
    if recipe in (*MODELS, "evaluate"):
        for domain in config.domains:
            if domain.intents and not (environment := find(domain.name)).is_benchmark:
                check_intents(environment, domain)
    if recipe == "user_rl":
        from muarl.runs.user_checks import check_user_rl  # most commands train no user

        check_user_rl(config)
    if recipe == "rl":
        check_roles(Cast.of(config), *_rl_roles(config.rl), bound=Bounds.of(config).name("budget"))
    elif recipe == "quickstart":
        check_fits(Cast.of(config), "user", "eval_user", "judge")


def check_rl(config: RunConfig, places: Places) -> list[str]:
    """Of ``muarl train``. Returns what is worth knowing about its tasks, line by line."""
    cast, bounds = Cast.of(config), Bounds.of(config)
    notes = check_tasks(config.rl, places)
    check_prices(cast, bounds, "user", "eval_user")
    check_gold(config.rl, config.eval, config.seed, places)
    check_roles(cast, *_rl_roles(config.rl), bound=bounds.name("budget"))
    check_users(cast, places, user_splits(config, "rl"))
    check_machine(config, config.rl)
    return notes


def user_splits(config: RunConfig, recipe: str) -> dict[UserRole, str]:
    """The users who take part in a training ("rl", "sft" or "quickstart"), and the split of the tasks that they have
    there."""
    if recipe == "sft":
        return {"user": "train"} if config.sft.demonstrations_file is None else {}
    if recipe == "quickstart":
        return {"user": "train", "eval_user": config.eval.split}
    splits: dict[UserRole, str] = {"user": "train", "eval_user": "validation"}
    return {role: split for role, split in splits.items() if role in _rl_roles(config.rl)}


def check_quickstart(cast: Cast, bounds: Bounds) -> None:
    """Of ``muarl quickstart``, before its environment is made."""
    check_prices(cast, bounds, "user", "eval_user")
    check_roles(cast, "user", "eval_user", "judge", bound=bounds.name("budget"))


def check_quickstart_tasks(config: RunConfig, places: Places) -> list[str]:
    """Of ``muarl quickstart``, once its environment is made: what its cold start, RL and evaluations play. Returns what
    is worth knowing about its tasks, line by line."""
    notes = check_tasks(config.rl, places)
    check_users(Cast.of(config), places, user_splits(config, "quickstart"))
    check_gold(config.rl, config.eval, config.seed, places)
    return notes


def check_demonstrator(cast: Cast, bounds: Bounds) -> None:
    """Of a cold start that makes its demonstrations: there is an expert, and the user answers."""
    try:
        for domain in cast.domains:
            find(domain.name).needed_expert()
    except ConfigError as problem:
        raise ConfigError(f"sft: {problem}") from None
    check_prices(cast, bounds, "user")
    check_roles(cast, "user", bound=bounds.name("budget"))


def check_machine(config: RunConfig, *stages: Stage, sampling: bool = True) -> None:
    """Of every training: the machine has memory for it, and the disk that it is written on has room for the checkpoints
    of its ``stages``. ``sampling`` False: nobody samples for the run."""
    run = PlannedRun.of(config)
    check_memory(run, "rl" if any(isinstance(stage, RlConfig) for stage in stages) else "sft", sampling=sampling)
    check_disk(run, config.written, config.checkpoints, *stages)


def check_evaluation(cast: Cast) -> None:
    """Of an evaluation, asking nobody: what it needs of its environments. ConfigError says what is missing."""
    ev = cast.eval
    for domain in cast.domains:
        environment = find(domain.name)
        if ev.tasks is None and environment.endless and not environment.is_benchmark and domain.tasks is None:
            raise ConfigError(f"eval.tasks is null, and {environment.name} has tasks without end: say how many")
    check_eval_split(ev, cast.domains)
    check_fits(cast, *(("agent",) if ev.solo else ("agent", "eval_user")))


def check_eval_split(ev: EvalConfig, domains: Sequence[DomainConfig]) -> None:
    """ConfigError, naming ``eval.split``, for an environment that has no tasks for it."""
    for domain in domains:
        environment = find(domain.name)
        if domain.tasks is None:
            environment.check_split(ev.split, "eval.split")


def _rl_roles(rl: RlConfig) -> tuple[Role, ...]:
    if rl.replay is not None:
        return ()
    return ("user", "judge", "eval_user") if rl.eval_every else ("user", "judge")


def made_elsewhere(checkpoint: str, cast: Cast, recipe: str) -> str | None:
    """What to know of a run that begins with a shipped checkpoint in an environment that it was not made on; None if
    there is nothing to be said."""
    measured = recipe == "evaluate" and cast.eval.agent == "sampled"
    if not (recipe in MODELS or measured) or checkpoint not in SHIPPED:
        return None
    environment = next((e for e in map(find, (d.name for d in cast.domains)) if not _made_on(checkpoint, e)), None)
    if environment is None:
        return None
    own = environment.expert is not None and environment.rule_based_user is not None
    small = ", or make a small one with `muarl base --domain NAME`" if own else ""
    return (
        f"Note: the checkpoint {checkpoint} was not made on {environment.name} and knows few of its words: give "
        f"--checkpoint with a pretrained model{small}{', or another --agent' if measured else ''}."
    )


def _made_on(checkpoint: str, environment: Environment) -> bool:
    of_kind = environment if environment.practice is None else find(environment.practice)
    return of_kind.name in shipped_with(checkpoint)
