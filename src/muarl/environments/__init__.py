"""Where episodes take place: an `Environment` is what is declared, a `Place` is one as a run plays it."""
