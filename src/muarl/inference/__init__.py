"""Sampling tokens: the protocols, an engine for one process, and vLLM behind the same protocols."""
