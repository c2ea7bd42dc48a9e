"""The subcommands of muarl beside the engine's own."""
