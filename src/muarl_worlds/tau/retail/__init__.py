"""TAU2's retail domain, a generator of shops and tasks in its schema, and an expert that serves them."""
