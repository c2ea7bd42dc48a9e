"""Scenarios of our own, each a folder of readable files: policy.md, world.md, intents.py, tools and a made world.

The same tools can be played by a model instead (``domains/imagined``).
"""
