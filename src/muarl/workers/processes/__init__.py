"""Episodes in several processes of this machine (``engine.processes``): children play and sample, the parent learns.

``pool.py`` starts the children and replaces those that die; ``child.py`` is what they run; they sample
from ``SharedWeights``; ``executor.py`` divides a rollout's requests among them.
"""
