"""How reinforcement learning takes its steps: rollout and update in turns, or rollouts that run ahead."""
