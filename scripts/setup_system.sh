#!/usr/bin/env bash
# Install what makes maniple fast, where that is allowed; else say what to type.
# Nothing here is required: without GL libraries maniple draws with MuJoCo's ray caster, and without
# a C compiler numpy does what would have been compiled.
set -u

missing=""
has_library() { ldconfig -p 2>/dev/null | grep -q "$1"; }
has_library libEGL.so.1 || missing="$missing libegl1"
has_library libGL.so.1 || missing="$missing libgl1"
command -v cc >/dev/null || missing="$missing gcc libc6-dev"
headers='import os, sysconfig as s, sys; sys.exit(not os.path.exists(s.get_path("include") + "/Python.h"))'
"${PYTHON:-python3}" -c "$headers" || missing="$missing python3-dev"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing$missing ..."
    if apt-get update -qq >/dev/null 2>&1 &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null 2>&1; then
        exit 0
    fi
fi
echo "To be faster type: sudo apt-get install$missing   (going on without)"
