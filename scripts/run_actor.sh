#!/usr/bin/env bash
# Step environments for the learner of run_learner.sh. Edit, then run, once or several times.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/maniple train drq --actor --task PiperMobileRobot-v0 --ip localhost --num-envs 4 "$@"
