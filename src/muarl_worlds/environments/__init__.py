"""The environments that come with muarl; each has its own module, so that finding one imports no other."""
