"""How benchmarks' official tasks are played: their worlds, rules, limits, prompts and seeds, to the letter.

An environment names its benchmark's (``Environment.protocol``); ``find(name).official()`` makes it.
"""
