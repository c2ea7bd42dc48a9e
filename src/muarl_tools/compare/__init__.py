"""Comparing agents: results of any kind in one table, paired and tested; how many more trials are needed.

``reading`` brings runs of muarl, TAU2, TAU1, BFCL, ACEBench and plain rows into one form (``attempts``); ``pairing``
finds what the runs share; ``significance`` and ``intervals`` test differences, ``groups`` says what can be told apart;
``components`` splits the noise, ``power`` says how many trials a difference needs. ``comparing`` puts it together,
``text`` and ``page`` show it.
"""
