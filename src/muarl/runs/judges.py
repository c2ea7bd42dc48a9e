"""The judges of a run: each model is opened once, whatever it judges, and closed by whoever opened it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muarl.config import RunConfig
from muarl.environments.registry import find
from muarl.rewards.judge import FixedJudge, Judge, JudgeModel, ModelJudge, open_judge_model
from muarl.types.episode import Usage


@dataclass(frozen=True)
class Judges:
    """Who judges what a run plays. ``score``: the tasks' assertions about words; ``users``: simulated users; ``audit``:
    what an audit's rules cannot decide; None where no model is asked. ``models``: the different models among them that
    these tasks may need.
    """

    score: Judge
    users: JudgeModel | None = None
    audit: JudgeModel | None = None
    models: tuple[JudgeModel, ...] = ()

    @classmethod
    def of(cls, config: RunConfig) -> Judges:
        """The judges that a configuration names, at its prices. ConfigError for a name that is none."""
        opened: dict[str, JudgeModel | None] = {}

        def model(spec: str | None) -> JudgeModel | None:
            if spec is None:
                return None
            if spec not in opened:
                opened[spec] = open_judge_model(spec, config.eval.prices)
            return opened[spec]

        asked = [model(spec) for spec in judge_specs(config).values()]
        judge, fixed = model(config.eval.judge), FixedJudge(config.eval.judge == "pass")
        return cls(
            fixed if judge is None else ModelJudge(judge),
            model(config.eval.user_judge),
            model(config.eval.audit_judge),
            tuple(dict.fromkeys(m for m in asked if m is not None)),
        )

    @property
    def used(self) -> Usage:
        """What they have used so far."""
        return sum((m.usage for m in self.models), Usage())

    @property
    def unpriced(self) -> list[str]:
        """The models of which nobody said what they cost."""
        return [m.endpoint.model for m in self.models if m.endpoint.config.price is None]

    async def aclose(self) -> None:
        """Close all connections; the judges can be asked again afterwards."""
        await self.score.aclose()
        for model in self.models:
            await model.aclose()


def judge_specs(config: RunConfig) -> Mapping[str, str]:
    """The judges that a run may ask, by the setting that names them; generated tasks have no assertions about words."""
    measured = any(find(domain.name).is_benchmark for domain in config.domains)
    named = {"eval.judge": config.eval.judge} if measured else {}
    others = {"eval.user_judge": config.eval.user_judge, "eval.audit_judge": config.eval.audit_judge}
    return named | {setting: spec for setting, spec in others.items() if spec is not None}
