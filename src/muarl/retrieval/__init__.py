"""Finding documents: collections of them, and ways to search one behind one protocol.

``documents.py``: ``Document`` and ``Knowledge``, an ordered collection that keeps the indexes made of it.
``search.py``: ``Search``, which gives ``Hit``s. ``bm25.py``, ``grep.py``: search by words and by regular expressions.
"""

from muarl.retrieval.bm25 import BM25Search
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.grep import GrepSearch
from muarl.retrieval.search import Hit, Search, SearchError

__all__ = ["BM25Search", "Document", "GrepSearch", "Hit", "Knowledge", "Search", "SearchError"]
