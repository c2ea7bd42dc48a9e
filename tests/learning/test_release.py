"""What other programs read of a checkpoint: the chat template, generation settings, and the card."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.chat_formats.choice import own_template
from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.learning.checkpoint_files import MANIFEST
from muarl.learning.checkpoints import check_whole, load_policy, load_tokenizer, save_policy
from muarl.learning.release import BENCHMARKS, ModelNotes, benchmarks_trained_on, model_card
from muarl.types.chat import Message, ToolCall, ToolSpec, to_openai

TOOLS = (
    ToolSpec("get_order", "Read an order's état <b>.", {"type": "object", "properties": {"id": {"type": "string"}}}),
    ToolSpec("cancel", "Cancel 'it' & \"that\".", {"type": "object", "properties": {}, "required": []}),
)
CALL = ToolCall("call_0", "get_order", {"id": "#W1", "deep": {"a": [1, 2.5, None, True]}, "text": "é <x> & 'q' \"p\""})
OTHER = ToolCall("call_1", "cancel", {})

CONVERSATIONS = {
    "first turn": [Message("user", "Cancel my order #W12, please.")],
    "a call and its result": [
        Message("assistant", "Hi! How can I help you today?"),
        Message("user", "What is in #W1?\n  two lines "),
        Message("assistant", "", (CALL,)),
        Message("tool", '{"a": "é", "b": [1]}', tool_call_id="call_0", name="get_order"),
    ],
    "words beside calls, two at once": [
        Message("user", "Both."),
        Message("assistant", "One moment.", (CALL, OTHER)),
        Message("tool", "first", tool_call_id="call_0"),
        Message("tool", "second\n", tool_call_id="call_1"),
        Message("assistant", "Done. Anything else?"),
        Message("user", "No, thanks."),
    ],
    "thoughts in every turn": [
        Message("user", "Hello"),
        Message("assistant", "", (OTHER,), reasoning="I should cancel.\nYes."),
        Message("tool", "ok", tool_call_id="call_1"),
        Message("assistant", "Done.", reasoning="It worked."),
        Message("user", "Thanks"),
        Message("assistant", "Bye"),
        Message("user", "Wait"),
    ],
    "a system message in the middle": [
        Message("user", "Hello"),
        Message("assistant", "Hi"),
        Message("system", "The shop closes."),
        Message("user", "Oh"),
    ],
}


def rows(system: str, messages: list[Message]) -> list[dict[str, Any]]:
    """In OpenAI's form, the arguments as objects, as servers hand them to templates."""
    found: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        row = to_openai(message)
        for call, own in zip(row.get("tool_calls", ()), message.tool_calls, strict=True):
            call["function"]["arguments"] = dict(own.arguments)
        if message.reasoning is not None:
            row["reasoning_content"] = message.reasoning
        found.append(row)
    return found


@pytest.fixture(scope="module")
def shipped(repository: Path) -> PreTrainedTokenizerFast:
    return load_tokenizer(repository / "src/muarl/assets/base")


QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.fixture(scope="module")
def qwen_like(repository: Path) -> PreTrainedTokenizerFast:
    """A byte-level BPE that splits text as Qwen3's does, with its control tokens; learnt from English and JSON."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    inner.train_from_iterator(
        [(repository / "README.md").read_text(), json.dumps([t.to_openai() for t in TOOLS])], trainer
    )
    inner.add_special_tokens([AddedToken(t, special=t.startswith("<|"), normalized=False) for t in CONTROL_TOKENS])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>")


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("system", ["", "You serve a shop.\n\n# Rules\n- none"])
@pytest.mark.parametrize("tools", [(), TOOLS])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_template_renders_what_muarl_makes_ids_of(
    qwen_like: PreTrainedTokenizerFast, name: str, tools: tuple[ToolSpec, ...], system: str, thinking: bool
) -> None:
    messages = CONVERSATIONS[name]
    ours = Qwen3Format(qwen_like, thinking=thinking).prompt(system, tools, messages)
    given: dict[str, Any] = {
        "tools": [t.to_openai() for t in tools] or None, "add_generation_prompt": True, "return_dict": False,
    }  # fmt: skip
    template = own_template(thinking=thinking)
    theirs = qwen_like.apply_chat_template(rows(system, messages), chat_template=template, **given)
    assert theirs == ours
    # Either default can be overruled, as clients of other servers do.
    other = own_template(thinking=not thinking)
    assert ours == qwen_like.apply_chat_template(
        rows(system, messages), chat_template=other, enable_thinking=thinking, **given
    )


def test_whole_conversations_of_a_generated_domain(
    qwen_like: PreTrainedTokenizerFast, shipped: PreTrainedTokenizerFast
) -> None:
    """A demonstration as it is trained on, id for id, policy text and tools of the domain included."""
    import asyncio

    from muarl.agents.expert import ExpertAgent
    from muarl.backends.users import make_users
    from muarl.config.load import load_config
    from muarl.environments.configure import places_of
    from muarl.environments.play import play_in

    config = load_config("quickstart")
    (place,) = places = places_of(config)
    tasks = places.draw("train", 8, 0, 0)
    agent = ExpertAgent(make=place.needed_expert())
    episodes = asyncio.run(play_in(places, agent, make_users(config.user, places), tasks, 1, seed=0)).episodes
    chat = Qwen3Format(qwen_like)
    for task, episode in zip(tasks, episodes, strict=True):
        messages = [m for m in episode.messages if m.role != "system"]
        last = max(i for i, m in enumerate(messages) if m.role == "assistant")
        messages = messages[1 : last + 1]  # without the greeting, up to the agent's last words
        trace = chat.training_tokens(place.system_prompt(task), place.tools(task), messages)
        theirs = qwen_like.apply_chat_template(
            rows(place.system_prompt(task), messages), tools=[t.to_openai() for t in place.tools(task)],
            chat_template=own_template(), return_dict=False,
        )  # fmt: skip
        assert theirs[: len(trace.ids)] == trace.ids
        assert qwen_like.decode(theirs[len(trace.ids) :]) == "\n"
        # The tiny model's tokenizer has pieces across the borders at which muarl cuts; the text is the same.
        own = Qwen3Format(shipped).training_tokens(place.system_prompt(task), place.tools(task), messages)
        assert shipped.decode(own.ids) + "\n" == qwen_like.decode(theirs)


@pytest.fixture
def saved(tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], shipped: PreTrainedTokenizerFast) -> Path:
    start = tmp_path / "start"
    start.mkdir()
    (start / "generation_config.json").write_text(
        json.dumps({"temperature": 0.6, "top_p": 0.95, "do_sample": True, "auto_map": {"x": "evil.py"}})
    )
    notes = ModelNotes(start=start, base="Qwen/Qwen3-8B", method="SFT", step=7, data="a|b")
    return save_policy(tmp_path / "p", make_model(vocab_size=2_100), shipped, notes=notes)


def test_a_checkpoint_says_how_to_talk_with_it(saved: Path, shipped: PreTrainedTokenizerFast) -> None:
    tokenizer = AutoTokenizer.from_pretrained(saved)
    theirs = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], add_generation_prompt=True, return_dict=False
    )
    assert theirs == Qwen3Format(shipped).prompt("", (), [Message("user", "Hi")])
    assert shipped.chat_template is None, "the tokenizer in use is left as it was"


def test_generation_settings_are_kept_and_completed(saved: Path, shipped: PreTrainedTokenizerFast) -> None:
    found = GenerationConfig.from_pretrained(saved)
    ends = [shipped.convert_tokens_to_ids(t) for t in ("<|im_end|>", "<|endoftext|>")]
    assert (found.temperature, found.top_p, found.eos_token_id) == (0.6, 0.95, ends)
    assert "auto_map" not in json.loads((saved / "generation_config.json").read_text())


def test_the_sums_cover_the_new_files_and_the_card_may_be_edited(saved: Path) -> None:
    names = json.loads((saved / MANIFEST).read_text())["files"]
    assert {"chat_template.jinja", "generation_config.json", "README.md"} <= set(names)
    (saved / "README.md").write_text("my own words")
    load_policy(saved)
    with pytest.raises(Exception, match=r"trainer\.json"):
        check_whole(saved)  # there is none; the card is not what it complains of


def test_benchmarks_that_were_trained_on_go_with_the_model(saved: Path, tmp_path: Path) -> None:
    """Through later trainings, whoever makes them, and what cannot be read as names is nothing."""
    assert benchmarks_trained_on(saved) == () and BENCHMARKS not in (saved / "config.json").read_text()
    first = load_policy(saved)
    save_policy(tmp_path / "a", first.model, first.tokenizer, notes=ModelNotes(benchmarks=("tau1-retail",)))
    second = load_policy(tmp_path / "a")
    save_policy(tmp_path / "b", second.model, second.tokenizer, notes=ModelNotes(benchmarks=("bfcl-v3", "tau1-retail")))
    save_policy(tmp_path / "c", second.model, second.tokenizer)
    Qwen3ForCausalLM.from_pretrained(tmp_path / "b").save_pretrained(tmp_path / "theirs")
    assert [benchmarks_trained_on(tmp_path / name) for name in ("a", "b", "c", "theirs")] == [
        ("tau1-retail",), ("bfcl-v3", "tau1-retail"), ("tau1-retail",), ("bfcl-v3", "tau1-retail"),
    ]  # fmt: skip
    for strange in ("tau1-retail", {"tau1-retail": 1}, 7, None):
        config = json.loads((saved / "config.json").read_text()) | {BENCHMARKS: strange}
        (tmp_path / "c" / "config.json").write_text(json.dumps(config))
        assert benchmarks_trained_on(tmp_path / "c") == ()


def test_the_card_names_what_is_known() -> None:
    card = model_card(ModelNotes(base="Qwen/Qwen3-8B", method="SFT", step=1234, data="a|b", scores=(("test", "90%"),)))
    for words in (
        "base_model: Qwen/Qwen3-8B",
        "| Steps | 1,234 |",
        "| Data | a\\|b |",
        "| test | 90% |",
        "its license",
    ):
        assert words in card
    plain = model_card(ModelNotes(license="apache-2.0"))
    assert "license: apache-2.0" in plain and "Scores" not in plain and "base_model" not in plain
