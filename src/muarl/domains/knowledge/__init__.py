"""Domains whose rules, and some of whose tools, stand in documents that the agent must search."""

from muarl.domains.knowledge.discovery import discoverable
from muarl.domains.knowledge.domain import KnowledgeDomain

__all__ = ["KnowledgeDomain", "discoverable"]
