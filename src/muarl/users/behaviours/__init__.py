"""Ways to behave that are put around any rule-based user, one around another: silence, rage, chatter, another language.

Users with traits (``users.traits``) and red-team users (``users.redteam``) are made of them.
"""
