"""Reading and writing English: for simulated users, scripted experts, audits and the rules on simulated users alike.

``consent``: what a user's reply says to a proposal. ``acts``: what an agent's message does. ``values``: dates, times,
money, numbers, ids and names, how they are said and how they are found.
"""
