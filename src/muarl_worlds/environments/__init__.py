"""The environments that come with muarl, each in a module of its own, so that finding one imports no other."""
