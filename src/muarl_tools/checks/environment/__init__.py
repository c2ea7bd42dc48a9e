"""``muarl domains check``: what must hold of every environment, as checks that say what is wrong and where.

``rules`` lists them all and runs them; the tests run them on every environment that comes with muarl.
"""
