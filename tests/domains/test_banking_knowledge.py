"""Searching the bank's documents, and the policies that go with each way of doing so."""

from __future__ import annotations

import json

import pytest

from muarl.domains.banking.retrieval import VARIANTS, policy, variant
from muarl.errors import ConfigError, DataError
from muarl.retrieval import Document, GrepSearch, Knowledge
from support.small_bank import DOCUMENTS, bank, use


def test_a_search_shows_the_best_documents_with_scores():
    world = bank(top_k=2).world()
    shown = use(world, "KB_search", query="ATM Fee").content
    assert shown.startswith("1. Fees\n   ID: d1\n   Score: ")
    assert "\n\n2. Cards\n   ID: d2\n   Score: 0.0000\n   Content: Credit card and debit card rules.\n" in shown
    assert shown.endswith("\n\n[Timing: retrieval=0ms, reranking=0ms, total=0ms]") and "Loans" not in shown
    assert use(world, "KB_search", query=" ").content.startswith("No relevant documents found.\n\n[Timing")
    assert use(world, "KB_search", query=5).content == "Error: 'int' object has no attribute 'strip'"
    assert "Timing" not in use(bank("fixed").world(), "KB_search", query="fee").content
    assert use(world, "KB_search").content == (
        "Error: KBSearchMixin.KB_search() missing 1 required positional argument: 'query'"
    )


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("CARD", ["d2"]),
        ("fee|card", ["d1", "d2"]),
        ("e", ["d1", "d3", "d2"]),
        ("(", []),
        ("$3.", ["d1"]),
        ("", []),
        ("zzz", []),
    ],
)
def test_grep_ranks_by_the_number_of_matches(pattern, ids):
    if pattern == "$3.":
        pattern = r"\$3\."
    assert [document.id for document, _ in GrepSearch(Knowledge(DOCUMENTS)).search(pattern)] == ids
    shown = use(bank().world(), "grep", pattern=pattern).content
    assert [line[7:] for line in shown.splitlines() if line.startswith("   ID: ")] == ids
    assert ids or shown == f"No matches found for pattern: {pattern}"


def test_grep_may_count_case_and_stop_early():
    assert GrepSearch(Knowledge(DOCUMENTS), case_sensitive=True).search("CARD") == []
    assert len(GrepSearch(Knowledge(DOCUMENTS)).search("e", 2)) == 2
    assert "No matches" in use(bank(case_sensitive=True).world(), "grep", pattern="CARD").content


@pytest.mark.parametrize(("name", "tools"), [(n, v.tools) for n, v in VARIANTS.items()])
def test_a_variant_decides_upon_the_search_tools(name, tools):
    domain = bank(retrieval=name, required_documents=())
    assert domain.tool_names()[: len(tools) + 1] == (*tools, "transfer_to_human_agents")
    assert len(domain.tool_names()) == 14 + len(tools)


def test_what_is_not_offered_is_said():
    for name, need in (("alltools", "an embedding model and a shell"), ("terminal_use", "a shell"),
                       ("qwen_embeddings", "an embedding or ranking model")):  # fmt: skip
        with pytest.raises(ConfigError, match=f"retrieval '{name}' needs {need}, which is not offered here"):
            bank(retrieval=name)
    with pytest.raises(ConfigError, match="retrieval: must be one of no_knowledge, full_kb, .*, not 'telepathy'"):
        bank(retrieval="telepathy")
    with pytest.raises(ConfigError, match="needs required_documents"):
        bank(retrieval="golden_retrieval")


def test_policies_are_put_together_from_their_parts():
    files = {
        "components/head.md": "HEAD {{component:head}}",
        "full_kb.md": "{{component:head}}\n{{full_knowledge_base}}",
        "required_docs.md": "{{component:head}}|{{required_documents}}",
        "grep_only.md": "only {{full_knowledge_base}}",
    }
    known = Knowledge(DOCUMENTS)

    def made(name, *required):
        return policy(variant(name), files.__getitem__, lambda: known, required)

    body = {d.id: f"## {d.title}\n\n{d.content}" for d in DOCUMENTS}
    assert made("full_kb") == "HEAD {{component:head}}\n" + "\n\n---\n\n".join(body.values())
    assert made("golden_retrieval") == "HEAD {{component:head}}|(No documents provided)"
    assert made("golden_retrieval", "Loans", "d1").endswith(f"|{body['d3']}\n\n---\n\n{body['d1']}")
    assert made("grep_only") == "only {{full_knowledge_base}}"
    with pytest.raises(DataError, match="there is no document 'd9'"):
        made("golden_retrieval", "d9")


def test_documents_are_read_in_the_order_of_their_files(tmp_path):
    for document in reversed(DOCUMENTS):
        row = {"id": document.id, "title": document.title, "content": document.content}
        (tmp_path / f"{document.id}.json").write_text(json.dumps(row), encoding="utf-8")
    assert Knowledge.read(tmp_path).documents == DOCUMENTS
    for text in ("{", "[]", '{"id": "x", "title": "y"}', '{"id": 1, "title": "y", "content": "z"}'):
        (tmp_path / "odd.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"odd\.json is no document"):
            Knowledge.read(tmp_path)
    assert Document("a", "b", "c") == Document("a", "b", "c")
