"""What every part needs and nothing of it knows of agents: errors, files, seeds, keys, child processes, the web."""
