"""Search by regular expressions, with the orders and counts of TAU2, and a time limit."""

from __future__ import annotations

from muarl.retrieval.documents import Knowledge
from muarl.retrieval.matching import MATCHING
from muarl.retrieval.overlay import OverlaidKnowledge
from muarl.retrieval.search import Hit, Search


class GrepSearch(Search):
    """Ranks documents by how often a regular expression matches in them. Titles are not searched.

    ``case_sensitive``: whether case counts.
    """

    def __init__(self, knowledge: Knowledge, *, case_sensitive: bool = False) -> None:
        self.knowledge, self.case_sensitive = knowledge, case_sensitive

    def search(self, query: str, top_k: int = 10) -> list[Hit]:
        """The documents with the most matches, and their number. What is no regular expression is searched for as it
        stands. SearchError for a pattern that takes too long."""
        if not query.strip():
            return []
        counts = zip(self.knowledge.documents, self._counts(self.knowledge, query), strict=True)
        hits = (Hit(document, float(count)) for document, count in counts if count)
        return sorted(hits, key=lambda hit: hit.score, reverse=True)[:top_k]

    def _counts(self, knowledge: Knowledge, query: str) -> list[int]:
        """How often it matches in each document."""
        if isinstance(knowledge, OverlaidKnowledge):  # the base's texts are there already
            found = dict(enumerate(self._counts(knowledge.base, query) if knowledge.base.documents else ()))
            found |= zip(knowledge.changed, self._counts(knowledge.own, query), strict=True)
            return list(found.values())
        texts = knowledge.index("texts", lambda: tuple(d.content for d in knowledge.documents))
        return MATCHING.counts(knowledge.key, texts, query, ignore_case=not self.case_sensitive)
