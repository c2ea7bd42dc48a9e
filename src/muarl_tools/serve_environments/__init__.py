"""Environments over HTTP, for trainers in other processes: tasks, whole conversations, and conversations step by step.

From the wire inwards: ``http`` (how it listens and ends; who may ask is for ``muarl.basics.web``), ``app`` (paths),
``requests`` (what is asked), ``service`` (what is answered), ``held`` (conversations that clients lead); ``tau`` is the
same in the protocol of ART.
"""

TOKEN = "MUARL_ENV_TOKEN"
"""The variable with the token that clients must send; or, with _FILE behind it, with the file that holds it."""
