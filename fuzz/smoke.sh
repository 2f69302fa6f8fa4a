#!/usr/bin/env bash
# Runs every fuzz target for some seconds, on its seeds and what comes of them: fuzz/smoke.sh [SECONDS]
#
# It is part of `cargo xtask deep fuzz`, to find what is easily found; .ci/run only compiles the targets. Compilers that are not nightly take
# the flags of the coverage with RUSTC_BOOTSTRAP.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTC_BOOTSTRAP=1

# One target: fuzz/smoke.sh SECONDS TARGET, once all are built.
smoke() {
    local seconds=$1 target=$2 found said status=0
    local limits=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 -verbosity=0 -print_final_stats=1) seeds=()
    case $target in
    raw_structured) limits+=(-max_len=512 -len_control=0) ;;
    debug_info) limits+=(-max_len=1024 -len_control=0) ;;
    raw) limits+=(-max_len=16384) ;;
    esac
    found=$(mktemp -d)
    [[ -d fuzz/seeds/$target ]] && seeds=("fuzz/seeds/$target")
    said=$(cargo fuzz run --sanitizer none "$target" "$found" "${seeds[@]}" -- "${limits[@]}" 2>&1) || status=$?
    if ((status != 0)); then
        printf '%s\nfuzz target %s found something\n' "$said" "$target" >&2
        exit 1
    fi
    printf '%-16s %s runs\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' <<<"$said")"
    rm -rf "$found"
}

if (($# == 2)); then
    smoke "$@"
    exit
fi
command -v cargo-fuzz >/dev/null || cargo install --quiet --debug --locked cargo-fuzz
# Not fully optimized: the targets are compiled in half the time, and a few seconds find as much.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
built=$(cargo fuzz build --sanitizer none 2>&1) || { printf '%s\n' "$built" >&2; exit 1; }
tail -1 <<<"$built"
# As many at once as there are CPUs; after one that finds something, no more are begun.
cargo fuzz list | xargs -P "$(nproc)" -I{} bash -c '"$0" "$@" || exit 255' "$PWD/fuzz/smoke.sh" "${1:-5}" {}
