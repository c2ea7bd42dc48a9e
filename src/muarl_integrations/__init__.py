"""Adapters of other trainers and evaluators: each module needs the package of its name, and nothing in muarl needs it.

docs/integrations.md says which there are.
"""
