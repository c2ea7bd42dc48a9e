"""The side that serves: a sampled policy, a model behind an endpoint, the scripted expert, and two trivial
baselines."""
