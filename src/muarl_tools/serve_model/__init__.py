"""An OpenAI-compatible server over any ``Sampler``: how the outside talks with a trained model.

From the wire inwards: ``http`` (how it listens and ends; who may ask is for ``muarl.basics.web``), ``app`` (endpoints),
``service`` (what is served), ``reading`` (what is asked), ``turns`` with ``chat_turn`` and ``text_turn`` (messages
become ids, ids a reply), ``replies`` (ids to text and calls, piece by piece), ``memory`` (conversations continue from
the exact ids of earlier replies), ``engine`` (the sampler in a thread of its own), ``answers`` and ``problems`` (the
shapes that go out).
"""

TOKEN = "MUARL_SERVE_TOKEN"
"""The variable with the token that clients must send; or, with _FILE behind it, with the file that holds it."""
