#!/usr/bin/env bash
# Run a command where no GL library can be found: scripts/without_gl.sh make demo
# The libraries are hidden in a mount namespace of the command's own; nothing is removed.
set -eu

if [ $# = 0 ]; then
    echo "Type: $0 COMMAND ..., as in: $0 make demo"
    exit 2
fi
if [ "${WITHOUT_GL:-}" != inside ]; then
    unshare -m true 2>/dev/null ||
        { echo "Hiding libraries needs root and mount namespaces. Type: sudo $0 $*"; exit 1; }
    WITHOUT_GL=inside exec unshare -m bash "$0" "$@"
fi
unset WITHOUT_GL

work=/mnt
mount -t tmpfs none "$work"
number=0
for folder in $(ldconfig -p | sed -n 's|.*=> \(.*\)/[^/]*$|\1|p' | xargs -n1 realpath | sort -u); do
    number=$((number + 1))
    hidden="$work/$number/hidden"
    mkdir -p "$hidden" "$work/$number/work"
    for name in "$folder"/lib{GL,EGL,OpenGL,OSMesa,glapi,gallium,gbm,glfw}*.so* "$folder/dri"; do
        # To an overlay a device 0, 0 is a file that was removed.
        [ -e "$name" ] && mknod "$hidden/${name##*/}" c 0 0
    done
    [ -n "$(ls -A "$hidden")" ] || continue
    mount -t overlay none "$folder" \
        -o "lowerdir=$folder,upperdir=$hidden,workdir=$work/$number/work"
done
# Those that come with Python packages.
find .venv -name 'libglfw*.so*' 2>/dev/null | while read -r name; do
    mount --bind /dev/null "$name"
done
# Debian's Xvfb needs libGL: where there is none it is not installed.
if name=$(command -v Xvfb); then
    mount --bind /dev/null "$(realpath "$name")"
fi
ldconfig -C "$work/ld.so.cache" 2>/dev/null || true
mount --bind "$work/ld.so.cache" /etc/ld.so.cache

if ldconfig -p | grep -E 'lib(GL|EGL|OSMesa|OpenGL)[.X]'; then
    echo "These GL libraries are still found: tell this script where they are."
    exit 1
fi
unset DISPLAY MUJOCO_GL MANIPLE_GL
exec "$@"
