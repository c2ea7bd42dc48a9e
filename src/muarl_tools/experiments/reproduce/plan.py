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
OF_OTHERS = (
    "user_model", "user_model_in", "user_traits", "user_tasks", "intents", "arms", "further_cold_start", "unseen_tasks",
)  # fmt: skip
"""Settings of the reproduction that say which stages there are: a stage of its own has them at their defaults."""
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
    plan, wanted = _Plan(config), config.reproduce
    found = [] if wanted.pretrained else [plan.base()]
    made_by = {
        COLD: (BASE, SFT, wanted.cold_start),
        RL: (BASE, TRAIN, wanted.rl),
        BOTH: (COLD, TRAIN, wanted.rl),
        MORE: (COLD, SFT, wanted.cold_start),
    }
    for seed in seeds:
        found += [plan.training(arm, seed, *how) for arm, how in made_by.items() if arm in arms_of(wanted)]
    return found + [evaluation.stage for evaluation in evaluations(config, seeds)]


def evaluations(config: RunConfig, seeds: Sequence[int]) -> list[ArmEvaluation]:
    """The evaluations of all arms."""
    plan, wanted = _Plan(config), config.reproduce
    users = (RULES, *wanted.user_traits, *(() if wanted.user_model is None else (MODEL,)))
    arms = [(arm, seed) for arm in arms_of(wanted) for seed in ((None,) if arm == BASE else seeds)]
    return [ArmEvaluation(arm, seed, user, plan.evaluation(arm, seed, user)) for user in users for arm, seed in arms]


@dataclass(frozen=True, slots=True)
class _Plan:
    """Makes the stages of a reproduction of its configuration."""

    config: RunConfig

    @property
    def root(self) -> Path:
        """The folder that holds the runs."""
        return root_of(self.config.runs_dir, self.config.name)

    def _start(self, arm: str, seed: int | None) -> tuple[str, tuple[str, ...]]:
        """The checkpoint that an arm's stage leaves, and that stage's name; none where the base is somebody else's."""
        if arm == BASE and self.config.reproduce.pretrained:
            return self.config.model.checkpoint, ()
        name = arm if seed is None or arm == BASE else f"{arm}-{seed}"
        return str(base_folder(self.root / BASE) if arm == BASE else self.root / name), (name,)

    def _stage(
        self,
        name: str,
        recipe: str,
        uses: Sequence[str],
        start: tuple[str, tuple[str, ...]],
        domains: Sequence[DomainConfig],
        **update: Any,
    ) -> Stage:
        """A stage that begins at ``start``; the sections that it does not use, and what it does not ask of the
        reproduction, are at their defaults."""
        unset, (checkpoint, needs) = RunConfig(), start
        unused = [section for section in (*SECTIONS[BOTH], *EVALUATION) if section not in uses]
        wanted = {key: getattr(unset.reproduce, key) for key in OF_OTHERS}
        changed = {
            "name": name,
            "runs_dir": self.root,
            "resume": None,
            "domains": tuple(domains),
            "model": self.config.model.model_copy(update={"checkpoint": checkpoint}),
            "reproduce": self.config.reproduce.model_copy(update=wanted),
        }
        changed |= {section: getattr(unset, section) for section in unused}
        return Stage(name, self.config.model_copy(update=changed | update), recipe, needs=needs)

    def _domains(self, names: Sequence[str], intents: tuple[str, ...] = ()) -> tuple[DomainConfig, ...]:
        """These environments in equal shares, of the size that the configuration has; those that RL plays with tasks of
        these intents only, if any."""
        size, played = self.config.domains[0].size, self.config.reproduce.rl
        return tuple(DomainConfig(name=n, size=size, intents=intents if n in played else ()) for n in names)

    def base(self) -> Stage:
        """The base of all arms."""
        rollout = self.config.rollout.model_copy(update={"max_turns": min(TURNS, self.config.rollout.max_turns)})
        start, domains = str(start_folder(self.root / BASE)), self._domains(self.config.reproduce.read)
        return self._stage(BASE, MAKE_BASE, SECTIONS[BASE], (start, ()), domains, rollout=rollout)

    def training(self, arm: str, seed: int, after: str, recipe: str, environments: Sequence[str]) -> Stage:
        """The stage that makes an arm what it is, beginning where another arm's ends."""
        sft, update = self.config.sft, dict[str, Any]()
        if arm == MORE:  # other tasks, each shown once, from the rate at which a cold start begins
            steps = self.config.reproduce.further_cold_start
            seen = {"steps": steps, "epochs": None, "demonstrations": steps * sft.batch}
            update["sft"] = sft.model_copy(update={**seen, "seed": sft.seed + FURTHER_SEED})
        domains = self._domains(environments, self.config.reproduce.intents)
        start = self._start(after, seed)
        return self._stage(f"{arm}-{seed}", recipe, SECTIONS[arm], start, domains, seed=seed, **update)

    def evaluation(self, arm: str, seed: int | None, user: str) -> Stage:
        """An arm with one kind of user."""
        wanted, own, each = self.config.reproduce, self.config.eval_user, self.config.eval.tasks
        names = met_in(wanted, user)
        if user == MODEL:
            own = UserConfig(kind="sampled", checkpoint=wanted.user_model, seed=own.seed)
        elif user != RULES:
            own = own.model_copy(update={"traits": UserConfig(traits=user).traits})
        if user != RULES:
            each = wanted.user_tasks or each
        domains = self._domains(names, wanted.intents)
        total = None if each is None else each * len(names)
        if each is not None and user == RULES and wanted.unseen_tasks is not None:
            counts = [each if name in wanted.rl else wanted.unseen_tasks for name in names]
            domains = tuple(d.model_copy(update={"weight": float(n)}) for d, n in zip(domains, counts, strict=True))
            total = sum(counts)
        # Doing nothing is the same beside every arm, and single turns are those of the expert's users: measured once.
        once = {"baseline": arm == BASE, "next_turns": self.config.eval.next_turns if user == RULES else 0}
        measured = self.config.eval.model_copy(update={"tasks": total, **once})
        name = f"eval-{arm}{'' if seed is None else f'-{seed}'}{'' if user == RULES else f'-{user}'}"
        uses = (*SECTIONS[arm], *EVALUATION)
        return self._stage(name, EVALUATE, uses, self._start(arm, seed), domains, eval=measured, eval_user=own)
