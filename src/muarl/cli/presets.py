"""``muarl presets``: the configurations that come with muarl."""

from __future__ import annotations


def presets() -> None:
    """List the presets: what `--config` takes, for which command, and what it is.

    `--dry-run` prints all settings of one, and a file of your own may start from it with `extends: NAME`.

      muarl presets
      muarl train --config cpu --dry-run
    """
    from rich.table import Table
    from rich.text import Text

    from muarl.config.load import all_presets
    from muarl.observe.screen import Screen

    table = Table("preset", "command", "what it is", box=None, pad_edge=False)
    for preset in all_presets():
        table.add_row(Text(preset.name), Text(f"muarl {preset.command}"), Text(preset.text))
    Screen().print(table)
