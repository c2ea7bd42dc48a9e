"""What simulated users do wrong, found by rules and by a judge.

An episode's score says little about an agent whose user failed it.
"""
