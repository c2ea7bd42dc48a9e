"""What ``muarl reproduce`` runs: every stage as an ordinary run with a configuration of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.config.section import UserConfig
from muarl.config.sections import DomainConfig, RunConfig
from muarl.config.stages import ReproduceConfig
from muarl_tools.experiments.stages import Stage

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
SFT, TRAIN, EVALUATE = "muarl.recipes.sft", "muarl.recipes.rl", "muarl.recipes.evaluate"
MAKE_BASE = "muarl_tools.experiments.reproduce.base"
"""The modules that run the stages."""
FURTHER_SEED = 1000
"""What is added to the seed of the cold start's tasks in a further cold start."""
TURNS = 16
"""Turns of the wandering agents whose conversations the base reads, at most."""


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


def root_of(runs_dir: Path, name: str) -> Path:
    """The folder that holds the runs of a reproduction."""
    return runs_dir.expanduser() / name


def arms_of(wanted: ReproduceConfig) -> dict[str, str]:
    """The arms that a reproduction has, as in ``ARMS``."""
    names = {BASE, *wanted.arms, *((MORE,) if wanted.further_cold_start else ())}
    return {arm: label for arm, label in ARMS.items() if arm in names}


def met_in(wanted: ReproduceConfig, user: str) -> tuple[str, ...]:
    """The environments in which every arm meets a user."""
    return wanted.evaluated if user == RULES else wanted.user_model_in if user == MODEL else wanted.rl


def stages(config: RunConfig, seeds: Sequence[int]) -> list[Stage]:
    """All stages in an order in which they can be run."""
    return _Plan(config).stages(seeds)


