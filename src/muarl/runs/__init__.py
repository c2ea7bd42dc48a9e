"""What every run needs besides its work: a folder, resuming, budgets, and checks before it begins."""
