"""Companies: what their documents say is what their rules are, and what is searched for is found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError
from muarl.retrieval.bm25 import BM25Search
from muarl_worlds.companies.bank import BANK
from muarl_worlds.companies.company import COMPANY_SIZES, TODAY
from muarl_worlds.companies.insurer import INSURER
from muarl_worlds.companies.making import company, company_key
from muarl_worlds.companies.rules import DocumentedRule, Procedure, procedure_that_holds, rule_that_holds
from muarl_worlds.companies.utility import UTILITY
from muarl_worlds.companies.wording import procedure_title, reader, rule_query, table_title, value_in_words

TRADES = (BANK, INSURER, UTILITY)
trades = st.sampled_from(TRADES)
keys = st.builds(company_key, st.just("tiny"), st.integers(0, 10_000), known=st.booleans())


@settings(max_examples=15, deadline=None)
@given(trades, keys)
def test_documents_are_read_as_the_rules_that_they_were_written_from(trade, key):
    made = company(trade, key)
    for document in made.documents:
        read = reader(trade).rules(document.id, document.title, document.content)
        assert set(read) == {rule for rule in made.rules if rule.document == document.id}
        procedure = reader(trade).procedure(document.id, document.title, document.content)
        assert [procedure] * (procedure is not None) == [p for p in made.procedures if p.document == document.id]


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade.name)
def test_longer_documents_are_read_as_their_rules_too(trade):
    made = company(trade, "small-known-0")
    read = [r for d in made.documents for r in reader(trade).rules(d.id, d.title, d.content)]
    assert len(read) == len(set(read)) and set(read) == set(made.rules)
    assert any(len([r for r in read if r.document == d.id]) > 3 for d in made.documents), "sheets have several rules"
    assert any(d.title.startswith("Table ") for d in made.documents)


@settings(max_examples=15, deadline=None)
@given(trades, keys)
def test_a_search_shows_every_document_on_its_matter(trade, key):
    made = company(trade, key)
    search = BM25Search(made.knowledge)
    titles = {document.id: document.title for document in made.documents}
    for rule in made.rules:
        table = table_title(rule.topic, trade.families[trade.family(rule.product)])
        query = table if titles[rule.document] == table else rule_query(rule.product, rule.topic)
        assert rule.document in [hit.document.id for hit in search.search(query, made.size.top_k)]
    for procedure in made.procedures:
        query = procedure_title(trade.operation(procedure.operation).title, procedure.family)
        assert procedure.document in [hit.document.id for hit in search.search(query, made.size.top_k)]


@settings(max_examples=15, deadline=None)
@given(trades, keys)
def test_every_document_that_holds_has_its_value_in_so_many_words(trade, key):
    made = company(trade, key)
    texts = {document.id: document.content for document in made.documents}
    for rule in made.rules:
        assert value_in_words(rule.value, trade.topic(rule.topic).unit) in texts[rule.document]
    for procedure in made.procedures:
        assert all(name in texts[procedure.document] for _, name in procedure.arguments)
        assert procedure.tool in texts[procedure.document] and procedure.code in texts[procedure.document]


@settings(max_examples=15, deadline=None)
@given(trades, keys)
def test_the_wrong_document_has_another_value(trade, key):
    made = company(trade, key)
    values = {}
    for rule in made.rules:
        if trade.topic(rule.topic).unit != "product":
            values.setdefault((rule.topic, rule.product), []).append(rule.value)
    assert all(len(several) == len(set(several)) for several in values.values())


@pytest.mark.parametrize("size", ["tiny", "small"])
@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade.name)
def test_a_company_has_what_makes_documents_hard(trade, size):
    made = [company(trade, company_key(size, number, known=True)) for number in range(6)]
    rules = [rule for one in made for rule in one.rules]
    assert all(len(one.documents) == COMPANY_SIZES[size].documents for one in made)
    assert {rule.source for rule in rules} == {"terms", "bulletin", "leaflet"}
    assert any(rule.group for rule in rules) and any(not rule.group for rule in rules)
    assert any(rule.since > TODAY for rule in rules), "rules that are not in force yet"
    assert any(rule.until and rule.until < TODAY for rule in rules), "rules that have run out"
    assert {p.mode for one in made for p in one.procedures} >= {"call", "give"}
    assert any(len([q for q in one.procedures if q.operation == p.operation and q.family == p.family]) > 1
               for one in made for p in one.procedures), "procedures that were replaced"  # fmt: skip


@settings(max_examples=10, deadline=None)
@given(trades, st.integers(0, 1000))
def test_two_companies_differ(trade, number):
    one, other = (company(trade, company_key("tiny", number + more, known=True)) for more in (0, 1))
    assert one.rules != other.rules and set(one.tools) != set(other.tools)
    assert company(trade, one.key) is one


def test_the_largest_size():
    made = company(UTILITY, "full-known-0")
    assert len(made.documents) == 700 and len({document.id for document in made.documents}) == 700
    assert len(made.products) == 117


@pytest.mark.parametrize("key", ["huge-known-0", "tiny", ""])
def test_a_key_that_is_none_is_told(key):
    with pytest.raises(ConfigError, match="write SIZE-known-NUMBER"):
        company(BANK, key)


# what holds


def a_rule(value, since="2025-01-01", **more):
    return DocumentedRule("closing fee", "Alder Saver Plus", value, since, **more)


@pytest.mark.parametrize(
    ("others", "group", "value"),
    [
        ([], "none", 10),
        ([a_rule(20, since="2024-01-01")], "none", 10),
        ([a_rule(20, since="2026-01-01")], "none", 20),
        ([a_rule(20, since="2026-03-15")], "none", 10),
        ([a_rule(20, since="2026-03-14")], "none", 20),
        ([a_rule(20, since="2026-01-01", source="leaflet")], "none", 10),
        ([a_rule(20, since="2024-01-01", until="2026-03-14", source="bulletin")], "none", 20),
        ([a_rule(20, since="2024-01-01", until="2026-03-13", source="bulletin")], "none", 10),
        ([a_rule(20, group="students")], "students", 20),
        ([a_rule(20, group="students")], "pensioners", 10),
        ([a_rule(20, group="students"), a_rule(30, until="2026-12-31", source="bulletin")], "students", 20),
        ([DocumentedRule("card fee", "Alder Saver Plus", 20, "2026-01-01")], "none", 10),
        ([DocumentedRule("closing fee", "Alder Saver Prime", 20, "2026-01-01")], "none", 10),
    ],
)
def test_which_rule_holds(others, group, value):
    rules = [a_rule(10), *others]
    for given_rules in (rules, rules[::-1]):
        found = rule_that_holds(given_rules, "closing fee", "Alder Saver Plus", group, "2026-03-14")
        assert found.value == value


def test_no_rule_and_no_procedure():
    assert rule_that_holds([a_rule(10, since="2027-01-01")], "closing fee", "Alder Saver Plus", "", TODAY) is None
    later = Procedure("close", "Saver", "2027-01-01", "transfer")
    assert procedure_that_holds([later], "close", "Saver", TODAY) is None
    assert procedure_that_holds([Procedure("close", "Saver", "2025-01-01", "transfer"), later], "close", "Saver", TODAY)
