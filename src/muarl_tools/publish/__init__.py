"""Environments as folders that hubs take: OpenEnv's, verifiers' and data sets of Hugging Face (``muarl env export``)."""
