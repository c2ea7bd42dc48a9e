"""That a run's simulated users can be made, before anything is played: what is wrong with the users of a validation or
of an evaluation would otherwise be found when the first of them is made, after the training or at a later benchmark."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muarl.backends.checkpoint_names import existing_checkpoint
from muarl.backends.users import make_users, refuse_user_tools
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.basics.event_loop import event_loop
from muarl.config.section import UserConfig
from muarl.domains.tasks import Task
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.runs.roles import Cast, UserRole
from muarl.users.base import HoldsSomething

_SETTING = re.compile(r"(?<![\w./-])user\.(?=[a-z])")


def check_users(cast: Cast, places: Places, splits: Mapping[UserRole, str]) -> None:
    """Make one user of each role in every place, on a task of the role's split, and ask nobody. Of users that a model
    in this process plays the checkpoint is looked for, and no model is loaded.

    CheckpointError if there is none; ConfigError for traits, strata or another setting that these users cannot have,
    whose message names those of the role's section (``user.`` or ``eval_user.``), and for a split that there is not.
    """
    for role, split in splits.items():
        for place in places:
            _check_place(cast.user_of(role), place, role, split)


def _check_place(section: UserConfig, place: Place, role: UserRole, split: str) -> None:
    sampled = section.kind == "sampled" and place.own_users(None) is None
    task = None if sampled else place.example_task(split)
    try:
        if task is None:
            refuse_user_tools(place.name, place.domain)
            existing_checkpoint(str(section.checkpoint))
        else:
            _make_one(section, place, task)
    except CheckpointError as problem:
        raise CheckpointError(f"{role}.checkpoint: {problem}") from None
    except ConfigError as problem:
        raise ConfigError(_named(str(problem), role)) from problem


def _make_one(section: UserConfig, place: Place, task: Task) -> None:
    """Make the user of a task, and give up what it and its maker hold."""
    users = make_users(section, Places([place]))
    with event_loop() as loop:
        loop.closes(users)
        user = users.at(place)(task, seed=0)
        if isinstance(user, HoldsSomething):
            user.close()


def _named(text: str, role: UserRole) -> str:
    """What is wrong, with the settings of the role's section: whoever makes users calls that section ``user``."""
    named = _SETTING.sub(f"{role}.", text)
    return named if f"{role}." in named else f"{role}: {named}"
