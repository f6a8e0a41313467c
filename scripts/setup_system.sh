#!/usr/bin/env bash
# Install the system libraries that drawing needs, where that is allowed; else say what to type.
# Nothing here is required: without GL libraries maniple draws with MuJoCo's ray caster.
set -u

missing=""
has_library() { ldconfig -p 2>/dev/null | grep -q "$1"; }
has_library libEGL.so.1 || missing="$missing libegl1"
has_library libGL.so.1 || missing="$missing libgl1"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing$missing ..."
    if apt-get update -qq >/dev/null 2>&1 &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null 2>&1; then
        exit 0
    fi
fi
echo "For fast rendering type: sudo apt-get install$missing   (going on without: slower pictures)"
