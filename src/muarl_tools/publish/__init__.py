"""Environments as folders that hubs take: OpenEnv's, verifiers', data sets of Hugging Face (``muarl env export``)."""
