"""Replies whose calls break the rules are held back before a client sees them."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from loop_kit import call_json, small_tokenizer
from muarl.audit.guard import INSTEAD, CallGuard
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.domains.auditing import AuditRules
from muarl_tools.serve_model.guarding import ServedGuard, make_guard
from support.chat_server import TOOLS, TellingSampler, asked, client, serving

LOOK, CANCEL = call_json("look", order_id="#W12"), call_json("cancel", order_id="#W12")
GUARD = CallGuard.of(AuditRules(kinds={"look": "read", "cancel": "write"}))
ASK = "I would cancel order #W12. Shall I?"


def guarded(*replies: Any, mode: Any = "block", tries: int = 2) -> tuple[TellingSampler, Any]:
    sampler = TellingSampler(Qwen3Format(small_tokenizer()), *replies)
    return sampler, serving(sampler, small_tokenizer(), guard=ServedGuard("shop", GUARD, mode, tries))


def complete(api: openai.OpenAI, messages: list[Any] | None = None, **more: Any) -> Any:
    return api.chat.completions.create(model="m", messages=messages or asked("Cancel #W12."), tools=TOOLS, **more)


def test_a_write_that_nobody_agreed_to_is_held_back_and_the_model_asked_again() -> None:
    sampler, server = guarded(CANCEL, ASK)
    with server as live, client(live) as api:
        reply = complete(api)
        choice = reply.choices[0]
        assert choice.message.content == ASK and not choice.message.tool_calls and choice.finish_reason == "stop"
        assert choice.guard["held_back"] == 1 and choice.guard["mode"] == "block"
        assert [f["rule"] for f in choice.guard["findings"]] == ["write-without-consent"]
        again = sampler.chat.tokenizer.decode(list(sampler.seen[1][1]))
        assert "Held back: cancel changed something without having been proposed." in again
        assert reply.usage.prompt_tokens == sum(len(prompt) for _, prompt, _ in sampler.seen)
        # The client never sees what was held back: it goes on from the question.
        messages = [*asked("Cancel #W12."), {"role": "assistant", "content": ASK}, {"role": "user", "content": "Yes."}]
        then = complete(api, messages).choices[0]
        assert then.message.tool_calls[0].function.name == "cancel" and not hasattr(then, "guard")


def test_who_insists_says_a_plain_sentence_instead() -> None:
    sampler, server = guarded(CANCEL, CANCEL, CANCEL)
    with server as live, client(live) as api:
        reply = complete(api)
        choice = reply.choices[0]
        assert choice.message.content == INSTEAD and not choice.message.tool_calls
        assert choice.guard["held_back"] == 3 and len(sampler.seen) == 3
        assert reply.usage.completion_tokens > 3


def test_reads_and_words_pass() -> None:
    for said in (LOOK, "Hello."):
        _, server = guarded(said)
        with server as live, client(live) as api:
            choice = complete(api).choices[0]
            assert bool(choice.message.tool_calls) == (said == LOOK) and not hasattr(choice, "guard")


def test_a_report_holds_nothing_back() -> None:
    _, server = guarded(CANCEL, CANCEL, mode="report")
    with server as live, client(live) as api:
        choice = complete(api).choices[0]
        assert choice.message.tool_calls and choice.guard["held_back"] == 0
        assert choice.guard["findings"][0]["call"] == "cancel"
        chunks = list(complete(api, stream=True))
        assert chunks[-1].choices[0].guard["findings"][0]["rule"] == "write-without-consent"
        assert any(c.delta.tool_calls for chunk in chunks for c in chunk.choices)


def test_a_stream_sends_nothing_of_what_is_held_back() -> None:
    _, server = guarded(f"Just a moment. {CANCEL}", ASK)
    with server as live, client(live) as api:
        chunks = [chunk.choices[0] for chunk in complete(api, stream=True)]
        assert "".join(c.delta.content or "" for c in chunks) == ASK
        assert not any(c.delta.tool_calls for c in chunks)
        assert chunks[-1].guard["held_back"] == 1


@pytest.mark.parametrize("stream", [False, True])
def test_responses_are_guarded_too(stream: bool) -> None:
    _, server = guarded(CANCEL, ASK)
    tools = [{"type": "function", **tool["function"]} for tool in TOOLS]
    with server as live, client(live) as api:
        found: Any = api.responses.create(model="m", input="Cancel #W12.", tools=tools, stream=stream)
        response = list(found)[-1].response if stream else found
        assert response.output_text == ASK and response.guard["held_back"] == 1


def test_each_of_several_choices_is_looked_at() -> None:
    _, server = guarded(CANCEL, ASK)
    with server as live, client(live) as api:
        choices = complete(api, n=2).choices
        assert [c.index for c in choices] == [0, 1]
        assert all(not c.message.tool_calls and c.guard["held_back"] for c in choices)


def test_what_would_pass_by_the_guard_is_refused() -> None:
    _, server = guarded("Hi.")
    with server as live, client(live) as api:
        with pytest.raises(openai.BadRequestError, match="/v1/chat/completions"):
            api.completions.create(model="m", prompt="Hi")
        with pytest.raises(openai.BadRequestError, match="return_token_ids"):
            complete(api, extra_body={"return_token_ids": True})


def test_a_made_guard_tells_what_it_looks_for() -> None:
    about = make_guard("retail-generated").about
    assert about.startswith("Guard of retail-generated (block), by the rules write-before-authentication, ")
    looks, lacks = about.splitlines()
    assert "cross-user-write" in looks and "unseen-record" in looks and "followed-injection" in looks
    assert "ineligible-write, write-above-authority (nothing is declared for them)" in lacks and "the database" in lacks


def test_the_totals_tell_what_the_guard_has_done(caplog: pytest.LogCaptureFixture) -> None:
    _, server = guarded(CANCEL, ASK, CANCEL, tries=1)
    asks, others = asked("Cancel #W12."), asked("Cancel #W12, please.")
    with server as live, client(live) as api:
        for messages in (asks, others):
            complete(api, messages)
        agreed = [*asks, {"role": "assistant", "content": ASK}, {"role": "user", "content": "Yes."}]
        assert complete(api, agreed).choices[0].message.tool_calls
        assert api.get("/guard", cast_to=object) == {
            "domain": "shop", "mode": "block", "replies": 3, "held_back": 2, "given_up": 0,
            "rules": ["write-without-consent", "write-after-refusal", "write-differs-from-proposal",
                      "unrequested-write", "followed-injection"],
            "findings": {"write-without-consent": 2},
        }  # fmt: skip
        assert live.service.served.answered == 3
    assert caplog.messages.count("guard: held back in a call of 'cancel': write-without-consent") == 2
    with serving(TellingSampler(Qwen3Format(small_tokenizer()), "Hi."), small_tokenizer()) as live, client(live) as api:
        with pytest.raises(openai.NotFoundError, match="--guard DOMAIN"):
            api.get("/guard", cast_to=object)


def test_where_no_room_is_left_to_ask_again_the_plain_sentence_is_said() -> None:
    sampler, server = guarded(CANCEL)
    with server as live, client(live) as api:
        complete(api)
    full = len(sampler.seen[0][1]) + len(sampler.gave[0].ids)
    guard, sampler = ServedGuard("shop", GUARD), TellingSampler(Qwen3Format(small_tokenizer()), CANCEL)
    with serving(sampler, small_tokenizer(), guard=guard, context=full) as live, client(live) as api:
        choice = complete(api).choices[0]
    assert choice.message.content == INSTEAD and choice.guard["held_back"] == 1 and len(sampler.seen) == 1
    assert guard.totals.given_up == 1
