"""Where episodes take place: a domain with its tasks, users and rules, as one run uses them."""
