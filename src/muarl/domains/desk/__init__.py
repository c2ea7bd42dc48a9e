"""A small engine for service desks that are described in readable files: what callers want, and how they are served.

A scenario's ``intents.yaml`` (``spec.py``) drives everything: tasks from seeds, a caller that talks, and a scripted
agent. The tools and their database are ordinary Python (see ``domains/scenarios``).
"""
