"""What an evaluation consists of: episodes played and scored, users reviewed, audits, the report."""
