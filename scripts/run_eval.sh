#!/usr/bin/env bash
# Judge what run_learner.sh has learned, and film the best and the worst episode. Edit, then run.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/maniple eval --checkpoint-path runs/piper --num-envs 4 --episodes 50 "$@"
