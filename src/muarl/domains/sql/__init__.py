"""SQL databases as the databases of domains: SQLite files read on access, and copies of what a server holds."""
