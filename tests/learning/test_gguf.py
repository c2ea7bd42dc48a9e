"""GGUF files as checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.choice import chat_format
from muarl.learning.checkpoints import load_policy, load_tokenizer
from muarl.learning.gguf import describe_gguf, import_gguf

pytest.importorskip("gguf")
from support.gguf_files import CONTROL, words, write_llama

TEXTS = ("a  1 b", "2024\n\n3", "  7 more,  12", "<|im_start|>user\nHi  5<|im_end|>")


def test_the_model_is_the_one_of_the_file(tmp_path: Path) -> None:
    model = write_llama(tmp_path / "tiny.gguf")
    assert import_gguf(tmp_path / "tiny.gguf", tmp_path / "out") == ""
    policy = load_policy(tmp_path / "out")
    assert policy.model.config.model_type == "llama" and not hasattr(policy.model.config, "quantization_config")
    for name, value in model.state_dict().items():
        torch.testing.assert_close(policy.model.state_dict()[name], value, rtol=0, atol=0, msg=name)
    assert chat_format(policy.tokenizer).name == "text"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# Tiny, from a GGUF file" in card and "license: apache-2.0" in card and "(F32)" in card


def test_quantised_weights_become_what_they_stand_for(tmp_path: Path) -> None:
    model = write_llama(tmp_path / "tiny.gguf", kind="Q8_0")
    assert describe_gguf(tmp_path / "tiny.gguf").quantisation == ("Q8_0", "F32")
    import_gguf(tmp_path / "tiny.gguf", tmp_path / "out", dtype="bfloat16")
    policy = load_policy(tmp_path / "out", dtype=None)
    value, was = (m.state_dict()["model.layers.1.self_attn.q_proj.weight"] for m in (policy.model, model))
    assert value.dtype == torch.bfloat16
    torch.testing.assert_close(value.float(), was, rtol=0.02, atol=0.002)


def test_texts_are_parted_as_the_vocabulary_learned_it(tmp_path: Path) -> None:
    write_llama(tmp_path / "tiny.gguf")
    import_gguf(tmp_path / "tiny.gguf", tmp_path / "out")
    ours, learned = load_tokenizer(tmp_path / "out"), words()
    for text in TEXTS:
        assert ours(text, add_special_tokens=False).input_ids == learned.encode(text).ids, text
    assert ours.convert_tokens_to_ids(list(CONTROL)) == [0, 1, 2]


def test_a_vocabulary_that_nobody_knows_is_said(tmp_path: Path) -> None:
    write_llama(tmp_path / "tiny.gguf", pre="new-way")
    notice = import_gguf(tmp_path / "tiny.gguf", tmp_path / "out")
    assert "'new-way'" in notice and "--tokenizer" in notice
    assert import_gguf(tmp_path / "tiny.gguf", tmp_path / "again", tokenizer=tmp_path / "out") == ""


def test_what_cannot_be_read_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file"):
        import_gguf(tmp_path / "none.gguf", tmp_path / "out")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(CheckpointError, match="no whole GGUF file"):
        import_gguf(tmp_path / "text.gguf", tmp_path / "out")
    write_llama(tmp_path / "tiny.gguf")
    whole = (tmp_path / "tiny.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match=r"cut\.gguf"):
        import_gguf(tmp_path / "cut.gguf", tmp_path / "out")
    write_llama(tmp_path / "odd.gguf", architecture="mystery")
    with pytest.raises(CheckpointError, match=r"odd\.gguf.*mystery.*Hugging Face folder"):
        import_gguf(tmp_path / "odd.gguf", tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cut.gguf", "odd.gguf", "text.gguf", "tiny.gguf"]
