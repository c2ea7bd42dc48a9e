"""One loop of reinforcement learning (GRPO), from the first line to the last. Read this before anything else.

A tiny model that comes with muarl serves the customers of a small web shop. In each step it plays several conversations
about each of a few tasks. A conversation is worth 1 if the shop's database is in the end as the task demands, else 0.
What went better than the others about the same task becomes more likely.

    python examples/rl_loop.py               # about a minute on two CPU cores
    python examples/rl_loop.py --steps 40

`muarl train` does the same, with checkpoints, resuming, metrics in files, evaluation, clusters and other domains.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from statistics import fmean

import muarl

ENVIRONMENT = "retail-generated"
TASKS, GROUP = 16, 8  # a step: so many tasks, so many conversations about each
TURN_TOKENS, CONTEXT, TURNS = 64, 768, 30  # limits: of one reply, of a whole conversation; how often the agent acts
TEMPERATURE = 1.0

SETTINGS = muarl.LearnerConfig(
    optimizer=muarl.OptimizerConfig(lr=1e-3, weight_decay=0.0),
    policy=muarl.PolicyLossConfig(
        clip_low=0.2,  # how far the probability of a token may fall ...
        clip_high=0.2,  # ... or rise, as a ratio to what it was when it was sampled
        kl_coef=0.001,  # how much the policy is held to the model that it began as
        temperature=TEMPERATURE,
        minibatches=1,
    ),
    token_budget=4096,  # what goes through the model at once: the memory knob
)


class Trainer:
    """A policy with everything that it takes to improve it.

    The engine samples from the weights that the learner moves. Both see token ids only, the same ones: what was sampled
    is never turned into text and back.
    """

    def __init__(self, checkpoint: str = "base", seed: int = 0) -> None:
        self.seed = seed
        self.environment = muarl.load_environment(ENVIRONMENT)
        policy = muarl.load_checkpoint(checkpoint, device="cpu")
        self.learner = muarl.TorchLearner(policy.model, policy.tokenizer, SETTINGS)
        self.engine = muarl.TorchEngine(policy.model, max_slots=TASKS * GROUP, max_context=CONTEXT, seed=seed)
        self.agent = muarl.SampledAgent.of(
            self.engine, policy.tokenizer, turn_tokens=TURN_TOKENS, context=CONTEXT, temperature=TEMPERATURE
        )

    async def play(self, step: int) -> list[muarl.Episode]:
        """Draw the step's tasks and play a group of conversations about each. They come back scored."""
        tasks = self.environment.make_tasks("train", TASKS, seed=self.seed, start=step * TASKS)
        return await muarl.play_tasks(
            self.environment,
            self.agent,
            tasks,
            rollouts=GROUP,
            seed=self.seed,
            label=f"step {step}",
            limits=muarl.Limits(turns=TURNS),
        )

    async def learn(self, episodes: Sequence[muarl.Episode]) -> dict[str, float]:
        """One update. Returns its metrics: loss, gradient norm, entropy, divergence, ...

        The advantage of an episode is its reward minus its group's mean, divided by the group's standard deviation. A
        group in which all were equally good teaches nothing and is left out.
        """
        samples = muarl.group_samples(episodes)
        if not samples:
            return {}
        metrics = self.learner.policy_step(samples)
        await self.engine.update(self.learner.weights, self.learner.version)
        return metrics

    async def train(self, steps: int) -> None:
        """Play, learn, and print a line about each step."""
        for step in range(steps):
            started = time.perf_counter()
            episodes = await self.play(step)
            played = time.perf_counter()
            metrics = await self.learn(episodes)
            learned = time.perf_counter()
            print(
                f"step {step:3}  success {fmean(e.reward for e in episodes):5.1%}"
                f"  loss {metrics.get('loss', 0.0):8.5f}  gradient {metrics.get('grad_norm', 0.0):6.3f}"
                f"  entropy {metrics.get('entropy', 0.0):5.3f}"
                f"  {played - started:4.1f} s playing, {learned - played:4.1f} s learning",
                flush=True,
            )


async def main(steps: int, checkpoint: str, seed: int, eval_tasks: int) -> None:
    """Train, and measure on tasks that were not trained on, before and after."""
    trainer = Trainer(checkpoint, seed)
    for steps_made in (0, steps):
        if steps_made:
            await trainer.train(steps_made)
        if eval_tasks:
            report = await muarl.evaluate(trainer.environment, trainer.agent, eval_tasks)
            low, high = report.success.interval
            print(f"after {steps_made} steps: success {report.success.value:.1%} ({low:.1%} to {high:.1%})", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a tiny agent by GRPO.")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--checkpoint", default="base", help="a run, a checkpoint folder, or `base`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eval-tasks", type=int, default=100, help="tasks to measure on before and after; 0: none")
    options = parser.parse_args()
    asyncio.run(main(options.steps, options.checkpoint, options.seed, options.eval_tasks))
