"""Recorded conversations to be audited: of which task and world each is, and by which rules."""
