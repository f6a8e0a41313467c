#!/usr/bin/env bash
# Learn a task from pictures; actors that are started with run_actor.sh send the steps. Edit, then run.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/maniple train drq --learner --task PiperMobileRobot-v0 --ip localhost \
    --demos 20 --max-minutes 60 --run-dir runs/piper "$@"
