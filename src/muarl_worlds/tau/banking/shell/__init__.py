"""A shell over documents as files, of which nothing is real: no process is started, no file of this machine is read.

``Shell.run`` understands a part of what ``sh`` does (quotes, pipes, ``;``, ``&&``, ``||``, wildcards, redirections,
here documents) and re-implements the usual commands over texts in memory: ``names()`` lists them. What it does not
understand (variables, substitutions, loops, awk) is an error that says so. Folders exist by the files in them.
"""

from muarl_worlds.tau.banking.shell.call import Result
from muarl_worlds.tau.banking.shell.files import Files, files_of
from muarl_worlds.tau.banking.shell.run import Shell, names

__all__ = ["Files", "Result", "Shell", "files_of", "names"]
