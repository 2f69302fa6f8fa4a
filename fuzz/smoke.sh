#!/usr/bin/env bash
# Runs every fuzz target for some seconds, on its seeds and what comes of them: fuzz/smoke.sh [SECONDS]
#
# It is part of .ci/run, to keep the targets alive and to find what is easily found. Compilers that are not nightly take
# the flags of the coverage with RUSTC_BOOTSTRAP.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-5}
export RUSTC_BOOTSTRAP=1

command -v cargo-fuzz >/dev/null || cargo install --quiet --debug --locked cargo-fuzz
cargo fuzz build --sanitizer none 2>&1 | tail -1
for target in $(cargo fuzz list); do
    limits=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 -verbosity=0 -print_final_stats=1)
    case $target in
    raw_structured) limits+=(-max_len=512 -len_control=0) ;;
    debug_info) limits+=(-max_len=1024 -len_control=0) ;;
    raw) limits+=(-max_len=16384) ;;
    esac
    found=$(mktemp -d)
    seeds=()
    [[ -d fuzz/seeds/$target ]] && seeds=("fuzz/seeds/$target")
    if ! said=$(cargo fuzz run --sanitizer none "$target" "$found" "${seeds[@]}" -- "${limits[@]}" 2>&1); then
        printf '%s\n' "$said" >&2
        echo "fuzz target $target found something" >&2
        exit 1
    fi
    printf '%-16s %s runs\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' <<<"$said")"
    rm -rf "$found"
done
