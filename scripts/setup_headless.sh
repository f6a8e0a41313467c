#!/usr/bin/env bash
# Install the system packages with which CoppeliaSim draws on a machine without a screen.
# Usage: bash scripts/setup_headless.sh [--print]
set -eu

case "${1:-}" in
    --print) ;;
    -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "There is no option $1. Type: bash $0 --help" >&2; exit 2 ;;
esac

packages="xvfb xauth xz-utils libgl1 libgl1-mesa-dri libglx-mesa0 libegl1 libglib2.0-0 libdbus-1-3
libfontconfig1 libxkbcommon-x11-0 libx11-xcb1 libxcb-icccm4 libxcb-image0 libxcb-keysyms1
libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-shm0 libxcb-sync1 libxcb-xfixes0
libxcb-xinerama0 libxcb-xkb1 libxrender1 libxi6 libsm6 libavcodec-extra libavformat-dev libswscale-dev"
packages=$(echo $packages)

if [ "${1:-}" = --print ]; then
    echo "apt-get install -y $packages"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "This is no Debian or Ubuntu. Install what these packages hold: $packages" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "This needs root. Type: sudo bash $0" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Names differ between releases: one that is gone must not keep the others away.
missing=""
for package in $packages; do
    apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] || echo "Not installed, by these names at least:$missing"
command -v Xvfb >/dev/null || { echo "Xvfb is still missing." >&2; exit 1; }
echo "Done. Check with: maniple doctor"
