"""TAU2's mock domain: a list of tasks and an inbox, small enough to try everything on."""
