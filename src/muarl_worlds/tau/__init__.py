"""TAU1 and TAU2: their domains, tasks, protocols and scores."""
