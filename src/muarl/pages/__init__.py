"""Parts of pages: charts, tables, conversations as HTML."""
