"""What is said of a model before it is loaded, and that docs/models.md says the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from muarl.backends.vllm import takes_weights
from muarl.basics.errors import CheckpointError
from muarl.models import support as support_module
from muarl.models.generic_cached import _is_only_attention
from muarl.models.support import OWN_FAMILIES, VERIFIED_FAMILIES, support_of
from support.tiny_families import GENERIC, OWN, tiny_family
from support.vllm_families import ADAPTED, NOT_ON_CPUS, SERVED


def test_the_table_of_families_is_true(repository: Path) -> None:
    text = (repository / "docs" / "models.md").read_text().split("## Families")[1].split("## What is refused")[0]
    told = {}
    for cells in re.findall(r"^\| (`.*) \| (own|generic) \| (together|one after another) \|$", text, re.MULTILINE):
        told |= dict.fromkeys(re.findall("`([a-z0-9_]+)`", cells[0]), (cells[1], cells[2]))
    assert told.keys() == {*OWN_FAMILIES, *VERIFIED_FAMILIES}
    for name, (path, decodes) in told.items():
        model = tiny_family(name, {**OWN, **GENERIC}[name])
        support = support_of(model.config.to_dict())
        assert (support.path, support.verified) == (path, True), name
        together = path == "own" or _is_only_attention(model.config)
        assert decodes == ("together" if together else "one after another"), name


def test_the_table_of_families_in_vllm_is_what_is_compared(repository: Path) -> None:
    text = (repository / "docs" / "models.md").read_text().split("## In vLLM")[1].split("## What is refused")[0]
    told = dict.fromkeys(("yes", "no: refused, but for adapters", "does not start on a CPU"), frozenset[str]())
    for names, cell in re.findall(r"^\| (`.*`) \| (.*) \|$", text, re.MULTILINE):
        if cell in told:
            told[cell] = frozenset(re.findall("`([a-z0-9_]+)`", names))
    taken = {n for n in SERVED if takes_weights(tiny_family(n, {**OWN, **GENERIC}[n]))}
    assert list(told.values()) == [taken, {*SERVED} - taken, {*NOT_ON_CPUS}]
    adapted = text.split("Adapters, merged")[1].split(".")[0]
    assert re.findall("`([a-z0-9_]+)`", adapted) == list(ADAPTED)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, r"model_type is None.*give the config\.json"),
        ({"model_type": 7}, "model_type is 7"),
        ({"model_type": "bert"}, "'bert' is an encoder.*choose a causal model"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "'t5' has an encoder and a decoder"),
        (
            {"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}},
            r"quantised \('mxfp4'\).*endpoint:",
        ),
        ({"model_type": "phi3", "rope_scaling": {"type": "longrope"}}, "'phi3' with rope_type 'longrope'"),
    ],
)
def test_refusals_name_family_reason_and_remedy(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(CheckpointError, match=rf"^here: .*{words}"):
        support_of(fields, "here")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 21}, "own"),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 21, "num_hidden_layers": 28},
            "generic",
        ),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 28, "num_hidden_layers": 28}, "own"),
        ({"model_type": "mistral", "sliding_window": None}, "own"),
        ({"model_type": "mistral"}, "generic"),
        ({"model_type": "llama", "rope_scaling": {"rope_type": "llama3"}}, "own"),
        ({"model_type": "llama", "partial_rotary_factor": 0.5}, "generic"),
        ({"model_type": "mixtral"}, "generic"),
        ({"model_type": "qwen3_moe", "use_sliding_window": False, "sliding_window": 4096}, "own"),
        ({"model_type": "qwen3_moe", "use_sliding_window": True, "max_window_layers": 48}, "generic"),
    ],
)
def test_the_path_is_chosen_from_the_fields_of_a_config(fields: dict[str, Any], path: str) -> None:
    support = support_of(fields)
    assert support.path == path
    assert bool(support.reason) == bool(support.notice) == (path == "generic")
    assert support.prefix_sharing == (path == "own")
    assert support.fixed_steps == (path == "own" and support.family != "qwen3_moe")


def test_experts_that_transformers_holds_apart_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support_module, "_holds_experts_together", lambda: False)
    support = support_of({"model_type": "qwen3_moe"})
    assert support.path == "generic" and "before release 5 of transformers" in support.reason
    assert support_of({"model_type": "qwen3"}).path == "own"


def test_a_family_without_tests_says_so() -> None:
    support = support_of({"model_type": "gpt_neox"})
    assert (support.path, support.verified) == ("generic", False)
    assert "'gpt_neox'" in support.notice and "not in muarl's test suite" in support.notice


@pytest.mark.parametrize("here", ["4.57.6", "5.9.0", "5.16.1"])
def test_an_older_transformers_is_refused_where_it_has_to_compute(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support_module, "version", lambda _name: here)
    words = rf"^here: model_type 'gemma2' \(another kind of layer\): .*{re.escape(here)} is installed: pip install"
    with pytest.raises(CheckpointError, match=words):
        support_of({"model_type": "gemma2"}, "here")
    assert support_of({"model_type": "llama"}).path == "own"
    for newer in ("5.17.0", "5.23.0.dev0", "6.0"):
        monkeypatch.setattr(support_module, "version", lambda _name, newer=newer: newer)
        assert support_of({"model_type": "gemma2"}).path == "generic"


def test_the_oldest_release_is_told_where_people_look(repository: Path) -> None:
    for file in ("pyproject.toml", "docs/installation.md", "docs/models.md"):
        text = (repository / file).read_text(encoding="utf-8")
        assert re.search(rf"\b{re.escape(support_module.GENERIC_NEEDS)}\b", text), file
