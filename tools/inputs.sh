#!/bin/sh
# Keeps a list of inputs with their checksums, and rewrites it only when something in it changed.
# Why: make compares times, so it misses a deleted file and a changed variable, and rebuilds after every checkout.
# A target that depends on such a list is remade exactly when its inputs differ.
#
#   tools/inputs.sh LIST [--product PATH]... [--value NAME=VALUE]... FILE_OR_FOLDER...
#
# A product that is gone counts as a change, so that deleting it is enough to have it made again.
set -eu

list=$1
shift
mkdir -p "$(dirname "$list")"
new=$(mktemp "$list.XXXXXX")
trap 'rm -f "$new"' EXIT
gone=

while [ $# -gt 0 ]; do
    case $1 in
        --product) [ -e "$2" ] || gone="$gone $2"; shift 2 ;;
        --value) printf '%s\n' "$2" >>"$new"; shift 2 ;;
        *) break ;;
    esac
done

for path in "$@"; do
    [ -e "$path" ] || continue
    find "$path" \( -name __pycache__ -o -name .ipynb_checkpoints -o -name '.*_cache' \) -prune -o \
        -type f -exec cksum {} +
done | LC_ALL=C sort >>"$new"

if [ -n "$gone" ] || ! cmp -s "$new" "$list"; then
    mv "$new" "$list"
fi
