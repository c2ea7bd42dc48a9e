#!/usr/bin/env bash
# What the RayJob runs: train a preset, or go on with its run if there is a checkpoint. Arguments: PRESET [KEY=VALUE ...].
set -euo pipefail
preset=$1
shift
if compgen -G "runs/$preset/checkpoints/rl/step-*" > /dev/null; then
  exec muarl train --resume "runs/$preset" --cluster auto
fi
muarl train --config "$preset" --cluster auto --dry-run "$@" > "$preset.yaml"
exec muarl train --config "$preset" --cluster auto "$@"
