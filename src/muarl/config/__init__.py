"""Run configurations: what a YAML preset may say, what it means, and clear words for what it must not say.

``load.load_config("cpu", ["rl.steps=10"])`` reads a preset or a file, lays dotted overrides over it, checks every key
and returns a frozen ``sections.RunConfig``. A file may start from another with ``extends: cpu``.

"""
