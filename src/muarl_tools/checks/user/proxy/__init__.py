"""``muarl user proxy``: a guard for simulated users of other programs, between them and the model that they ask.

It speaks OpenAI's chat completions on both sides and keeps nothing of a conversation: each request holds all that its
reply is checked by.
"""

TOKEN = "MUARL_PROXY_TOKEN"
"""The environment variable with the token that clients send as their API key."""
