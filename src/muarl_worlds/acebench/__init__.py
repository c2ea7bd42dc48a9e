"""ACEBench Agent: a simulated phone and a travel desk, in English and Chinese, and the worlds made of them."""
