"""An OpenAI-compatible server over any ``Sampler``: how the outside talks with a trained model.

From the wire inwards: ``addresses`` (sockets, tokens), ``http`` (how it listens and ends), ``app`` (endpoints),
``service`` (what is served), ``reading`` (what is asked), ``turns`` (messages become ids, ids a reply), ``replies``
(ids to text and calls, piece by piece), ``memory`` (conversations go on from the exact ids of earlier replies),
``engine`` (the sampler in a thread of its own), ``answers`` and ``problems`` (the shapes that go out).
"""
