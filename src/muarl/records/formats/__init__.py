"""Conversations in other programs' formats: a module for each, which knows the format and nothing of files or commands.

``atif``: Agent Trajectory Interchange Format. ``rows``: rows of Hugging Face datasets. ``tau2``: TAU2's results.json.
``otel``: OpenTelemetry's GenAI spans. ``responses``: items of OpenAI's Responses API. ``logs`` tells the readable ones
apart.
"""
