"""Parts of pages: charts, tables, conversations, and the templates that put them together."""
