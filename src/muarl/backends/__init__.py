"""Who samples, learns and plays: in this process, in others of this machine, or on a cluster."""
