"""BFCL's tools and prompts as they are offered: made from documents, with hints, and what comes later."""

from __future__ import annotations

import json

import pytest

from muarl.domains.tasks import Task
from muarl_worlds.bfcl.official import toolspecs
from muarl_worlds.bfcl.official.codecs import PromptCodec, QwenCodec
from muarl_worlds.bfcl.official.prompts import MORE_TOOLS
from muarl_worlds.bfcl.official.tasks import user_lines
from muarl_worlds.bfcl.official.toolspecs import HINT, brought, offered, offered_after, spec_of

DOC = {
    "name": "buy",
    "description": "Buy it.",
    "parameters": {
        "type": "dict",
        "properties": {
            "price": {"type": "float", "description": "How much."},
            "kinds": {"type": "array", "items": {"type": "dict"}, "description": "Which."},
            "more": {"type": "dict", "properties": {"n": {"type": "any"}}, "description": "More."},
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "float"}}},
            "odd": {"description": "Odd."},
        },
        "required": ["price"],
    },
    "response": {"type": "dict", "properties": {}},
}
OTHER = {**DOC, "name": "sell", "description": "Sell it."}


def task(revision, benchmark=True, classes=("MathAPI",), brings=None):
    agenda = {"turns": ["Buy.", None], "brings": {"1": ["sell"]} if brings is None else brings}
    data = {"involved_classes": list(classes), "initial_config": {}}
    return Task(
        "t", "bfcl", "", None, initial_data=data, agenda=agenda, tags={"revision": revision}, benchmark=benchmark
    )


@pytest.fixture
def documents(monkeypatch):
    monkeypatch.setattr(toolspecs, "documents", lambda revision, owner: (DOC, OTHER))


def test_a_document_becomes_a_tool_of_the_chat_api():
    before = json.dumps(DOC)
    made = spec_of(DOC, hints=1).to_openai()["function"]
    assert json.dumps(DOC) == before
    assert list(made) == ["name", "description", "parameters", "response"]
    assert made["description"] == "Buy it." + HINT and made["response"] == DOC["response"]
    assert made["parameters"] == {
        "type": "object",
        "properties": {
            "price": {"type": "number", "description": "How much. This is a float type value.", "format": "float"},
            "kinds": {"type": "array", "items": {"type": "object"}, "description": "Which."},
            "more": {"type": "object", "properties": {"n": {"type": "string"}}, "description": "More."},
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "odd": {"description": "Odd.", "type": "string"},
        },
        "required": ["price"],
    }
    assert spec_of(DOC).doc == DOC


def test_hints_by_revision(documents):
    for revision in ("v3", "v4"):
        (first,) = offered(task(revision))
        assert (first.name, first.description) == ("buy", "Buy it." + HINT)
        assert first.doc == {**DOC, "description": "Buy it." + HINT}
    assert [(s.name, s.description) for s in brought(task("v4"), 1)] == [("sell", "Sell it.")]
    assert [(s.name, s.description) for s in brought(task("v3"), 1)] == [
        ("buy", "Buy it." + HINT * 2),
        ("sell", "Sell it." + HINT),
    ]
    assert [s.description for s in offered_after(task("v4"), 1)] == ["Buy it." + HINT, "Sell it."]
    assert [s.description for s in offered_after(task("v3"), 1)] == ["Buy it." + HINT * 2, "Sell it." + HINT]
    assert offered_after(task("v3"), 0) == offered(task("v3"))


def test_what_the_user_says(documents):
    native, text = user_lines(task("v4"), "native"), user_lines(task("v4"), "text")
    assert native[0] == text[0] == ("Buy.", ())
    assert native[1][0] == MORE_TOOLS and [s.name for s in native[1][1]] == ["sell"]
    assert text[1] == (f"{[OTHER]!r}\n{MORE_TOOLS}", ())


def test_generated_tasks_need_no_documents():
    made = task("v4", benchmark=False, brings={"1": ["mean", "add"]})
    names = [spec.name for spec in offered(made)]
    assert "logarithm" in names and "mean" not in names
    assert [spec.name for spec in brought(made, 1)] == ["mean", "add"]
    assert "Note that" not in offered(made)[0].description
    said = user_lines(made, "text")[1][0]
    assert said.startswith("[{'name': 'mean', 'description': ") and said.endswith(MORE_TOOLS)


def test_system_prompts(documents):
    specs = offered(task("v4"))
    shown = {**DOC, "description": "Buy it." + HINT}
    v3, v4 = PromptCodec("v3").system("", specs), PromptCodec("v4").system("", specs)
    assert v3.startswith("You are an expert in composing functions. You are given a question")
    assert "purpose.\nIf none" in v3 and v3.endswith(f"that you can invoke.\n{[shown]!r}\n\n")
    assert v4.startswith("You are an expert in composing functions.You are given a question")
    assert "func_name2(params)].  You SHOULD NOT" in v4
    assert v4.endswith(f"json format that you can invoke.\n{json.dumps([shown], indent=4)}\n")
    assert PromptCodec("v4").system("Be kind.", specs) == f"{v4}\n\nBe kind."
    qwen = QwenCodec("v4").system("", specs)
    assert qwen.startswith("# Tools\n\n") and f"<tools>\n{json.dumps(shown)}\n</tools>" in qwen
    assert QwenCodec("v4").system("Be kind.", specs) == f"Be kind.\n\n{qwen}"
    assert QwenCodec("v4").system("Be kind.", ()) == "Be kind."
