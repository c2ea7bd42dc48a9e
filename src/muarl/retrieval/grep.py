"""Search by regular expressions, with the orders and counts of TAU2."""

from __future__ import annotations

import re

from muarl.retrieval.documents import Knowledge
from muarl.retrieval.search import Hit, Search


class GrepSearch(Search):
    """Ranks documents by how often a regular expression matches in them. Titles are not searched.

    ``case_sensitive``: whether case counts.
    """

    def __init__(self, knowledge: Knowledge, *, case_sensitive: bool = False) -> None:
        self.knowledge, self.case_sensitive = knowledge, case_sensitive

    def search(self, query: str, top_k: int = 10) -> list[Hit]:
        """The documents with the most matches, and their number. What is no regular expression is searched for as it
        stands."""
        if not query.strip():
            return []
        flags = re.NOFLAG if self.case_sensitive else re.IGNORECASE
        try:
            wanted = re.compile(query, flags)
        except re.error:
            wanted = re.compile(re.escape(query), flags)
        counts = (Hit(d, float(len(wanted.findall(d.content)))) for d in self.knowledge.documents)
        return sorted((hit for hit in counts if hit.score), key=lambda hit: hit.score, reverse=True)[:top_k]
