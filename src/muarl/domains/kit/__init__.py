"""The kit for services: an author declares what customers ask for and how each request is served; the rest follows.

``declaration`` is what authors write, ``plan`` how a request is served, ``tasks`` makes tasks, ``expert`` serves,
``audit`` says what the policy forbids; the rule-based user is ``users.agenda_service``. Authors import from
``muarl.kit``.
"""
