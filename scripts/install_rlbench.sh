#!/usr/bin/env bash
# Install PyRep and RLBench, from sources, into the Python that maniple runs with.
# Usage: bash scripts/install_rlbench.sh [python]
#   RLBENCH_SOURCE, PYREP_SOURCE    a folder, archive or git address instead of the usual ones
# RLBench's licence allows non-commercial research; it is never a part of maniple.
set -eu

case "${1:-}" in
    -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "There is no option $1. Type: bash $0 --help" >&2; exit 2 ;;
esac

fail() { echo "$@" >&2; exit 1; }

here=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-$here/.venv/bin/python}
[ -x "$(command -v "$python")" ] || fail "$python is no Python. Type: bash $0 <python>"
: "${COPPELIASIM_ROOT:=$HOME/CoppeliaSim_Edu_V4_1_0_Ubuntu20_04}"
[ -e "$COPPELIASIM_ROOT/libcoppeliaSim.so" ] ||
    fail "CoppeliaSim is not at $COPPELIASIM_ROOT. Type: bash scripts/install_coppeliasim.sh"
command -v gcc >/dev/null || fail "A C compiler is needed. Type: apt-get install build-essential"

# The commits that were measured: PyRep 4.1.0.3 and RLBench 1.2.0.
pyrep=${PYREP_SOURCE:-git+https://github.com/stepjam/PyRep.git@8f420be}
rlbench=${RLBENCH_SOURCE:-git+https://github.com/stepjam/RLBench.git@02720bba}

export COPPELIASIM_ROOT
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$COPPELIASIM_ROOT
export QT_QPA_PLATFORM_PLUGIN_PATH=$COPPELIASIM_ROOT
install() { "$python" -m pip install --disable-pip-version-check -c "$here/constraints.txt" "$@"; }

# Their pins (cffi 1.14, gymnasium 1.0 alpha) are older than this Python; newer ones are known to work.
install setuptools wheel cffi scipy natsort pyquaternion pillow
install --no-deps --no-build-isolation "$pyrep"
install --no-deps --no-build-isolation "$rlbench"
echo "Done. Check with: COPPELIASIM_ROOT=$COPPELIASIM_ROOT maniple doctor"
