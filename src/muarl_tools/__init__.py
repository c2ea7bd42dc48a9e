"""What stands beside the engine: the viewer, comparisons, checks, servers, experiments, exports."""
