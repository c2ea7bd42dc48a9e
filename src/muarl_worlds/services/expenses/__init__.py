"""A company's desk for expenses: claims and cards, some of which only the finance lead may approve."""
