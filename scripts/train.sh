#!/usr/bin/env bash
# The three-phase pipeline with the argument order that its users know:
#   scripts/train.sh [phase=teacher] [num_gpus=1] [num_envs=1] [further arguments]
set -euo pipefail

usage() {
  echo "usage: train.sh [teacher|student|adversarial] [num_gpus] [num_envs] [further arguments]" >&2
  echo "also:  phase1 wm, phase2 explorer, phase3 adv" >&2
  exit 1
}

phase=teacher
case "${1:-}" in
  teacher|phase1|wm|student|phase2|explorer|adversarial|phase3|adv) phase=$1; shift ;;
  ''|[0-9]*|-*) ;;
  *) echo "train.sh: there is no phase '$1'" >&2; usage ;;
esac

num_gpus=1 num_envs=1
if [[ "${1:-}" =~ ^[0-9]+$ ]]; then num_gpus=$1; shift; fi
if [[ "${1:-}" =~ ^[0-9]+$ ]]; then num_envs=$1; shift; fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
maniple=$(command -v "$here/.venv/bin/maniple" || command -v maniple) || {
  echo "train.sh: maniple is not installed. Type: make setup" >&2; exit 1; }
exec "$maniple" train "$phase" "$num_gpus" "$num_envs" "$@"