def evaluations(config: RunConfig, seeds: Sequence[int]) -> list[ArmEvaluation]:
    """The evaluations of all arms."""
    return _Plan(config).evaluations(seeds)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Makes the stages of a reproduction of its configuration."""

    config: RunConfig

    @property
    def root(self) -> Path:
        """The folder that holds the runs."""
        return root_of(self.config.runs_dir, self.config.name)

    def stages(self, seeds: Sequence[int]) -> list[Stage]:
        """All stages in an order in which they can be run."""
        wanted, arms = self.config.reproduce, arms_of(self.config.reproduce)
        found, needs = ([], ()) if wanted.pretrained else ([self._base()], (BASE,))
        base = self._base_checkpoint()
        for seed in seeds:
            cold = self._training(COLD, seed, base, SFT, wanted.cold_start, needs=needs)
            rl = self._training(RL, seed, base, TRAIN, wanted.rl, needs=needs)
            both = self._training(BOTH, seed, str(cold.folder), TRAIN, wanted.rl, needs=(cold.name,))
            more = self._training(MORE, seed, str(cold.folder), SFT, wanted.cold_start, needs=(cold.name,))
            found += [stage for arm, stage in ((COLD, cold), (RL, rl), (BOTH, both), (MORE, more)) if arm in arms]
        return found + [evaluation.stage for evaluation in self.evaluations(seeds)]

    def _base_checkpoint(self) -> str:
        pretrained = self.config.reproduce.pretrained
        return self.config.model.checkpoint if pretrained else str(base_folder(self.root / BASE))

    def evaluations(self, seeds: Sequence[int]) -> list[ArmEvaluation]:
        """The evaluations of all arms."""
        root = self.root
        users = (
            RULES,
            *self.config.reproduce.user_traits,
            *(() if self.config.reproduce.user_model is None else (MODEL,)),
        )
        arms: list[tuple[str, int | None, str, str]] = [(BASE, None, BASE, self._base_checkpoint())]
        trained = [arm for arm in arms_of(self.config.reproduce) if arm != BASE]
        arms += [(arm, seed, f"{arm}-{seed}", str(root / f"{arm}-{seed}")) for arm in trained for seed in seeds]
        return [
            ArmEvaluation(arm, seed, user, self._evaluation(arm, name, folder, user))
            for user in users
            for arm, seed, name, folder in arms
        ]

    def _stage(self, name: str, recipe: str, needs: tuple[str, ...], uses: Sequence[str], **update: Any) -> Stage:
        changed: dict[str, Any] = {"name": name, "runs_dir": self.root, "resume": None}
        unset = RunConfig()
        changed |= {
            section: getattr(unset, section) for section in (*SECTIONS[BOTH], *EVALUATION) if section not in uses
        }
        users = ("user_model", "user_model_in", "user_traits", "user_tasks")
        of_others = (*users, "intents", "arms", "further_cold_start", "unseen_tasks")
        changed["reproduce"] = self.config.reproduce.model_copy(
            update={name: getattr(unset.reproduce, name) for name in of_others}
        )
        return Stage(name, self.config.model_copy(update=changed | update), recipe, needs=needs)

    def _domains(self, names: Sequence[str]) -> tuple[DomainConfig, ...]:
        """These environments in equal shares, of the size that the configuration has, with all their tasks."""
        return tuple(DomainConfig(name=name, size=self.config.domains[0].size) for name in names)

    def _played(self, names: Sequence[str]) -> tuple[DomainConfig, ...]:
        """The same; those that RL plays with tasks of ``reproduce.intents`` only."""
        wanted = self.config.reproduce
        return tuple(
            domain.model_copy(update={"intents": wanted.intents}) if domain.name in wanted.rl else domain
            for domain in self._domains(names)
        )

    def _base(self) -> Stage:
        start = start_folder(self.root / BASE)
        return self._stage(
            BASE,
            MAKE_BASE,
            (),
            SECTIONS[BASE],
            domains=self._domains(self.config.reproduce.read),
            model=self.config.model.model_copy(update={"checkpoint": str(start)}),
            rollout=self.config.rollout.model_copy(update={"max_turns": min(TURNS, self.config.rollout.max_turns)}),
        )

    def _training(
        self,
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
            sft, steps = self.config.sft, self.config.reproduce.further_cold_start
            # Other tasks, each shown once, from the rate at which a cold start begins.
            seen = {
                "steps": steps,
                "epochs": None,
                "demonstrations": steps * sft.batch,
                "seed": sft.seed + FURTHER_SEED,
            }
            update["sft"] = sft.model_copy(update=seen)
        return self._stage(
            f"{arm}-{seed}",
            recipe,
            needs,
            SECTIONS[arm],
            seed=seed,
            domains=self._played(environments),
            model=self.config.model.model_copy(update={"checkpoint": start}),
            **update,
        )

    def _evaluation(self, arm: str, name: str, checkpoint: str, user: str) -> Stage:
        wanted, each = self.config.reproduce, self.config.eval.tasks
        names = met_in(wanted, user)
        update: dict[str, Any] = {}
        if user == MODEL:
            update["eval_user"] = UserConfig(
                kind="sampled", checkpoint=wanted.user_model, seed=self.config.eval_user.seed
            )
        elif user != RULES:
            update["eval_user"] = self.config.eval_user.model_copy(update={"traits": UserConfig(traits=user).traits})
        if user != RULES:
            each = wanted.user_tasks or each
        domains = self._played(names)
        total = None if each is None else each * len(names)
        if each is not None and user == RULES and wanted.unseen_tasks is not None:
            counts = [each if name in wanted.rl else wanted.unseen_tasks for name in names]
            domains = tuple(d.model_copy(update={"weight": float(n)}) for d, n in zip(domains, counts, strict=True))
            total = sum(counts)
        # Doing nothing is the same beside every arm, and single turns are those of the expert's users: measured once.
        once = {"baseline": name == BASE, "next_turns": self.config.eval.next_turns if user == RULES else 0}
        update["eval"] = self.config.eval.model_copy(update={"tasks": total, **once})
        return self._stage(
            f"eval-{name}" + ("" if user == RULES else f"-{user}"),
            EVALUATE,
            () if name == BASE and self.config.reproduce.pretrained else (name,),
            (*SECTIONS[arm], *EVALUATION),
            domains=domains,
            model=self.config.model.model_copy(update={"checkpoint": checkpoint}),
            **update,
        )
