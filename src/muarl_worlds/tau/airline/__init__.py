"""TAU2's airline domain."""
