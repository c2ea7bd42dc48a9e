"""What must hold of every environment, as checks that say what is wrong, where, and what to do about it.

``run_checks`` in ``every`` runs them all. ``muarl domains check NAME`` prints what they find, and the tests run them on
every environment that comes with muarl.
"""
