"""What ``muarl reproduce`` runs: every stage as an ordinary run with a configuration of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.config import RunConfig
from muarl.config.sections import DomainConfig, UserConfig

BASE, COLD, RL, BOTH, MORE = "base", "cold", "rl", "both", "more"
ARMS = {BASE: "base", COLD: "cold start only", RL: "RL only", BOTH: "both", MORE: "further cold start"}
"""The arms by their names in folders, and what they are called."""
RULES, MODEL = "rules", "model"
"""Who plays the user in an evaluation: rules as in training, or the user model. Rules of a difficulty that
``reproduce.user_traits`` names are called as that is."""
SECTIONS = {BASE: ("base",), COLD: ("base", "sft"), RL: ("base", "rl"), BOTH: ("base", "sft", "rl")}
SECTIONS |= {MORE: SECTIONS[COLD]}
"""The sections about stages that each arm has come from. In a stage's own settings the others are at their defaults, so
that what is changed of one stage leaves those valid that did not come from it."""
EVALUATION = ("eval", "eval_user")
FURTHER_SEED = 1000
"""What is added to the seed of the cold start's tasks in a further cold start."""
TURNS = 16
"""Turns of the wandering agents whose conversations the base reads, at most."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One run. ``config``: everything about it, ``resume`` aside. ``recipe``: the module of muarl.recipes that runs
    it. ``needs``: stages that must be finished before."""

    name: str
    recipe: str
    config: RunConfig
    needs: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.config.run_dir


@dataclass(frozen=True, slots=True)
class ArmEvaluation:
    """An arm's evaluation. ``seed``: None for the base, which is one for all seeds. ``user``: RULES, MODEL, or a
    level of ``reproduce.user_traits``."""

    arm: str
    seed: int | None
    user: str
    stage: Stage


def start_folder(run: Path) -> Path:
    """Where the base's run keeps its tokenizer and random weights."""
    return run / "start"


def base_folder(run: Path) -> Path:
    """Where the base's run leaves the base checkpoint."""
    return run / "checkpoints" / "base"


def root_of(config: RunConfig) -> Path:
    """The folder that holds the runs of a reproduction."""
    return config.runs_dir.expanduser() / config.name


def arms_of(config: RunConfig) -> dict[str, str]:
    """The arms that a reproduction has, as in ``ARMS``."""
    wanted = config.reproduce
    names = {BASE, *wanted.arms, *((MORE,) if wanted.further_cold_start else ())}
    return {arm: label for arm, label in ARMS.items() if arm in names}


def stages(config: RunConfig, seeds: Sequence[int]) -> list[Stage]:
    """All stages in an order in which they can be run."""
    wanted, arms = config.reproduce, arms_of(config)
    found, needs = ([], ()) if wanted.pretrained else ([_base(config)], (BASE,))
    base = _base_checkpoint(config)
    for seed in seeds:
        cold = _training(config, COLD, seed, base, "sft", wanted.cold_start, needs=needs)
        rl = _training(config, RL, seed, base, "rl", wanted.rl, needs=needs)
        both = _training(config, BOTH, seed, str(cold.folder), "rl", wanted.rl, needs=(cold.name,))
        more = _training(config, MORE, seed, str(cold.folder), "sft", wanted.cold_start, needs=(cold.name,))
        found += [stage for arm, stage in ((COLD, cold), (RL, rl), (BOTH, both), (MORE, more)) if arm in arms]
    return found + [evaluation.stage for evaluation in evaluations(config, seeds)]


def _base_checkpoint(config: RunConfig) -> str:
    pretrained = config.reproduce.pretrained
    return config.model.checkpoint if pretrained else str(base_folder(root_of(config) / BASE))


def evaluations(config: RunConfig, seeds: Sequence[int]) -> list[ArmEvaluation]:
    """The evaluations of all arms."""
    root = root_of(config)
    users = (RULES, *config.reproduce.user_traits, *(() if config.reproduce.user_model is None else (MODEL,)))
    arms: list[tuple[str, int | None, str, str]] = [(BASE, None, BASE, _base_checkpoint(config))]
    trained = [arm for arm in arms_of(config) if arm != BASE]
    arms += [(arm, seed, f"{arm}-{seed}", str(root / f"{arm}-{seed}")) for arm in trained for seed in seeds]
    return [
        ArmEvaluation(arm, seed, user, _evaluation(config, arm, name, folder, user))
        for user in users
        for arm, seed, name, folder in arms
    ]


