"""A firm's contacts, on the memory (knowledge graph) server."""
