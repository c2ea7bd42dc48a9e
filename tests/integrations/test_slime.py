"""slime's generate function, with a stub of slime's adapter: slime is in no registry, and needs SGLang."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from integrations.test_miles import Sample
from muarl.basics.errors import ConfigError
from support.fake_openai import Answer, FakeOpenAI, completion, status, text

ROW = {"task": "retail-generated:test:1", "seed": 3}


class Adapter:
    """The calls of slime's OpenAIAdapter, as examples/coding_agent_rl makes them; a server's answers for its own."""

    answers: Any = None
    record = True

    def __init__(self, **settings: Any) -> None:
        self.settings, self.app, self.open, self.sessions = settings, "app", set(), {}  # type: ignore[var-annotated]

    def open_session(self, sid: str, *, sampling_defaults: Any = None, max_context_tokens: int = 0) -> None:
        assert sid not in self.sessions
        self.sessions[sid] = (sampling_defaults, max_context_tokens)
        self.open.add(sid)

    async def finish_session(
        self, sid: str, *, base_sample: Any, reward: float = 0.0, extra_metadata: Any = None
    ) -> list[Any]:
        return [Sample(dict(extra_metadata), reward)] if self.record else []

    async def drop_session(self, sid: str) -> None:
        self.open.discard(sid)


@pytest.fixture
def slime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """muarl_integrations.slime over the stub, and its server."""

    def serve(app: Any, **_: Any) -> Any:
        return SimpleNamespace(port=int(server.url.rsplit(":")[-1].removesuffix("/v1")))

    def package(name: str, **members: Any) -> None:
        made = ModuleType(name)
        made.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, made)

    for name in ("slime", "slime.agent", "slime.utils"):
        package(name, __path__=[])
    package("slime.agent.adapters", OpenAIAdapter=Adapter)
    package("slime.agent.aiohttp_threaded", run_app_in_thread=serve)
    package("slime.utils.processing_utils", load_tokenizer=lambda *_, **__: "tokenizer")
    monkeypatch.delitem(sys.modules, "muarl_integrations.slime", raising=False)

    def answer(body: dict[str, Any]) -> Answer:
        found: Answer = Adapter.answers(body)
        return found

    with FakeOpenAI(answer) as server:
        import muarl_integrations.slime as module

        yield SimpleNamespace(module=module, server=server)
    sys.modules.pop("muarl_integrations.slime", None)


def arguments(**more: Any) -> Any:
    where = {"hf_checkpoint": "c", "sglang_router_ip": "10.0.0.1", "sglang_router_port": 3000}
    return SimpleNamespace(**where, rollout_max_context_len=4096, **{"dynamic_sampling_filter_path": "f", **more})


async def test_the_recorded_samples_get_the_reward(slime: Any) -> None:
    Adapter.answers, Adapter.record = lambda _: completion("Hello.", reasoning_content="Hm."), True
    samples = await slime.module.generate(arguments(), Sample({**ROW}), {"temperature": 0.5})
    adapter, _ = slime.module._adapter(slime.module._settings(arguments()))
    assert [s.reward for s in samples] == [0.0] and samples[0].metadata["task"] == ROW["task"]
    assert samples[0].metadata["muarl"]["stop"] == "user_stop"
    assert list(adapter.sessions.values()) == [({"temperature": 0.5}, 4096)] and not adapter.open
    (sid,) = adapter.sessions
    assert slime.server.requests[0].headers["authorization"] == f"Bearer {sid}", "the adapter's name of the session"
    assert adapter.settings["sglang_url"] == "http://10.0.0.1:3000"
    # The adapter compares what comes back with what it said, without the thinking.
    said = [m for m in slime.server.bodies[-1]["messages"] if m["role"] == "assistant"][-1]
    assert said == {"role": "assistant", "content": "Hello."}


async def test_what_failed_is_aborted_without_a_reward(slime: Any) -> None:
    Adapter.answers, Adapter.record = lambda _: status(500), True
    sample = await slime.module.generate(arguments(), Sample({**ROW}), {})
    assert sample.status is Sample.Status.ABORTED and math.isnan(sample.reward) and sample.remove_sample
    assert (sample.tokens, sample.loss_mask, sample.response_length) == ([0, 0], [0], 1)
    assert sample.metadata["muarl"]["failure"]["boundary"] == "agent"
    assert not slime.module.no_failures(arguments(), [sample])
    Adapter.answers, Adapter.record = lambda _: text("Hello."), False
    assert (await slime.module.generate(arguments(), Sample({**ROW}), {})).status is Sample.Status.ABORTED
    with pytest.raises(ConfigError, match=r"set --dynamic-sampling-filter-path muarl_integrations\.slime\.no_failures"):
        await slime.module.generate(arguments(dynamic_sampling_filter_path=None), Sample({**ROW}), {})
    unfiltered = arguments(dynamic_sampling_filter_path=None)
    assert math.isnan((await slime.module.generate(unfiltered, Sample({**ROW}), {}, evaluation=True)).reward)
