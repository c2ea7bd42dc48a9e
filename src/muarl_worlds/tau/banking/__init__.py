"""TAU2's bank: 68 tools over 23 tables, most of which an agent must first find in 698 documents."""
