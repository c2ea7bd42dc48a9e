"""Conversations with real user turns in TRL's GRPOTrainer, by its ``rollout_func``.

    turns = UserTurns()
    rows = [{"prompt": f"retail-generated:train:{number}"} for number in range(1000)]
    trainer = GRPOTrainer(..., train_dataset=Dataset.from_list(rows), rollout_func=turns, reward_funcs=episode_reward)

A prompt is the address of a task. The conversations are muarl's own, as in `muarl train`, with the tokens that TRL
sampled, id for id; TRL generates for all conversations that wait for the policy at once.
"""

from __future__ import annotations

import asyncio
import logging
import queue
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from muarl.basics.extras import require

require("trl", "muarl_integrations.trl_rollouts")  # before PyTorch is needed, too

from muarl.accounts.metrics import is_success
from muarl.agents.sampled import SampledAgent
from muarl.basics.errors import ConfigError
from muarl.basics.seeds import derive_seed
from muarl.endpoints.client import Endpoint
from muarl.environments.place import Place
from muarl.environments.registry import load_task
from muarl.environments.results import EpisodeFailure, PlayResult
from muarl.inference.base import Completion, SamplingParams
from muarl.rewards.judge import Judge
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest
from muarl.rollouts.rules import Limits
from muarl.types.episode import Episode, StopReason, TokenTrace
from muarl.users.base import UserFactory
from muarl_integrations.blocking import submit

log = logging.getLogger(__name__)

_Place = tuple[Place, EpisodeRunner]
_Play = tuple[EpisodeRunner, RolloutRequest]
Generate = Callable[[list[list[int]]], tuple[Sequence[Sequence[int]], Sequence[Sequence[float]] | None]]
"""Completions of prompts, with their log-probabilities where there are any."""


def episode_reward(
    completions: Sequence[Any],
    muarl_reward: Sequence[float | None],
    muarl_stop: Sequence[str] = (),
    log_metric: Callable[[str, float], None] | None = None,
    **_: Any,
) -> list[float | None]:
    """The rewards of ``UserTurns``, as a reward function. None, where something outside the policy failed, makes TRL
    leave the conversation out of its group.

    TRL's ``log_metric`` is told ``muarl/failed``, the share of such conversations, and of the others
    ``muarl/success`` and, for every reason, ``muarl/stop/REASON``, the shares that the task was done in and that ended
    so.
    """
    if log_metric is not None:
        for name, value in _metrics(muarl_reward, muarl_stop).items():
            log_metric(f"muarl/{name}", value)
    return list(muarl_reward)


@dataclass
class UserTurns:
    """A ``rollout_func``: plays the conversations of a batch, and gives their tokens and rewards.

    A message of the policy has at most TRL's ``max_completion_length`` tokens; ``context``: the most of a whole
    conversation, None for what the model was made for. Temperature, top-p and the like are TRL's.

    ``users``, ``limits``, ``judge``: as for ``muarl.play``. ``seed``: what customers' randomness follows from.
    ``retries``: further tries of a conversation that something outside the policy broke. ``patience``: seconds that
    conversations wait for others before TRL generates for those that are ready; with rule-based users nobody waits.

    A conversation that something outside the policy broke has no reward, and a warning says once a batch how many there
    were and what happened. ``raise_failures``: the training ends with the failure instead.

    ``prompts``, ``episodes``: those of the last batch, in the same order.
    """

    context: int | None = None
    thinking: bool = False
    users: UserFactory | Endpoint | None = None
    limits: Limits | None = None
    judge: Judge | None = None
    seed: int = 0
    retries: int = 2
    patience: float = 1.0
    raise_failures: bool = False
    prompts: list[str] = field(default_factory=list, init=False)
    episodes: list[Episode] = field(default_factory=list, init=False)
    _batches: int = field(default=0, init=False)

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """TRL's ``rollout_func``. ConfigError for a prompt that is no address of a task."""
        turns = WaitingTurns(len(prompts), self.patience)
        agent = SampledAgent.of(
            turns,
            getattr(trainer.processing_class, "tokenizer", trainer.processing_class),
            turn_tokens=trainer.args.max_completion_length,
            context=self.context or trainer.model.config.get_text_config().max_position_embeddings,
            temperature=trainer.args.temperature,
            thinking=self.thinking,
            earlier_thoughts="keep",
        )
        self._batches += 1
        places: dict[str, _Place] = {}
        plays = [self._play(prompt, number, agent, places) for number, prompt in enumerate(prompts)]
        self.episodes = turns.played(plays, lambda ids: trainer._generate_single_turn(ids, None, {}, 1))
        self.prompts = [*prompts]
        self._tell_failures()
        return _columns(self.episodes, trainer.processing_class.eos_token_id, logprobs=turns.has_logprobs)

    def _tell_failures(self) -> None:
        failures = [failure for episode in self.episodes if (failure := failure_of(episode)) is not None]
        if failures and self.raise_failures:
            raise failures[0].error()
        if failures:
            text = "%d of %d conversations failed and have no reward. The first: %s"
            log.warning(text, len(failures), len(self.episodes), failures[0].text)

    def _play(self, prompt: str, number: int, agent: SampledAgent, places: dict[str, _Place]) -> _Play:
        """Who plays a prompt's conversation, and which. ``places``: by environment and size, those that were made."""
        if not isinstance(prompt, str):
            raise ConfigError("prompt: must be the address of a task, such as retail-generated:train:17")
        task = load_task(prompt)
        assert task.origin is not None
        environment, size = task.origin.environment, task.origin.address.size
        found = places.get(f"{environment.name}?{size}")
        if found is None:
            mode = "native" if environment.is_benchmark else "auto"
            place = environment.place(size, limits=self.limits, judge=self.judge, mode=mode)
            runner = place.runner(place.sampled_agent(agent), place.users(self.users), retries=self.retries)
            found = places[f"{environment.name}?{size}"] = (place, runner)
        place, runner = found
        place.check_playable(task)
        request = place.request(task, derive_seed(self.seed, self._batches, number))
        return runner, replace(request, group=f"{number:06d}/{request.group}")


