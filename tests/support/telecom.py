"""A made carrier for tests, tasks with faults of a phone or line, and generated tasks that are played by rules."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from muarl.agents.expert import ExpertAgent
from muarl.audit.metrics import audit
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.environment import GENERATED_RULES
from muarl.environments.registry import find
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.episode import Episode
from muarl.users.agenda import AgendaUserFactory
from muarl_worlds.tau.telecom.customers import SIZES, make_carrier
from muarl_worlds.tau.telecom.faults import FaultContext, breaking
from muarl_worlds.tau.telecom.records import telecom_database
from support import kit

CARRIER = make_carrier("tests 2", SIZES["tiny"])
"""Its first customer has a paid bill, one that is not due yet, and no overdue one."""
_WHO = CARRIER.tables["customers"][CARRIER.main_customers[0]]
_LINE = CARRIER.tables["lines"][_WHO["line_ids"][0]]
_LIMIT = CARRIER.tables["plans"][_LINE["plan_id"]]["data_limit_gb"]
PLACE = FaultContext(
    _WHO["full_name"], _LINE["phone_number"], _WHO["customer_id"], _LINE["line_id"], _LIMIT, CARRIER.spare_bill, 2.0
)


def broken_task(faults: Sequence[str], *, abroad: bool = False, **more: object) -> Task:
    """A task at the tests' own carrier with these faults."""
    given = {"initial_actions": tuple(breaking(faults, PLACE, abroad)), **more}
    return Task("made-up", "telecom", "", None, database=telecom_database(CARRIER.tables), **given)  # type: ignore[arg-type]


TELECOM = find("telecom-generated")


def made(size: str, split: str, count: int) -> tuple[Task, ...]:
    return kit.made(TELECOM, size, split, count)


def play(tasks: tuple[Task, ...], size: str = "tiny", **errors: float) -> list[Episode]:
    domain, rules = TELECOM.make_domain(size), TELECOM.audit_rules()
    runner = EpisodeRunner(
        make_world=domain.world,
        agent=ExpertAgent(ErrorProfile(**errors), make=TELECOM.expert),
        make_user=AgendaUserFactory(TELECOM.rule_based_user, seed=1),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        audit=lambda task, world, episode: audit(episode, task, domain.kind_of, rules),
        rules=GENERATED_RULES,
    )
    return asyncio.run(rollout(requests_for(tasks, 1, seed=0), LocalExecutor(runner.play))).episodes
