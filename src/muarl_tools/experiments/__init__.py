"""Several runs and one table: seeds, suites of benchmarks, the reproduction of the paper."""
