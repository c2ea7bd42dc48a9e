"""Search by embeddings: documents whose vectors have the largest cosine with the query's. Embeddings are kept on disk,
so that no text is embedded twice by the same model.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import logging
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.basics.files import whole_file
from muarl.retrieval.documents import Knowledge, OverlaidKnowledge
from muarl.retrieval.search import Hit, WaitingSearch

log = logging.getLogger(__name__)
Vector = NDArray[np.float32]


def content_hash(text: str) -> str:
    """The sha256 of a text, as hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class EmbeddingCache:
    """A folder with a file for each text and model, written whole or not at all; any number of processes may share it.

    Files: FOLDER/MODEL/HASH[:2]/HASH.npy, where MODEL is a hash of all that decides what a text's embedding is
    (``Embedder.name``) and HASH one of the text.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def path(self, model: str, text: str) -> Path:
        """The file that holds a text's embedding."""
        key = content_hash(text)
        return self.folder / content_hash(model)[:16] / key[:2] / f"{key}.npy"

    def get(self, model: str, text: str) -> Vector | None:
        """A text's embedding, None if there is none, or its file is damaged."""
        try:
            vector = np.load(io.BytesIO(self.path(model, text).read_bytes()), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        usable = isinstance(vector, np.ndarray) and vector.dtype == np.float32 and vector.ndim == 1 and vector.size
        return vector if usable and bool(np.isfinite(vector).all()) else None

    def put(self, model: str, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Store embeddings. A full or read-only disk is logged: a cache must not end a run."""
        for text, vector in zip(texts, vectors, strict=True):
            try:
                with whole_file(self.path(model, text), binary=True) as file:
                    np.save(file, np.asarray(vector, np.float32), allow_pickle=False)
            except (OSError, MuarlError) as problem:
                log.warning("embedding cache %s: %s; embeddings are not stored", self.folder, problem)
                return


QUERIES = 4096
"""Embeddings of queries that a collection keeps in memory for each model."""

SAVED = 256
"""Documents after which embeddings are stored, so that a run which breaks off has not paid for nothing."""


class Embedder(Protocol):
    """Turns texts into vectors of one length, such that related texts have a large cosine."""

    @property
    def name(self) -> str:
        """Everything that decides a text's vector: server, model, instructions. Caches are keyed by it."""

    async def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, shape (texts, length). InfrastructureError if they cannot be had."""

    async def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query, shape (length,)."""

    async def aclose(self) -> None:
        """Close connections."""


class EmbeddingSearch(WaitingSearch):
    """Ranks documents by the cosine of their vector with the query's. Titles are not searched.

    ``cache``: where embeddings of documents are kept on disk; None keeps them in memory only. They are made when first
    needed, once for a collection and model, whoever searches; embeddings of queries are kept in memory.
    """

    def __init__(self, knowledge: Knowledge, embedder: Embedder, cache: EmbeddingCache | None = None) -> None:
        self.knowledge, self.embedder, self.cache = knowledge, embedder, cache

    async def asearch(self, query: str, top_k: int = 10) -> list[Hit]:
        """The documents with the largest cosines; of equal ones the first of the collection."""
        documents = self.knowledge.documents
        if not query.strip() or not documents:
            return []
        vectors = await self.vectors()
        query_vector = _unit((await self._query(query))[None])[0]
        if len(query_vector) != vectors.shape[1]:
            raise InfrastructureError(
                f"{self.embedder.name}: the query's embedding has {len(query_vector)} numbers, the documents' have "
                f"{vectors.shape[1]}; if the model was changed under its name, delete the embedding cache",
                boundary="world",
                retryable=False,
            )
        scores = vectors @ query_vector
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [Hit(documents[i], float(scores[i])) for i in order]

    async def vectors(self) -> NDArray[np.float32]:
        """The documents' vectors, of length 1 each, shape (documents, length)."""
        return await self._vectors(self.knowledge)

    async def _vectors(self, knowledge: Knowledge) -> NDArray[np.float32]:
        key = ("vectors", self.embedder.name)
        async with knowledge.index(("locks", key), _Locks).here():
            if not knowledge.has(key):
                made = await self._made(knowledge)
                knowledge.index(key, lambda: made)
        return knowledge.index(key, _never)

    async def _made(self, knowledge: Knowledge) -> NDArray[np.float32]:
        """The documents' vectors, those of a collection that another one is laid over from there."""
        if not isinstance(knowledge, OverlaidKnowledge) or not knowledge.base.documents:
            return _unit(await self._embedded([d.content for d in knowledge.documents]))
        before = await self._vectors(knowledge.base)
        if not knowledge.changed:
            return before
        own = _unit(await self._embedded([d.content for d in knowledge.changed.values()]))
        if own.shape[1] != before.shape[1]:
            raise self._differ()
        made = np.zeros((len(knowledge), before.shape[1]), np.float32)
        made[: len(before)] = before
        made[list(knowledge.changed)] = own
        return made

    async def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, as far as possible from the cache."""
        model = self.embedder.name
        by_text: dict[str, Vector] = {}
        if self.cache is not None:
            for text in dict.fromkeys(texts):
                cached = self.cache.get(model, text)
                if cached is not None:
                    by_text[text] = cached
        missing = [text for text in dict.fromkeys(texts) if text not in by_text]
        for start in range(0, len(missing), SAVED):
            part = missing[start : start + SAVED]
            made = np.asarray(await self.embedder.documents(part), np.float32)
            by_text.update(zip(part, made, strict=True))
            if self.cache is not None:
                self.cache.put(model, part, list(made))
        if len({len(vector) for vector in by_text.values()}) > 1:
            raise self._differ()
        return np.stack([by_text[text] for text in texts])

    def _differ(self) -> InfrastructureError:
        model = self.embedder.name
        text = f"{model}: embeddings differ in length; if the model was changed under its name, delete the cache"
        return InfrastructureError(text, boundary="world", retryable=False)

    async def _query(self, query: str) -> Vector:
        vectors = _innermost(self.knowledge).index(("queries", self.embedder.name), OrderedDict[str, Vector])
        if query in vectors:
            vectors.move_to_end(query)
            return vectors[query]
        vectors[query] = vector = np.asarray(await self.embedder.query(query), np.float32)
        if len(vectors) > QUERIES:
            vectors.popitem(last=False)
        return vector


def _innermost(knowledge: Knowledge) -> Knowledge:
    """The collection that others are laid over."""
    return _innermost(knowledge.base) if isinstance(knowledge, OverlaidKnowledge) else knowledge


class _Locks:
    """A lock for each event loop, so that of many conversations one makes the index and the others wait for it."""

    def __init__(self) -> None:
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    def here(self) -> asyncio.Lock:
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths == 0, 1, lengths), np.float32)


def _never() -> NDArray[np.float32]:
    raise AssertionError("the index was made above")
