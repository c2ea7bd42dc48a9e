"""ACEBench Agent: a simulated phone and a travel desk, and worlds made of them; in English and Chinese."""
