"""What a person has approved for a run, remembered outside the run's folder.

A run's folder may come from somebody else, so its own config.yaml cannot vouch for itself. What the person set on the
command line when the run began stands in the state folder ($XDG_STATE_HOME, else ~/.local/state) under ``muarl``: one
small file for each run, named after a hash of its path. ``--resume`` then asks nothing that was answered before.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from muarl.basics.errors import MuarlError
from muarl.basics.files import write_text
from muarl.basics.untrusted import read_json_object

log = logging.getLogger(__name__)

Approved = Mapping[str, tuple[str, ...]]
"""By setting, the values that the person has approved."""


def recall(config_file: Path) -> Approved:
    """What was approved for the run that this file describes; nothing where nothing is known."""
    try:
        place = _file(config_file)
        if os.name == "posix" and place.stat().st_uid != os.geteuid():
            return {}
        settings = read_json_object(place)["settings"]
        return {str(name): tuple(map(str, values)) for name, values in settings.items()}
    except (OSError, MuarlError, KeyError, TypeError, AttributeError, RuntimeError):  # the last: there is no home
        return {}


def remember(config_file: Path, settings: Mapping[str, str]) -> None:
    """Approve these values too for the run that this file describes. A state folder that cannot be written is logged:
    the run works, and asks again when it is resumed."""
    before = recall(config_file)
    merged = {
        n: sorted({*before.get(n, ()), *((settings[n],) if n in settings else ())}) for n in {**before, **settings}
    }
    if not settings or all(settings[name] in before.get(name, ()) for name in settings):
        return
    try:
        place = _file(config_file)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_text(place, json.dumps({"config": str(config_file.resolve()), "settings": merged}, indent=1) + "\n")
    except (OSError, MuarlError, RuntimeError) as problem:
        log.warning("%s; when this run is resumed, addresses and files must be named again", problem)


def home() -> Path:
    """The folder of what is remembered."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "muarl" / "approved"


def _file(config_file: Path) -> Path:
    name = hashlib.sha256(str(config_file.expanduser().resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return home() / f"{name[:32]}.json"
