"""The command line, and the subcommands that train; each imports what it needs only when it runs."""
