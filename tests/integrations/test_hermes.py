"""Tools and calls in text are what the chat templates write and muarl's chat formats read."""

from __future__ import annotations

from pathlib import Path

import pytest

import muarl
from muarl.environments.results import tools_json
from muarl.types.chat import ToolSpec
from muarl_integrations.hermes import read_text, tools_prompt

TOOL = ToolSpec("find", "Find é.", {"type": "object", "properties": {"id": {"type": "string"}}})


def test_the_prompt_is_what_a_template_writes() -> None:
    pytest.importorskip("renderers", reason="muarl[train] is not installed")
    from muarl.chat_formats.choice import own_template
    from muarl.chat_formats.templates import Template

    written = Template(own_template(), {}).render(
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi."}], tools=tools_json([TOOL])
    )
    assert f"<|im_start|>system\n{tools_prompt('Be kind.', [TOOL])}<|im_end|>" in written
    assert tools_prompt("Be kind.", []) == "Be kind."


@pytest.mark.parametrize("ends", ["", "<|im_end|>", "<|endoftext|>"])
def test_calls_are_read(ends: str) -> None:
    said = read_text(
        f'Let me look.\n<tool_call>\n{{"name": "find", "arguments": {{"id": "7"}}}}\n</tool_call>{ends}', 2, [TOOL]
    )
    (call,) = said.tool_calls
    assert (said.content, call.name, call.arguments, call.id) == ("Let me look.", "find", {"id": "7"}, "call_2_0")
    (cut,) = read_text('<tool_call>\n{"name": "find"', 3, [TOOL]).tool_calls
    assert cut.invalid


def test_a_checkpoints_own_form_is_read_by_its_chat_format(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="muarl[train] is not installed")
    transformers = pytest.importorskip("transformers")
    base = Path(muarl.__file__).parent / "assets" / "base" / "tokenizer.json"
    transformers.PreTrainedTokenizerFast(tokenizer_file=str(base), eos_token="<|im_end|>").save_pretrained(tmp_path)
    text = (
        '<think>\nHm.\n</think>\n\nLet me look.\n<tool_call>\n{"name": "find", "arguments": {"id": "7"}}\n</tool_call>'
    )
    for ends in ("", "<|im_end|>"):
        said = read_text(text + ends, 2, [TOOL], str(tmp_path))
        (call,) = said.tool_calls
        assert (said.content, said.reasoning) == ("Let me look.", "Hm.")
        assert (call.name, call.arguments, call.invalid) == ("find", {"id": "7"}, None)
