"""Conversations as other programs and muarl write them: read and written here."""
