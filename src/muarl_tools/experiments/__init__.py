"""Several runs and one table: stages that are run, resumed or kept; seeds, suites, the reproduction of the paper."""
