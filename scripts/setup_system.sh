#!/usr/bin/env bash
# Install what makes maniple fast, where that is allowed; else say what to type.
# Nothing here is required: GL libraries draw only what the renderer of primitives cannot (meshes,
# textures), and without a compiler numpy does what would have been compiled.
set -u

missing=""
has_library() { ldconfig -p 2>/dev/null | grep -q "$1"; }
has_library libEGL.so.1 || missing="$missing libegl1"
has_library libGL.so.1 || missing="$missing libgl1"
command -v cc >/dev/null || missing="$missing gcc libc6-dev"
command -v c++ >/dev/null || missing="$missing g++"
# The headers of the Python that will be used, as its package is called: python3.11-dev.
headers="$("${PYTHON:-python3}" -c 'if True:
    import os, sys, sysconfig
    is_there = os.path.exists(sysconfig.get_path("include") + "/Python.h")
    print("" if is_there else f" python{sys.version_info[0]}.{sys.version_info[1]}-dev")')"
missing="$missing$headers"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing$missing ..."
    apt-get update -qq >/dev/null 2>&1
    wanted=$missing
    missing=""
    for package in $wanted; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null 2>&1 ||
            missing="$missing $package"
    done
    [ -z "$missing" ] && exit 0
fi
echo "To be faster type: sudo apt-get install$missing   (going on without)"
