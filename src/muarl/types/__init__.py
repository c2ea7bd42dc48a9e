"""Typed nouns that everything speaks of: messages, tool calls, episodes."""
