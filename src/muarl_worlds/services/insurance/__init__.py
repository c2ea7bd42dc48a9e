"""An insurer: policies and claims."""