class WaitingTurns:
    """A ``Sampler`` for conversations in one thread, whose completions are made in batches by another.

    ``live``: how many conversations there are. ``has_logprobs``: whether the completions came with some.
    """

    version = 0

    def __init__(self, live: int, patience: float) -> None:
        self._live, self._patience = live, patience
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self.has_logprobs = False

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        """Wait until the other thread has made it."""
        asked = _Asked(session or "", list(prompt_ids), params, asyncio.get_running_loop())
        self._asked.put(asked)
        return await asked.answer

    def close_session(self, session: str) -> None:
        """Nothing is kept of a conversation."""

    def played(self, plays: Sequence[_Play], generate: Generate) -> list[Episode]:
        """The episodes, played in the background thread; this thread calls ``generate`` for them until all are over."""
        playing = submit(self._all(plays))
        try:
            while waiting := self._waiting():
                self._answer(waiting, generate)
        except BaseException:
            playing.cancel()
            raise
        return playing.result()

    async def _all(self, plays: Sequence[_Play]) -> list[Episode]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(runner, request)) for runner, request in plays]
        return [task.result() for task in tasks]

    async def _one(self, runner: EpisodeRunner, request: RolloutRequest) -> Episode:
        try:
            return await runner.play(request)
        finally:
            self._asked.put(None)

    def _waiting(self) -> list[_Asked]:
        """Those that wait for the policy once all do that are not over, or nobody came for a while; none when all are
        over. Their order does not depend on who was first."""
        waiting: list[_Asked] = []
        while len(waiting) < self._live:
            try:
                asked = self._asked.get(timeout=self._patience if waiting else None)
            except queue.Empty:
                break
            if asked is None:
                self._live -= 1
            else:
                waiting.append(asked)
        return sorted(waiting, key=lambda asked: asked.session)

    def _answer(self, waiting: Sequence[_Asked], generate: Generate) -> None:
        ids, logprobs = generate([asked.prompt_ids for asked in waiting])
        self.has_logprobs = logprobs is not None
        given = logprobs if logprobs is not None else [[0.0] * len(row) for row in ids]
        for asked, row, each in zip(waiting, ids, given, strict=True):
            asked.loop.call_soon_threadsafe(asked.resolve, row, each)


class _Asked:
    """A completion that a conversation waits for."""

    def __init__(
        self, session: str, prompt_ids: list[int], params: SamplingParams, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.session, self.prompt_ids, self.params, self.loop = session, prompt_ids, params, loop
        self.answer: asyncio.Future[Completion] = loop.create_future()

    def resolve(self, ids: Sequence[int], logprobs: Sequence[float]) -> None:
        """It was made; what is longer than asked for is cut."""
        if self.answer.done():
            return
        kept = tuple(ids[: self.params.max_tokens])
        stopped = bool(kept) and kept[-1] in self.params.stop_ids
        self.answer.set_result(Completion(kept, tuple(logprobs[: len(kept)]), "stop" if stopped else "length", 0))


def _columns(episodes: Sequence[Episode], nothing: int, *, logprobs: bool) -> dict[str, Any]:
    """TRL's columns. Of a conversation without tokens, which has no reward either, one id that carries no loss."""
    columns: dict[str, list[Any]] = {"prompt_ids": [], "completion_ids": [], "env_mask": [], "logprobs": []}
    for episode in episodes:
        trace = episode.tokens
        if trace is None or not trace.sampled_count:
            trace = TokenTrace([nothing] * 2, [False] * 2, [0.0] * 2, [-1] * 2)
            first = 1
        else:
            first = trace.loss_mask.index(True)
        columns["prompt_ids"].append(trace.ids[:first])
        columns["completion_ids"].append(trace.ids[first:])
        columns["env_mask"].append([int(sampled) for sampled in trace.loss_mask[first:]])
        columns["logprobs"].append(trace.logprobs[first:])
    told = {"muarl_reward": [_reward(e) for e in episodes], "muarl_stop": [e.stop.value for e in episodes]}
    return {**columns, "logprobs": columns["logprobs"] if logprobs else None, **told}


def _metrics(rewards: Sequence[float | None], stops: Sequence[str]) -> dict[str, float]:
    """What ``episode_reward`` tells. All of it in every batch: TRL takes means over those that told something."""
    counted = [reward for reward in rewards if reward is not None]
    found = {"failed": 1 - len(counted) / len(rewards)} if rewards else {}
    if counted:
        found["success"] = fmean(is_success(reward) for reward in counted)
    ends = Counter(stop for stop, reward in zip(stops, rewards, strict=False) if reward is not None)
    if total := ends.total():
        found |= {f"stop/{r.value}": ends[r] / total for r in StopReason if r is not StopReason.INFRASTRUCTURE}
    return found


def _reward(episode: Episode) -> float | None:
    """The reward, None where something outside the policy failed, and 0 where a benchmark voids what it wrote."""
    result = PlayResult.of(episode)
    return 0.0 if result.failure is not None and failure_of(episode) is None else result.reward


def failure_of(episode: Episode) -> EpisodeFailure | None:
    """What failed outside the policy, None where nothing did."""
    failure = EpisodeFailure.of(episode)
    return None if failure is not None and failure.void and failure.boundary == "agent" else failure
