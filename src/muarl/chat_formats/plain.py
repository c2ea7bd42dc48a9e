"""The turns of a model that has no chat template."""

PLAIN = """{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}

{% elif m.role == 'user' %}User: {{ m.content }}
{% else %}Agent: {{ m.content }}{{ eos_token }}
{% endif %}{% endfor %}{% if add_generation_prompt %}Agent:{% endif %}"""
"""A Jinja template. A reply ends with the tokenizer's ``eos_token``."""
