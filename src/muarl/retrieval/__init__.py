"""Finding documents: collections, and ways to search them behind one protocol.

``documents.py``: ``Document`` and ``Knowledge``, an ordered collection that keeps the indexes made of it, and one laid
over another. ``search.py``: ``Search``, which gives ``Hit``s. ``bm25.py``, ``grep.py``: search by words and by regular
expressions. ``embeddings.py``, ``embedders.py``: by embeddings, which a model makes. ``reranking.py``: what another
search found, in a model's order.

"""
