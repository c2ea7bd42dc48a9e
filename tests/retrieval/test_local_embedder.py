"""Embeddings by a model of this machine: a tiny one with random weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

from muarl.basics.errors import ConfigError
from muarl.retrieval.documents import Knowledge
from muarl.retrieval.embedders import LocalEmbedder
from muarl.retrieval.embeddings import EmbeddingSearch
from support.small_bank import DOCUMENTS

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT with two layers and a vocabulary of letters."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    path = tmp_path_factory.mktemp("bert")
    letters = [chr(c) for c in range(33, 127)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]
    (path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizerFast(str(path / "vocab.txt")).save_pretrained(path)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=64, **sizes)).save_pretrained(path)
    return path


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
async def test_a_text_has_the_same_vector_alone_and_in_a_batch(folder, pooling):
    embedder = LocalEmbedder(folder, pooling=pooling, max_tokens=64, batch=3)
    texts = ["A fee.", "a much longer text about cards and fees", "fee"]
    together = await embedder.documents(texts)
    alone = np.stack([await embedder.query(text) for text in texts])
    assert together.shape == (3, 16) and together.dtype == np.float32
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert len({row.tobytes() for row in together}) == 3


async def test_pooling_takes_the_states_that_it_names(folder):
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = model(**tokenizer(["a fee"], return_tensors="pt")).last_hidden_state[0].numpy()
    for pooling, expected in (("mean", states.mean(0)), ("first", states[0]), ("last", states[-1])):
        np.testing.assert_allclose(await LocalEmbedder(folder, pooling=pooling).query("a fee"), expected, atol=1e-5)


async def test_it_searches_and_prefixes_count(folder):
    known = Knowledge(DOCUMENTS)
    hits = await EmbeddingSearch(known, LocalEmbedder(folder, max_tokens=64)).asearch(DOCUMENTS[2].content, 1)
    assert hits[0].document.id == "d3" and hits[0].score == pytest.approx(1, abs=1e-4)
    plain, told = LocalEmbedder(folder), LocalEmbedder(folder, prefixes=("query: ", ""))
    assert not np.allclose(await plain.query("fee"), await told.query("fee")) and plain.name != told.name
    np.testing.assert_allclose(await plain.documents(["fee"]), await told.documents(["fee"]))


def test_what_is_no_model_is_said(tmp_path, folder):
    with pytest.raises(ConfigError, match="no checkpoint there"):
        LocalEmbedder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "none-such"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be read as an embedding model"):
        LocalEmbedder(tmp_path)._model()
    with pytest.raises(ConfigError, match="pooling: must be mean, first or last"):
        LocalEmbedder(folder, pooling="max")
