"""Conversations as other programs and muarl write them: read and written, a module for each format, side by side.

``reading``: conversations of any format; ``conversation``: what one is, and what a format says of itself; ``rows``: the
objects of a file, each with its place, for errors. Formats: ``chat`` (chat messages, as logs and trainers have them),
``episodes`` (muarl's), ``atif``, ``otel``, ``responses``, ``parquet``; TAU1's and TAU2's are in ``muarl_worlds.tau``.
``messages``: a message as benchmarks write one.
"""
