"""What ``muarl reproduce`` runs: every stage as an ordinary run with a configuration of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.config import RunConfig
from muarl.config.sections import DomainConfig, UserConfig

BASE, COLD, RL, BOTH = "base", "cold", "rl", "both"
ARMS = {BASE: "base", COLD: "cold start only", RL: "RL only", BOTH: "both"}
"""The arms by their names in folders, and what they are called."""
RULES, MODEL = "rules", "model"
"""Who plays the user in an evaluation."""
SECTIONS = {BASE: ("base",), COLD: ("base", "sft"), RL: ("base", "rl"), BOTH: ("base", "sft", "rl")}
"""The sections about stages that each arm has come from. In a stage's own settings the others are at their defaults, so
that what is changed of one stage leaves those valid that did not come from it."""
EVALUATION = ("eval", "eval_user")
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
    """An arm's evaluation. ``seed``: None for the base, which is one for all seeds. ``user``: RULES or MODEL."""

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


def stages(config: RunConfig, seeds: Sequence[int]) -> list[Stage]:
    """All stages in an order in which they can be run."""
    found = [_base(config)]
    trained = {BASE: base_folder(found[0].folder)}
    for seed in seeds:
        cold = _training(config, COLD, seed, trained[BASE], "sft", config.reproduce.cold_start)
        rl = _training(config, RL, seed, trained[BASE], "rl", config.reproduce.rl)
        both = _training(config, BOTH, seed, cold.folder, "rl", config.reproduce.rl, needs=(cold.name,))
        found += [cold, rl, both]
    return found + [evaluation.stage for evaluation in evaluations(config, seeds)]


def evaluations(config: RunConfig, seeds: Sequence[int]) -> list[ArmEvaluation]:
    """The evaluations of all arms."""
    root = root_of(config)
    users = (RULES,) if config.reproduce.user_model is None else (RULES, MODEL)
    arms: list[tuple[str, int | None, str, Path]] = [(BASE, None, BASE, base_folder(root / BASE))]
    arms += [(arm, seed, f"{arm}-{seed}", root / f"{arm}-{seed}") for arm in (COLD, RL, BOTH) for seed in seeds]
    return [
        ArmEvaluation(arm, seed, user, _evaluation(config, arm, name, folder, user))
        for user in users
        for arm, seed, name, folder in arms
    ]


def _stage(
    config: RunConfig, name: str, recipe: str, needs: tuple[str, ...], uses: Sequence[str], **update: Any
) -> Stage:
    changed: dict[str, Any] = {"name": name, "runs_dir": root_of(config), "resume": None}
    unset = RunConfig()
    changed |= {section: getattr(unset, section) for section in (*SECTIONS[BOTH], *EVALUATION) if section not in uses}
    wanted = {"user_model": None, "user_model_in": unset.reproduce.user_model_in, "intents": ()}
    changed["reproduce"] = config.reproduce.model_copy(update=wanted)
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
    start: Path,
    recipe: str,
    environments: Sequence[str],
    *,
    needs: tuple[str, ...] = (BASE,),
) -> Stage:
    return _stage(
        config,
        f"{arm}-{seed}",
        recipe,
        needs,
        SECTIONS[arm],
        seed=seed,
        domains=_played(config, environments),
        model=config.model.model_copy(update={"checkpoint": str(start)}),
    )


def _evaluation(config: RunConfig, arm: str, name: str, folder: Path, user: str) -> Stage:
    names = config.reproduce.evaluated
    update: dict[str, Any] = {}
    if user == MODEL:
        names = config.reproduce.user_model_in
        update["eval_user"] = UserConfig(
            kind="sampled", checkpoint=config.reproduce.user_model, seed=config.eval_user.seed
        )
    each = config.eval.tasks
    # Doing nothing is the same beside every arm, and is measured once.
    update["eval"] = config.eval.model_copy(
        update={"tasks": None if each is None else each * len(names), "baseline": name == BASE}
    )
    return _stage(
        config,
        f"eval-{name}" + ("-model" if user == MODEL else ""),
        "evaluate",
        (name,),
        (*SECTIONS[arm], *EVALUATION),
        domains=_played(config, names),
        model=config.model.model_copy(update={"checkpoint": str(folder)}),
        **update,
    )
