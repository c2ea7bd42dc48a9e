"""TAU2's telecom domain: a carrier's accounts on the agent's side, a phone and its surroundings on the user's."""
