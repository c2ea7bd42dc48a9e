"""Finding documents: collections of them, and ways to search one behind one protocol.

``documents.py``: ``Document`` and ``Knowledge``, an ordered collection that keeps the indexes made of it.
``search.py``: ``Search``, which gives ``Hit``s. ``bm25.py``, ``grep.py``: search by words and by regular expressions.
``embeddings.py``, ``embedders.py``, ``embedding_cache.py``: by embeddings, which a model makes. ``reranking.py``: what
another search found, in a model's order. ``overlay.py``: a collection with some documents laid over it.
"""

from muarl.retrieval.bm25 import BM25Search
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.embedders import EndpointEmbedder, HashedEmbedder, LocalEmbedder
from muarl.retrieval.embedding_cache import EmbeddingCache
from muarl.retrieval.embeddings import Embedder, EmbeddingSearch
from muarl.retrieval.grep import GrepSearch
from muarl.retrieval.overlay import OverlaidKnowledge
from muarl.retrieval.reranking import EndpointReranker, RatingReranker, RerankedSearch, Reranker
from muarl.retrieval.search import Hit, Search, SearchError

__all__ = [
    "BM25Search", "Document", "Embedder", "EmbeddingCache", "EmbeddingSearch", "EndpointEmbedder", "EndpointReranker",
    "GrepSearch", "HashedEmbedder", "Hit", "Knowledge", "LocalEmbedder", "OverlaidKnowledge", "RatingReranker",
    "RerankedSearch", "Reranker", "Search", "SearchError",
]  # fmt: skip
