"""``muarl sft-user``: a user model, learnt from dialogue, and its fidelity.

The same fine-tuning as the agent's, from the other chair: the scenario is the system prompt, the agent's words come as
role user, and the loss is on what the user says.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from muarl.backends.models import load_model
from muarl.backends.users import refuse_user_tools, rule_based_users
from muarl.basics.errors import DataError
from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.choice import chat_format
from muarl.config.section import UserConfig
from muarl.config.sections import RunConfig
from muarl.config.stages import SftConfig
from muarl.domains.scripted_expert import COMMON, ErrorProfile
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.learning.packing import Sample
from muarl.recipes.demonstrations import demonstrate
from muarl.recipes.sft import check_demonstrations, fit, read_demonstrations
from muarl.recipes.user_fidelity import check_measurable, measure
from muarl.runs.checks import check_machine
from muarl.runs.context import RunContext, open_context, prepare, tell_domain
from muarl.runs.prices import Bounds
from muarl.runs.roles import Cast
from muarl.runs.tasks import check_may_train, demonstration_notes, demonstration_seed
from muarl.types.episode import Episode
from muarl.users.sampled import from_the_users_chair

MOST = 0.5
"""The experts that users are learnt from have errors up to this share, so that users meet all sorts of agents."""

BLOCK = 200
"""Conversations that share one draw of errors."""


def run(config: RunConfig) -> Path:
    """Train ``model.checkpoint`` as a user and measure it. Returns the run's folder."""
    prepare(config)
    places = places_of(config, with_rl=False)
    for place in places:
        refuse_user_tools(place.name, place.domain)
    files = {"sft.demonstrations_file": config.sft.demonstrations_file}
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark, files=files)
    check_demonstrations(config.sft.demonstrations_file, Cast.of(config), Bounds.of(config))
    check_measurable(config, places)
    check_machine(config, config.sft)
    policy = load_model(config.model)
    with open_context(config, "sft-user") as context:
        tell_domain(context.folder, config.domain_text, places)
        for note in demonstration_notes(config.sft, places):
            context.progress.say(note)
        context.loop.closes(places)
        chat = chat_format(policy.tokenizer, config.model.chat_format)
        pairs = dialogues(context, config.sft, config.user, places)
        samples = user_samples(pairs, chat)
        if left := len(pairs) - len(samples):
            context.progress.say(f"{left} of {len(pairs)} conversations are left out: their users call tools")
        fit(context, config.sft, policy, [(sample,) for sample in samples], name="user model")
        measure(context, config.eval, config.user, places, policy, conversations=len(samples))
    return context.folder.path


def dialogues(context: RunContext, sft: SftConfig, user: UserConfig, places: Places) -> list[tuple[str, Episode]]:
    """(scenario, conversation) pairs to learn from: a file's, or of experts with many error profiles and agenda users.

    DataError if a file's episodes do not say what their scenario was.
    """
    if sft.demonstrations_file is not None:
        demonstrations = read_demonstrations(sft.demonstrations_file)
        missing = next((e.id for e in demonstrations if not isinstance(e.tags.get("user_scenario"), str)), None)
        if missing is not None:
            raise DataError(
                f"sft.demonstrations_file: the episode {missing!r} does not say what its user's scenario was "
                '(tags["user_scenario"], as `muarl coldstart` writes it)'
            )
        return [(e.tags["user_scenario"], e) for e in demonstrations]
    users = places.by_place(lambda place: rule_based_users(user, place))
    rng = random.Random(f"user model habits {sft.seed} {context.seed}")
    pairs: list[tuple[str, Episode]] = []
    with context.progress.phase("dialogues", sft.demonstrations, "conversations") as phase:
        for start in range(0, sft.demonstrations, BLOCK):
            count = min(BLOCK, sft.demonstrations - start)
            tasks = places.draw("train", count, demonstration_seed(sft, context.seed), start)
            error_profile = ErrorProfile(**{name: rng.random() * MOST for name in COMMON})
            scenarios = {t.id: t.scenario for t in tasks}
            made = demonstrate(places, users, tasks, error_profile, seed=context.seed + start)
            pairs += [(scenarios[e.task_id], e) for e in made]
            phase.advance(count)
    return pairs


def user_samples(pairs: Sequence[tuple[str, Episode]], chat: ChatFormat) -> list[Sample]:
    """Conversations with weight 1 on what the user says. Those with a user who calls tools are left out: a user model
    has none. DataError if nothing is left."""
    samples = []
    for scenario, episode in pairs:
        if any(m.role == "user" and m.tool_calls for m in episode.messages):
            continue
        trace = chat.training_tokens(scenario, (), from_the_users_chair(episode.messages))
        samples.append(Sample.supervised(trace.ids, trace.loss_mask, 0.0))
    if not samples:
        raise DataError("sft-user: there is no conversation whose user only speaks, so there is nothing to learn from")
    return samples
