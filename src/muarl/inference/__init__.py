"""Sampling tokens: protocols, an engine for one process, and vLLM."""
