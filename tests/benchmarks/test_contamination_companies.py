"""What companies and TAU2's bank, whose tools stand in documents as well, have in common: next to nothing."""

from __future__ import annotations

import re

import pytest

from muarl.retrieval.documents import Knowledge
from muarl_worlds.companies.bank import BANK
from muarl_worlds.companies.insurer import INSURER
from muarl_worlds.companies.making import company
from muarl_worlds.companies.utility import UTILITY
from muarl_worlds.contamination import TaskSet, overlap, shared_phrases
from muarl_worlds.tau import tau2_benchmark as tau2
from muarl_worlds.tau.banking.discovery import DESCRIPTIONS
from support.kit import env, made

NAME = "banking_knowledge"
TRADES = (BANK, INSURER, UTILITY)


@pytest.fixture(scope="module")
def theirs(installed):
    documents = Knowledge.read(installed / "domains" / NAME / "documents").documents
    assert len(documents) == 698
    return [f"{document.title}\n{document.content}" for document in documents]


def ours(trade, key):
    return [f"{document.title}\n{document.content}" for document in company(trade, key).documents]


def test_what_counts_as_a_shared_phrase():
    found = shared_phrases(["The fee is $35 a year.", "the FEE is 35"], ["So the fee, is 35 a month"], 4)
    assert found == {"the fee is 35": 2, "fee is 35 a": 1}
    assert shared_phrases(["The fee"], ["The fee"], 4) == {}


@pytest.mark.data
@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade.name)
def test_no_document_has_a_sentence_of_the_banks(trade, theirs):
    texts = [text for key in ("full-known-0", "small-known-0", "tiny-known-0") for text in ours(trade, key)]
    assert shared_phrases(texts, theirs, 6) == {}
    assert set(shared_phrases(texts, theirs, 5)) <= {"the id of the account"}
    assert len(shared_phrases(theirs, theirs[:50], 6)) > 1000  # it would be found


@pytest.mark.data
@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade.name)
def test_no_product_and_no_tool_is_the_banks(trade, theirs):
    text = "\n".join(theirs).casefold()
    assert not [brand for brand in trade.brands if re.search(rf"\b{brand.casefold()}\b", text)]
    stems = {re.sub(r"_\d+$", "", name) for tools in DESCRIPTIONS.values() for name in tools}
    assert not stems & {operation.stem for operation in trade.operations}


@pytest.mark.data
@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade.name)
def test_no_task_has_the_writes_or_the_words_of_the_banks(trade, installed, theirs):
    tasks, bank = made(trade.name, "small", "train", 100), tau2.tasks(NAME, None)
    kinds = env(trade.name).make_domain("small").kind_of
    found = overlap(TaskSet(trade.name, tasks, kinds), TaskSet(NAME, bank, tau2.domain(NAME).kind_of))
    assert found.training_tasks > 50 and found.benchmark_tasks > 50 and not found.pairs
    scenarios = [task.scenario for task in tasks]
    assert shared_phrases(scenarios, [*theirs, *(task.scenario for task in bank)], 8) == {}
