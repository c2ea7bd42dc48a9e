"""Many episodes: order, concurrency, retries, exclusion, budgets, interruption."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from loop_kit import Puppet, call, roll_out, say
from muarl.accounts.budgets import BESIDES, Budget, RolloutEnd, besides_of, count
from muarl.agents.base import AgentTurn
from muarl.basics.errors import DataError, InfrastructureError
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import RolloutError, collect_groups
from muarl.rollouts.rules import Limits
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Usage, Verdict
from muarl_worlds.tau.protocol import Tau2Rules
from support.toy_shop import Lines, Toy, toy_task
from support.waiting import happened

DOMAIN = Toy()
DOING = Puppet(say("", call("cancel", order_id="#W12")), "Done.")


class Users:
    """Makes users by a function of (task, attempt number of that task's seed)."""

    name = "lines"

    def __init__(self, make=lambda task, n: Lines("Cancel #W12.")) -> None:
        self.make, self.made, self.alive, self.most = make, Counter(), 0, 0
        self.seeds = []

    def __call__(self, task, *, seed):
        self.made[seed] += 1
        self.seeds.append(seed)
        return self.make(task, self.made[seed])


def score(task, world, episode) -> Verdict:
    cancelled = float(any(c.name == "cancel" for c in world.writes))
    return Verdict(cancelled, {"DB": cancelled})


def run(requests, *, agent=DOING, users=None, **options):
    options = {"score": score} | options
    options = {"make_world": DOMAIN.world, "agent": agent, "make_user": users or Users()} | options
    return asyncio.run(roll_out(requests, **options))


def tasks(n):
    return [toy_task(f"t{i}") for i in range(n)]


def test_groups_of_scored_episodes_in_order():
    requests = requests_for(tasks(3), 4, seed=1, label="step0")
    result = run(requests)
    assert [e.group for e in result.episodes] == [r.group for r in requests]
    assert len({e.id for e in result.episodes}) == 12 and len({e.seed for e in result.episodes}) == 12
    assert result.end is RolloutEnd.COMPLETE
    groups = collect_groups(result.episodes, 4)
    assert [(g.task_id, g.name, g.rewards, g.excluded) for g in groups.kept] == [
        (f"t{i}", f"step0/t{i}", [1.0] * 4, 0) for i in range(3)
    ]
    assert not groups.dropped


def test_seeds_differ_by_step_and_users_may_be_shared():
    first, second = (requests_for(tasks(2), 2, seed=1, label=s) for s in ("0", "1"))
    assert len({r.seed for r in first + second}) == 8
    assert requests_for(tasks(2), 2, seed=1, label="0") == first
    users = Users()
    run(requests_for(tasks(2), 3, seed=1, same_user=True), users=users)
    assert sorted(users.made.values()) == [3, 3]
    users = Users()
    run(requests_for(tasks(2), 3, seed=1), users=users)
    assert sorted(users.made.values()) == [1] * 6


def test_concurrency_is_bounded():
    alive = []

    class Slow(Lines):
        """Counts how many wait at once."""

        async def reply(self, conversation):
            alive.append(1)
            self.most = max(len(alive), most[0])
            most[0] = self.most
            await asyncio.sleep(0.001)
            alive.pop()
            return await super().reply(conversation)

    most = [0]
    result = run(requests_for(tasks(10), 2, seed=0), users=Users(lambda t, n: Slow("a")), concurrency=3)
    assert len(result.episodes) == 20 and most[0] == 3


def test_infrastructure_is_retried_in_a_fresh_world_then_excluded():
    down = InfrastructureError("down", boundary="user")

    def make(task, n):
        if task.id == "t0":
            return Lines(down)
        return Lines("Cancel #W12.", down) if n == 1 else Lines("Cancel #W12.")

    costly = Puppet(AgentTurn(say("", call("cancel", order_id="#W12")), usage=Usage(completion_tokens=3)), "Done.")
    result = run(requests_for(tasks(2), 1, seed=0), agent=costly, users=Users(make), retries=2)
    lost, won = result.episodes
    assert lost.stop is StopReason.INFRASTRUCTURE and lost.verdict is None and lost.tags["attempts"] == 3
    assert won.stop is StopReason.USER_STOP and won.reward == 1.0 and won.tags["attempts"] == 2
    assert sum(m.role == "tool" for m in won.messages) == 1, "the first attempt's messages are gone"
    assert won.agent_usage.completion_tokens == 6 and result.spent.completion_tokens == 6
    assert len({s.name for s in costly.sessions}) == len(costly.sessions), "every attempt has a session of its own"


def test_minimum_viable_group():
    def make(task, n):
        bad = {"t0": 1, "t1": 2}[task.id]
        made[task.id] += 1
        return Lines(InfrastructureError("down", boundary="user")) if made[task.id] <= bad else Lines("x")

    made = Counter()
    result = run(requests_for(tasks(2), 4, seed=0), users=Users(make), retries=0)
    groups = collect_groups(result.episodes, 4)
    assert [(g.task_id, len(g.episodes), g.excluded) for g in groups.kept] == [("t0", 3, 1)]
    assert [(g.task_id, len(g.episodes), g.excluded) for g in groups.dropped] == [("t1", 2, 2)]
    assert len(collect_groups(result.episodes, 4, minimum=2).kept) == 2
    everything_failed = [e for e in result.episodes if e.stop is StopReason.INFRASTRUCTURE]
    assert not collect_groups(everything_failed, 4, minimum=0).kept


def test_truncated_episodes_get_zero_and_stay():
    cancels_then_loops = Puppet(say("", call("cancel", order_id="#W12")), say("", call("look", order_id="#W12")))
    asked = []

    def audited(task, world, episode):
        asked.append(episode.id)
        return {"writes": float(len(world.writes))}

    result = run(
        requests_for(tasks(1), 2, seed=0),
        agent=cancels_then_loops,
        limits=Limits(turns=4),
        score=lambda *a: pytest.fail("a cut episode is not scored"),
        audit=audited,
    )
    for episode in result.episodes:
        assert episode.stop is StopReason.MAX_TURNS and episode.verdict is not None
        assert episode.reward == 0.0 and episode.verdict.breakdown == {"finished": 0.0}
        assert episode.verdict.audit == {"writes": 1.0}
    assert len(asked) == 2 and len(collect_groups(result.episodes, 2).kept[0].episodes) == 2


def test_what_a_limit_cut_may_be_scored_too():
    cancels_then_loops = Puppet(say("", call("cancel", order_id="#W12")), say("", call("look", order_id="#W12")))
    (cut,) = run(requests_for(tasks(1), 1, seed=0), agent=cancels_then_loops, limits=Limits(4), score_cut=True).episodes
    assert cut.stop is StopReason.MAX_TURNS and cut.verdict == Verdict(1.0, {"DB": 1.0})
    failed = Users(lambda task, n: Lines(InfrastructureError("down", boundary="user")))
    (lost,) = run(requests_for(tasks(1), 1, seed=0), users=failed, score_cut=True, retries=0).episodes
    assert lost.verdict is None, "but not what infrastructure ended"


def test_each_task_may_have_its_own_words_and_tools():
    agent = Puppet("Done.")
    specs = DOMAIN.tool_specs()
    result = run(
        requests_for(tasks(3), 1, seed=0),
        agent=agent,
        system=lambda task: None if task.id == "t2" else f"You serve {task.id}.",
        tools=lambda task: {"t0": specs[:1], "t1": ()}.get(task.id),
        concurrency=1,
    )
    told = [(s.system, tuple(s.tools)) for s in agent.sessions]
    assert told == [("You serve t0.", specs[:1]), ("You serve t1.", ()), (DOMAIN.policy_text, specs)]
    assert [(e.system, e.tools) for e in result.episodes] == told
    run(requests_for(tasks(1), 1, seed=0), agent=agent, system="All the same.", tools=specs[1:])
    assert (agent.sessions[-1].system, agent.sessions[-1].tools) == ("All the same.", specs[1:])


def test_users_that_hold_something_are_closed_once_an_attempt():
    made = []

    class Held(Lines):
        """A user that must be closed."""

        def close(self):
            self.closed = getattr(self, "closed", 0) + 1

    def make(task, n):
        made.append(Held(InfrastructureError("down", boundary="user")) if n < 3 else Held("a"))
        return made[-1]

    (episode,) = run(requests_for(tasks(1), 1, seed=0), users=Users(make), retries=2).episodes
    assert episode.stop is StopReason.USER_STOP
    assert [u.closed for u in made] == [1, 1, 1]


def test_replies_that_are_void_are_no_sign_that_nobody_can_be_reached():
    silent = Puppet("")
    options = {"rules": Tau2Rules(), "retries": 0, "give_up": 2}
    result = run(requests_for(tasks(4), 1, seed=0), agent=silent, **options)
    assert [e.stop for e in result.episodes] == [StopReason.INFRASTRUCTURE] * 4
    assert all(e.tags["void"] for e in result.episodes)
    with pytest.raises(RolloutError, match="2 episodes in a row failed"):
        run(requests_for(tasks(4), 1, seed=0), agent=Puppet(KeyError("k")), **options)


def test_score_may_be_a_coroutine_whose_failure_is_infrastructure():
    tries = Counter()

    async def judge(task, world, episode):
        tries[episode.id] += 1
        if task.id == "t0" or tries[episode.id] == 1:
            raise InfrastructureError("judge down", boundary="judge")
        return Verdict(1.0)

    lost, won = run(requests_for(tasks(2), 1, seed=0), score=judge, retries=1).episodes
    assert lost.stop is StopReason.INFRASTRUCTURE and lost.tags["boundary"] == "judge" and lost.verdict is None
    assert won.reward == 1.0


def test_what_judges_use_stands_on_the_conversation_that_they_were_asked_for():
    tries = Counter()

    async def judge(task, world, episode):
        tries[episode.id] += 1
        await asyncio.sleep(0)
        count(Usage(requests=1, cost=int(task.id[1:]) + 0.5), "judge")
        count(Usage(requests=1, cost=100.0), "user")
        if task.id == "t2" and tries[episode.id] == 1:
            raise InfrastructureError("judge down", boundary="judge")
        return Verdict(1.0)

    played = run(requests_for(tasks(3), 1, seed=0), score=judge, retries=1).episodes
    assert [besides_of(e).cost for e in played] == [0.5, 1.5, 5.0], "failed attempts included"
    fixed = run(requests_for(tasks(1), 1, seed=0)).episodes[0]
    assert BESIDES not in fixed.tags


def test_what_cannot_be_mended_ends_the_run_and_keeps_what_finished():
    def make(task, n):
        return Lines(InfrastructureError("wrong API key", boundary="user", retryable=False) if task.id == "t2" else "x")

    seen: list[Episode] = []
    with pytest.raises(RolloutError, match="wrong API key") as caught:
        run(
            requests_for(tasks(9), 1, seed=0),
            users=Users(make),
            concurrency=1,
            progress=lambda e, n, of: seen.append(e),
        )
    assert [e.task_id for e in caught.value.episodes] == ["t0", "t1", "t2"]
    assert seen == caught.value.episodes

    def bad_data(task):
        raise DataError("tasks.json: gone")

    with pytest.raises(RolloutError, match=r"tasks\.json"):
        asyncio.run(
            roll_out(
                requests_for(tasks(2), 1, seed=0), make_world=bad_data, agent=DOING, make_user=Users(), score=score
            )
        )


@pytest.mark.parametrize(
    ("budget", "end"), [(Budget(tokens=25), RolloutEnd.TOKENS), (Budget(cost=0.25), RolloutEnd.COST)]
)
def test_budget(budget, end):
    agent = Puppet(AgentTurn(Message("assistant", "Hm."), usage=Usage(prompt_tokens=6, completion_tokens=4, cost=0.1)))
    result = run(requests_for(tasks(9), 1, seed=0), agent=agent, budget=budget, concurrency=1)
    assert result.end is end and len(result.episodes) == 3
    assert result.spent.prompt_tokens == 18 and result.spent.cost == pytest.approx(0.3)
    assert run(requests_for(tasks(2), 1, seed=0), agent=agent, budget=Budget(cost=5.0)).end is RolloutEnd.COMPLETE


def test_progress_counts():
    counts = []
    run(requests_for(tasks(3), 1, seed=0), progress=lambda e, n, of: counts.append((n, of, e.verdict is not None)))
    assert counts == [(1, 3, True), (2, 3, True), (3, 3, True)]


def test_interruption_closes_every_session_and_keeps_what_finished():
    agent = Puppet("x")
    kept = []

    async def interrupted():
        users = Users(lambda task, n: Lines("a", 60.0) if task.id == "t1" else Lines("a"))
        work = asyncio.create_task(
            roll_out(
                requests_for(tasks(4), 2, seed=0),
                make_world=DOMAIN.world,
                agent=agent,
                make_user=users,
                score=score,
                progress=lambda e, n, of: kept.append(e),
            )
        )
        await happened(lambda: len(kept) == 6 and len(agent.sessions) == 8)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(interrupted())
    assert len(kept) == 6
    assert len(agent.sessions) == 8 and all(s.closed == 1 for s in agent.sessions)


def test_nothing_to_do():
    assert run([]).episodes == []


def test_requests_are_distinct():
    with pytest.raises(ValueError, match="same group and number"):
        run(requests_for(tasks(1), 1, seed=0) * 2)