def met_in(config: RunConfig, user: str) -> tuple[str, ...]:
    """The environments in which every arm meets a user."""
    wanted = config.reproduce
    return wanted.evaluated if user == RULES else wanted.user_model_in if user == MODEL else wanted.rl


def _stage(
    config: RunConfig, name: str, recipe: str, needs: tuple[str, ...], uses: Sequence[str], **update: Any
) -> Stage:
    changed: dict[str, Any] = {"name": name, "runs_dir": root_of(config), "resume": None}
    unset = RunConfig()
    changed |= {section: getattr(unset, section) for section in (*SECTIONS[BOTH], *EVALUATION) if section not in uses}
    users = ("user_model", "user_model_in", "user_traits", "user_tasks")
    of_others = (*users, "intents", "arms", "further_cold_start", "unseen_tasks")
    changed["reproduce"] = config.reproduce.model_copy(
        update={name: getattr(unset.reproduce, name) for name in of_others}
    )
    return Stage(name, recipe, config.model_copy(update=changed | update), needs)


def _domains(config: RunConfig, names: Sequence[str]) -> tuple[DomainConfig, ...]:
    """These environments in equal shares, of the size that the configuration has, with all their tasks."""
    return tuple(DomainConfig(name=name, size=config.domains[0].size) for name in names)


def _played(config: RunConfig, names: Sequence[str]) -> tuple[DomainConfig, ...]:
    """The same; those that RL plays with tasks of ``reproduce.intents`` only."""
    wanted = config.reproduce
    return tuple(
        domain.model_copy(update={"intents": wanted.intents}) if domain.name in wanted.rl else domain
        for domain in _domains(config, names)
    )


def _base(config: RunConfig) -> Stage:
    start = start_folder(root_of(config) / BASE)
    return _stage(
        config,
        BASE,
        "reproduce.base",
        (),
        SECTIONS[BASE],
        domains=_domains(config, config.reproduce.read),
        model=config.model.model_copy(update={"checkpoint": str(start)}),
        rollout=config.rollout.model_copy(update={"max_turns": min(TURNS, config.rollout.max_turns)}),
    )


def _training(
    config: RunConfig,
    arm: str,
    seed: int,
    start: str,
    recipe: str,
    environments: Sequence[str],
    *,
    needs: tuple[str, ...],
) -> Stage:
    update: dict[str, Any] = {}
    if arm == MORE:
        sft, steps = config.sft, config.reproduce.further_cold_start
        # Other tasks, each shown once, from the rate at which a cold start begins.
        seen = {"steps": steps, "epochs": None, "demonstrations": steps * sft.batch, "seed": sft.seed + FURTHER_SEED}
        update["sft"] = sft.model_copy(update=seen)
    return _stage(
        config,
        f"{arm}-{seed}",
        recipe,
        needs,
        SECTIONS[arm],
        seed=seed,
        domains=_played(config, environments),
        model=config.model.model_copy(update={"checkpoint": start}),
        **update,
    )


def _evaluation(config: RunConfig, arm: str, name: str, checkpoint: str, user: str) -> Stage:
    wanted, each = config.reproduce, config.eval.tasks
    names = met_in(config, user)
    update: dict[str, Any] = {}
    if user == MODEL:
        update["eval_user"] = UserConfig(kind="sampled", checkpoint=wanted.user_model, seed=config.eval_user.seed)
    elif user != RULES:
        update["eval_user"] = config.eval_user.model_copy(update={"traits": UserConfig(traits=user).traits})
    if user != RULES:
        each = wanted.user_tasks or each
    domains = _played(config, names)
    total = None if each is None else each * len(names)
    if each is not None and user == RULES and wanted.unseen_tasks is not None:
        counts = [each if name in wanted.rl else wanted.unseen_tasks for name in names]
        domains = tuple(d.model_copy(update={"weight": float(n)}) for d, n in zip(domains, counts, strict=True))
        total = sum(counts)
    # Doing nothing is the same beside every arm, and single turns are those of the expert's users: measured once.
    once = {"baseline": name == BASE, "next_turns": config.eval.next_turns if user == RULES else 0}
    update["eval"] = config.eval.model_copy(update={"tasks": total, **once})
    return _stage(
        config,
        f"eval-{name}" + ("" if user == RULES else f"-{user}"),
        "evaluate",
        () if name == BASE and config.reproduce.pretrained else (name,),
        (*SECTIONS[arm], *EVALUATION),
        domains=domains,
        model=config.model.model_copy(update={"checkpoint": checkpoint}),
        **update,
    )
