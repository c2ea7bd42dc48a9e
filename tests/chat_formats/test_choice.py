"""Which chat format a checkpoint has, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from loop_kit import small_tokenizer
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.chat_formats.choice import chat_format, choice_of, own_template, thinking_modes
from muarl.chat_formats.families import FAMILIES, NAMES, QWEN3, TEMPLATED, TEXT
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.config.load import load_config
from muarl.learning.release import ModelNotes, write_release
from muarl.types.chat import Message
from support.chat_families import BY_NAME, CASES, TOOLS, Case, by_template, form, format_rows, source, tokenizer

HERMES = Case("hermes", "qwen2_5", "template")


def with_template(case: Case, template: str | None) -> PreTrainedTokenizerFast:
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer(case).backend_tokenizer)
    made.chat_template = template
    return made


def test_qwen3s_control_tokens_without_a_template_are_enough() -> None:
    assert isinstance(chat_format(small_tokenizer()), Qwen3Format)
    assert isinstance(chat_format(with_template(CASES[0], None)), Qwen3Format)


@pytest.mark.parametrize("thinking", [False, True])
def test_muarls_own_template_is_qwen3s(thinking: bool) -> None:
    assert isinstance(chat_format(with_template(CASES[0], own_template(thinking=thinking))), Qwen3Format)


def test_a_changed_template_is_followed_where_its_calls_can_be_read() -> None:
    """As a fine-tune has it: another default system text, the same calls."""
    case = next(c for c in CASES if c.family == "qwen3.5")
    text = source(case) or ""
    changed = text.replace("# Tools", "# The tools")
    assert changed != text
    chat = chat_format(with_template(case, changed))
    assert chat.name == "qwen3.5"
    assert "# The tools" in chat.text(chat.prompt("", TOOLS, [Message("user", "x")]))


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (
            "{% for m in messages %}{{ m.content }}{% endfor %}",
            "ends no reply with a control token.*copy the model's own",
        ),
        ("{{ messages | length }}", "does not show what is said.*copy the model's own"),
        ("{{ raise_exception('no') }}", "refuses the conversation.*copy the model's own"),
        ("{% if %}", "not valid Jinja"),
        (
            "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{{ (m.tool_calls or []) | tojson }}"
            "<|im_end|>\n{% endfor %}{{ (tools or []) | tojson }}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
            "By the template itself: hermes: ",
        ),
    ],
)
def test_a_template_that_nobody_knows_is_refused_with_what_to_do(template: str, reason: str) -> None:
    with pytest.raises(CheckpointError, match=reason) as problem:
        chat_format(with_template(HERMES, template))
    assert re.search("not valid|copy the model's own|model.chat_format=.*model.chat_format=text", str(problem.value))


def test_a_template_without_tools_has_them_as_text() -> None:
    text = (source(HERMES) or "").replace("tool | tojson", "''").replace("tool.name", "''")
    odd = with_template(HERMES, text)
    chat = chat_format(odd)
    assert chat.name == "text" and "no place for tools" in choice_of(odd).notice
    shown = chat.text(chat.prompt("Be kind.", TOOLS, [Message("user", "x")]))
    assert "look_up(order: str, lines?: int" in shown and shown.count("# Tools") == 0 and "CALL name(" in shown


def test_missing_control_tokens_are_named_with_what_to_do() -> None:
    with pytest.raises(CheckpointError, match=r"has no chat template.*eos_token.*chat_template\.jinja"):
        chat_format(Tokenizer(models.BPE()))
    with pytest.raises(CheckpointError, match=r"lacks the control tokens .*<tool_call>.*chat_template\.jinja"):
        chat_format(Tokenizer(models.BPE()), "qwen3")
    with pytest.raises(CheckpointError, match=r"lacks the control tokens <\|start\|>"):
        chat_format(small_tokenizer(), "gpt-oss")
    with pytest.raises(CheckpointError, match="has none: copy"):
        chat_format(with_template(HERMES, None), "hermes")
    with pytest.raises(CheckpointError, match="is no chat format; known: auto, qwen3"):
        chat_format(small_tokenizer(), "chatml")


def test_a_name_counts_more_than_the_template() -> None:
    case = next(c for c in CASES if c.family == "qwen3.5")
    odd = with_template(case, "{{ messages }}")
    named = chat_format(odd, "qwen3.5")
    want = form(case).prompt("Be kind.", TOOLS, [Message("user", "x")])
    assert named.prompt("Be kind.", TOOLS, [Message("user", "x")]) == want


@pytest.mark.parametrize(("case", "wrong"), [("hermes", True), ("gpt-oss", False)])
def test_thinking_that_a_family_has_not_is_refused(case: str, wrong: bool) -> None:
    found = next(c for c in CASES if c.family == case)
    assert thinking_modes(tokenizer(found)) == (not wrong,)
    with pytest.raises(CheckpointError, match=f"model.thinking={str(not wrong).lower()}"):
        chat_format(tokenizer(found), thinking=wrong)


def test_the_setting_takes_the_known_names() -> None:
    assert load_config("cpu", ["model.chat_format=glm-4.5"]).model.chat_format == "glm-4.5"
    assert load_config("cpu").model.chat_format == "auto"
    with pytest.raises(ConfigError, match=r"model\.chat_format.*known: auto, qwen3"):
        load_config("cpu", ["model.chat_format=chatml"])
    assert [f.name for f in (QWEN3, *FAMILIES, *TEMPLATED, TEXT)] == list(NAMES[1:])
    assert set(BY_NAME) == set(NAMES[1:])


def test_a_release_keeps_the_familys_template_and_ends(tmp_path: Path) -> None:
    case = next(c for c in CASES if c.family == "glm-4.5")
    write_release(tmp_path, tokenizer(case), ModelNotes())
    again = PreTrainedTokenizerFast.from_pretrained(str(tmp_path))
    assert again.chat_template == source(case)
    assert chat_format(again).prompt("Be kind.", TOOLS, [Message("user", "x")]) == by_template(
        case, "Be kind.", True, [Message("user", "x")], thinking=False
    )
    ends = tokenizer(case).convert_tokens_to_ids(["<|user|>", "<|observation|>"])
    assert f'"eos_token_id": [\n    {ends[0]},\n    {ends[1]}' in (tmp_path / "generation_config.json").read_text()
    card = (tmp_path / "README.md").read_text()
    assert "GLM-4.5" in card and "with thoughts of earlier turns kept" in card


def test_a_format_that_had_to_be_named_is_remembered(tmp_path: Path) -> None:
    case = next(c for c in CASES if c.family == "qwen3.5")
    odd = with_template(case, "{{ messages }}")
    write_release(tmp_path, odd, ModelNotes(chat_format="qwen3.5"))
    assert chat_format(PreTrainedTokenizerFast.from_pretrained(str(tmp_path))).name == "qwen3.5"


def test_the_table_of_formats_is_as_the_code_has_it(repository: Path) -> None:
    page = (repository / "docs/models.md").read_text(encoding="utf-8")
    table = [line for line in page.splitlines() if line.startswith("| `")]
    for row in format_rows():
        assert row in table


def test_a_release_has_the_template_that_training_followed(tmp_path: Path) -> None:
    """Qwen3's own where thoughts were dropped, and muarl's, which keeps them, where they were kept."""
    theirs = tokenizer(next(c for c in CASES if c.family == "qwen3"))
    for name, notes, drops in (
        ("dropped", ModelNotes(thinking=True), True),
        ("kept", ModelNotes(thinking=True, earlier_thoughts="keep"), False),
        ("none", ModelNotes(), False),
    ):
        (tmp_path / name).mkdir()
        write_release(tmp_path / name, theirs, notes)
        again = PreTrainedTokenizerFast.from_pretrained(str(tmp_path / name))
        assert chat_format(again, thinking=True).drops_thoughts == drops
        assert (again.chat_template == theirs.chat_template) == drops
        assert ("turns' thoughts kept" in (tmp_path / name / "README.md").read_text()) != drops
