"""slime: a generate function, whose policy is asked through slime's own OpenAI adapter, which records tokens.

--custom-generate-function-path muarl_integrations.slime.generate
--dynamic-sampling-filter-path  muarl_integrations.slime.no_failures
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.extras import MissingExtra
from muarl_integrations.conversations import Conversations
from muarl_integrations.miles import mark_failed, no_failures, told

try:
    from slime.agent.adapters import OpenAIAdapter
    from slime.agent.aiohttp_threaded import run_app_in_thread
    from slime.utils.processing_utils import load_tokenizer
except ImportError as problem:
    if (problem.name or "").partition(".")[0] != "slime":
        raise
    raise MissingExtra(
        "muarl_integrations.slime needs slime, which is not installed: its repository, THUDM/slime, says how",
        name="slime",
    ) from None

__all__ = ["generate", "no_failures"]


async def generate(args: Any, sample: Any, sampling_params: dict[str, Any], evaluation: bool = False) -> Any:
    """Play the task of a sample, whose metadata hold its address as ``task``; the samples that it was recorded as.

    If something outside the policy failed, the sample itself, aborted and without tokens to train on.
    """
    if not evaluation and not getattr(args, "dynamic_sampling_filter_path", None):
        raise ConfigError(
            "nothing would drop the groups in which something outside the policy failed: set "
            f"--dynamic-sampling-filter-path {__name__}.no_failures"
        )
    adapter, url = _adapter(_settings(args))
    session = uuid.uuid4().hex
    adapter.open_session(
        session,
        sampling_defaults=sampling_params,
        max_context_tokens=int(getattr(args, "rollout_max_context_len", None) or 0),
    )
    try:
        # The adapter knows what it said by its words and calls, without the thinking: so it goes back in that form.
        played = await Conversations.of_variables().play(
            sample.metadata or {}, base_url=f"{url}/v1", api_key=session, verbatim=False
        )
        sample.metadata = {**(sample.metadata or {}), **told(played)}
        recorded = []
        if played.reward is not None:
            recorded = await adapter.finish_session(
                session, base_sample=sample, reward=played.reward, extra_metadata=sample.metadata
            )
        return recorded or _failed(args, sample, evaluation)
    finally:
        await adapter.drop_session(session)


def _failed(args: Any, sample: Any, evaluation: bool) -> Any:
    """A sample that counts for nothing. Samples without any token are not expected by slime."""
    sample.tokens, sample.response, sample.response_length = [0, 0], "", 1
    sample.loss_mask, sample.rollout_log_probs = [0], [0.0]
    mark_failed(args, sample, evaluation)
    return sample


def _settings(args: Any) -> tuple[str, str, str | None, str | None]:
    return (
        args.hf_checkpoint,
        f"http://{args.sglang_router_ip}:{args.sglang_router_port}",
        getattr(args, "sglang_tool_call_parser", None) or None,
        getattr(args, "sglang_reasoning_parser", None) or None,
    )


@lru_cache(maxsize=1)
def _adapter(settings: tuple[str, str, str | None, str | None]) -> tuple[Any, str]:
    """slime's adapter, served in a thread of this process at the returned address."""
    checkpoint, sglang, tool_parser, reasoning_parser = settings
    adapter = OpenAIAdapter(
        tokenizer=load_tokenizer(checkpoint, trust_remote_code=True),
        sglang_url=sglang,
        tool_parser=tool_parser,
        reasoning_parser=reasoning_parser,
    )
    served = run_app_in_thread(adapter.app, host="127.0.0.1", port=0, thread_name="muarl-openai-adapter")
    return adapter, f"http://127.0.0.1:{served.port}"
