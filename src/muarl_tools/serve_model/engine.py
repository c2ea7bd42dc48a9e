"""The sampler in a thread of its own: however long a step takes, requests are read, refused and answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.web.json_api import busy, failed, invalid, stopping
from muarl.inference.base import Completion, FinishReason, Sampler, SamplingParams, StreamingSampler
from muarl.inference.vllm.loops import LoopThread
from muarl_tools.serve_model.problems import late

MARGIN = 30.0
"""Seconds that the sampler's own deadline is behind ours."""


@dataclass(frozen=True, slots=True)
class CompletionPart:
    """Some ids of a completion, with their log-probabilities; the last part has ``finish_reason``."""

    ids: Sequence[int]
    logprobs: Sequence[float]
    finish_reason: FinishReason | None = None


class ServedEngine:
    """A sampler, for callers of one event loop.

    ``most``: running completions, those that wait for their turn included; further ones are refused. ``deadline``:
    seconds for one, with waiting.
    """

    def __init__(self, sampler: Sampler, *, most: int = 1024, deadline: float = 600.0) -> None:
        self.sampler, self.most, self.deadline = sampler, most, deadline
        self.under_way = 0
        self.stopping = False
        self._thread = LoopThread("sampler")
        self._running: set[asyncio.Task[Completion]] = set()

    @property
    def streams(self) -> bool:
        """Whether ids can be had before a completion is over."""
        return isinstance(self.sampler, StreamingSampler)

    @contextmanager
    def admitted(self, completions: int) -> Iterator[None]:
        """Room for so many completions. ApiError: there is none, or the server is about to end."""
        if self.stopping:
            raise stopping()
        if self.under_way + completions > self.most:
            raise busy()
        self.under_way += completions
        try:
            yield
        finally:
            self.under_way -= completions

    async def parts(
        self, prompt: Sequence[int], params: SamplingParams, *, session: str | None, soon: bool
    ) -> AsyncGenerator[CompletionPart, None]:
        """One completion in parts; ``soon``: as soon as each is there. Closing it ends the generation.

        ApiError if it cannot be had.
        """
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[CompletionPart | None] = asyncio.Queue()

        def on_tokens(ids: Sequence[int], logprobs: Sequence[float]) -> None:
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, CompletionPart(tuple(ids), tuple(logprobs)))
            except RuntimeError:  # the server's loop has ended; nobody listens
                pass

        if soon and isinstance(self.sampler, StreamingSampler):
            work = self.sampler.stream(prompt, params, on_tokens, session=session)
        else:
            work = self.sampler.sample(prompt, params, session=session)
        task = asyncio.ensure_future(self._thread.call(work, self.deadline + MARGIN, "a completion"))
        self._running.add(task)
        task.add_done_callback(lambda _: arrived.put_nowait(None))
        told, until = 0, loop.time() + self.deadline
        try:
            while True:
                async with asyncio.timeout_at(until):
                    part = await arrived.get()
                more = [part]
                while not arrived.empty():  # whoever is slow to read gets several at once
                    more.append(arrived.get_nowait())
                known = [p for p in more if p is not None]
                if known:
                    told += sum(len(p.ids) for p in known)
                    yield CompletionPart([i for p in known for i in p.ids], [x for p in known for x in p.logprobs])
                if more[-1] is None:
                    break
            sampled = task.result()
            yield CompletionPart(sampled.ids[told:], sampled.logprobs[told:], sampled.finish_reason)
        except TimeoutError:
            raise late(self.deadline) from None
        except ConfigError as problem:
            raise invalid(str(problem)) from problem
        except InfrastructureError as problem:
            raise failed(str(problem)) from problem
        except asyncio.CancelledError:
            if self.stopping and task.cancelled():
                raise stopping() from None
            raise
        finally:
            self._running.discard(task)
            task.cancel()

    def forget(self, session: str) -> None:
        """Nobody continues this session."""
        self._thread.soon(lambda: self.sampler.close_session(session))

    def abort(self) -> None:
        """End what is running: the server has waited long enough."""
        self.stopping = True
        for task in self._running:
            task.cancel()

    def close(self) -> None:
        """End the thread. The sampler is its owner's to close."""
        self._thread.stop()
