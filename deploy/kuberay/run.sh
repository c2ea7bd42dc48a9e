#!/usr/bin/env bash
# What the RayJob runs: train a preset, or go on with its run if there is a checkpoint. Arguments: PRESET [ARGUMENTS ...].
# `sft PRESET [ARGUMENTS ...]` is the cold start instead, in the run PRESET-cold.
set -euo pipefail
recipe=train
if [ "$1" = sft ]; then
  recipe=sft
  shift
fi
preset=$1
shift
run=$preset
checkpoints=checkpoints/rl
if [ "$recipe" = sft ]; then
  run=$preset-cold
  checkpoints=checkpoints
  set -- --name "$run" "$@"
fi
if compgen -G "runs/$run/$checkpoints/step-*" > /dev/null; then
  exec muarl "$recipe" --resume "runs/$run" --cluster auto
fi
muarl "$recipe" --config "$preset" --cluster auto --dry-run "$@" > "$run.yaml"
exec muarl "$recipe" --config "$preset" --cluster auto "$@"
