"""How a model is computed: our own path for the families that it covers, and transformers for all others."""
