"""Collections of documents, and what is kept of them."""

from __future__ import annotations

import json

import pytest

from muarl.basics.errors import DataError
from muarl.retrieval.bm25 import BM25Search
from muarl.retrieval.documents import Document, Knowledge

NOTES = (Document("a", "Fees", "The fee is 3."), Document("b", "Cards", "A card costs a fee."))


def test_a_folder_of_json_is_read_in_the_order_of_its_paths(tmp_path):
    (tmp_path / "loans").mkdir()
    for name, id_ in (("loans/home.json", "h"), ("fees.json", "f"), (".hidden.json", "no")):
        (tmp_path / name).write_text(json.dumps({"id": id_, "title": "Fees", "content": "x"}), encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"no")
    assert Knowledge.read(tmp_path).documents == (Document("f", "Fees", "x"), Document("h", "Fees", "x"))


def test_a_file_that_is_no_document_is_named(tmp_path):
    (tmp_path / "odd.json").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(DataError, match=r"odd\.json is no document"):
        Knowledge.read(tmp_path)


def test_a_folder_that_there_is_not_is_named(tmp_path):
    with pytest.raises(DataError, match="no-such: no such folder"):
        Knowledge.read(tmp_path / "no-such")


def test_a_document_is_found_by_title_or_id():
    known = Knowledge((*NOTES, Document("c", "Fees", "newer")))
    assert known.find("Fees").id == "c" and known.find("a").id == "a" and known.find("z") is None


def test_the_last_of_several_documents_with_one_id_counts():
    assert Knowledge((*NOTES, Document("a", "Fees", "newer"))).find("a").content == "newer"


def test_collections_with_the_same_documents_have_the_same_key():
    assert Knowledge(NOTES).key == Knowledge(NOTES).key != Knowledge(NOTES[::-1]).key


def test_an_index_is_made_once_for_a_collection_and_not_before_it_is_needed():
    known, made = Knowledge(NOTES), []

    def make():
        made.append(1)
        return object()

    first = known.index("x", make)
    assert known.index("x", make) is first and made == [1] and Knowledge(NOTES).index("x", make) is not first
    BM25Search(known).search("fee")
    index = known.index("bm25", make)
    BM25Search(known).search("card")
    assert known.index("bm25", make) is index and len(made) == 2
