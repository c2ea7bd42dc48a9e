"""What a learner and its processes say to each other arrives as it was, to the last bit."""

from __future__ import annotations

import json
import math
import socket
import threading
from pathlib import Path

import torch

from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.messages import SETTINGS, hear, pack_samples, say, unpack_samples
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Sample
from muarl.learning.release import ModelNotes
from muarl.learning.settings import LearnerConfig, LoraSettings


def test_samples_survive_the_way() -> None:
    samples = [
        Sample([1, 151_935, 3], [0.0, 1.0, 0.1], [0.0, -1e-17, -33.3333333333333333], 1 / 3, 4),
        Sample([7], [1.0], []),
        Sample([2, 5], [0.0, 1.0], [-math.inf, math.nan], -math.inf, 0),
    ]
    mine, theirs = socket.socketpair()
    for some in (samples, []):
        counts, tensors = pack_samples(some)
        sending = threading.Thread(target=say, args=(mine, {"argument": counts}, tensors))
        sending.start()
        value, got = hear(theirs)
        sending.join()
        assert repr(unpack_samples(value["argument"], got)) == repr(some)
    mine.close()
    theirs.close()


def test_tensors_of_every_type_survive_the_way() -> None:
    tensors = {"w": torch.randn(3, 2).to(torch.bfloat16), "scalar": torch.tensor(0.1), "none": torch.empty(0, 4)}
    mine, theirs = socket.socketpair()
    say(mine, {"kind": "done"}, tensors)
    say(mine, {"kind": "nothing"}, {})
    value, got = hear(theirs)
    assert value == {"kind": "done"} and got.keys() == tensors.keys()
    assert all(got[n].dtype == t.dtype and torch.equal(got[n], t) for n, t in tensors.items())
    assert hear(theirs) == ({"kind": "nothing"}, {})
    mine.close()
    theirs.close()


def test_settings_survive_the_way() -> None:
    settings = LearnerConfig(
        OptimizerConfig(lr=1e-6 / 3, betas=(0.9, 0.95)),
        PolicyLossConfig(clip_high=math.inf, sequence_mask=(0.5, 2.0), dual_clip=None, old_logprobs="recompute"),
        lora=LoraSettings(8, 16.0, ("q_proj",)),
        notes=ModelNotes(start=Path("base"), methods=(("sft", "fine-tuning"),), scores=(("reward", "0.5"),)),
    )
    sent = json.dumps(SETTINGS.dump_python(settings, mode="json"))
    assert SETTINGS.validate_python(json.loads(sent)) == settings
