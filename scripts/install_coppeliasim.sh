#!/usr/bin/env bash
# Download and unpack CoppeliaSim Edu 4.1.0, the version that RLBench works with.
# Usage: bash scripts/install_coppeliasim.sh [folder]
#   COPPELIASIM_ARCHIVE=<file>    use an archive that is here already
#   COPPELIASIM_SHA256=<sum>      what its SHA-256 must be
# CoppeliaSim Edu has a licence of its own: education and research. Read it before you go on.
set -eu

case "${1:-}" in
    -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "There is no option $1. Type: bash $0 --help" >&2; exit 2 ;;
esac

name=CoppeliaSim_Edu_V4_1_0_Ubuntu20_04
url=https://downloads.coppeliarobotics.com/V4_1_0/$name.tar.xz
root=$(realpath --canonicalize-missing "${1:-$HOME/$name}")
# The publisher gives no checksum for this version. What can be checked is checked: that the archive
# is whole (xz carries a checksum of its content), that it is not a stub, and that it is 4.1.0.
least_bytes=50000000

say() { echo "$@" >&2; }
fail() { say "$@"; exit 1; }

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "CoppeliaSim 4.1.0 is for Linux on x86_64 only."
for tool in tar xz sha256sum; do
    command -v $tool >/dev/null || fail "$tool is missing. Type: apt-get install tar xz-utils coreutils"
done

if [ -e "$root/libcoppeliaSim.so" ]; then
    say "$root is there already."
else
    [ ! -e "$root" ] || fail "$root exists, but is no CoppeliaSim. Give another folder: bash $0 <folder>"
    archive=${COPPELIASIM_ARCHIVE:-}
    if [ -z "$archive" ]; then
        archive=$root.tar.xz
        say "Downloading $url ..."
        if command -v curl >/dev/null; then
            curl --fail --location --continue-at - --output "$archive.part" "$url" ||
                fail "The download failed. Get the file with a browser, then type: COPPELIASIM_ARCHIVE=<file> bash $0"
        elif command -v wget >/dev/null; then
            wget --continue --output-document "$archive.part" "$url" ||
                fail "The download failed. Get the file with a browser, then type: COPPELIASIM_ARCHIVE=<file> bash $0"
        else
            fail "Neither curl nor wget is here. Type: apt-get install curl"
        fi
        mv "$archive.part" "$archive"
    fi
    [ -f "$archive" ] || fail "$archive is no file."
    size=$(stat --format %s "$archive")
    [ "$size" -ge $least_bytes ] ||
        fail "$archive has only $size bytes: it is not the whole archive. Remove it and try again."
    sum=$(sha256sum "$archive" | cut --delimiter ' ' --fields 1)
    say "SHA-256 of the archive: $sum"
    if [ -n "${COPPELIASIM_SHA256:-}" ]; then
        [ "$sum" = "$COPPELIASIM_SHA256" ] || fail "It should be $COPPELIASIM_SHA256."
    else
        say "(The publisher gives none to compare with. Keep this one, and set COPPELIASIM_SHA256 next time.)"
    fi
    xz --test "$archive" || fail "$archive is damaged. Remove it and try again."
    # Unpacked under a passing name: a folder with the right name is a whole one.
    rm -rf "$root.part"
    mkdir -p "$root.part"
    tar --extract --file "$archive" --directory "$root.part" --strip-components 1
    [ -e "$root.part/libcoppeliaSim.so" ] || fail "The archive has no libcoppeliaSim.so: it is not CoppeliaSim."
    mv "$root.part" "$root"
fi

# PyRep's extension asks for this name.
[ -e "$root/libcoppeliaSim.so.1" ] || ln -s libcoppeliaSim.so "$root/libcoppeliaSim.so.1"

header=$root/programming/include/simConst.h
if [ -f "$header" ]; then
    found=$(sed -n 's/^#define[[:space:]]*SIM_PROGRAM_VERSION_NB[[:space:]]*\([0-9]*\).*/\1/p' "$header" | head -n 1)
    [ -z "$found" ] || [ "$found" = 40100 ] || fail "$root is version $found, not 40100 (4.1.0)."
fi

say ""
say "Add these lines to ~/.bashrc:"
echo "export COPPELIASIM_ROOT=$root"
say ""
say "(maniple sets LD_LIBRARY_PATH and Qt's variables for its workers; to use PyRep by itself, add)"
say "  export LD_LIBRARY_PATH=\$LD_LIBRARY_PATH:\$COPPELIASIM_ROOT"
say "  export QT_QPA_PLATFORM_PLUGIN_PATH=\$COPPELIASIM_ROOT"
say "Next: bash scripts/install_rlbench.sh"
