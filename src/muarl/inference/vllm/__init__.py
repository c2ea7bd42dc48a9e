"""vLLM as a sampler: in this process (``engine``), or as server processes (``servers``)."""
