"""Run configurations: their sections, how they are loaded, and which are trusted.

``load.load_config("cpu", ["rl.steps=10"])`` reads a preset or a file, lays dotted overrides over it, checks every key
and returns a frozen ``sections.RunConfig``. A file may start from another with ``extends: cpu``.

"""
