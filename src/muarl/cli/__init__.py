"""The bodies of the subcommands; each imports what it needs only when it runs."""
