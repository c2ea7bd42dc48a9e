"""Conversations as other programs and muarl write them: read and written, a module for each format, side by side."""
