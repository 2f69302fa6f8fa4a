#!/usr/bin/env bash
# Compares whole runs of dptrace with the tools that it stands in for, on one generated file, in one go.
# Usage: benches/compare.sh [RUNS]        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-5}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cargo build --profile dist --quiet -p dptrace -p testkit
dptrace=$PWD/target/dist/dptrace
slots=2097152
load=(--records $slots --lcores 4 --qpairs 64 --connections 10000)
# Era F, which SPDK's master reads: one slot a record; the same with the bdev layer's records of several slots and with
# relations. And era C, where every request's record points to its qpair.
target/dist/gen-trace --era F "${load[@]}" --no-bdev --fill 200 --out "$dir/f.trace" --recording "$dir/f.recording"
target/dist/gen-trace --era F "${load[@]}" --out "$dir/bdev.trace"
target/dist/gen-trace --era C "${load[@]}" --no-bdev --fill 200 --out "$dir/c.trace" --recording "$dir/c.recording"
"$dptrace" trace -i "$dir/f.trace" --format json -o "$dir/f.json"
records=$("$dptrace" trace -i "$dir/f.trace" | wc -l)
megabytes=$(($(stat -c %s "$dir/f.json") / 1000000))
printf '%s slots in 4 lcores, wrapped: %s records; as JSON %s MB; shortest of %s runs, output to /dev/null\n\n' \
    $slots "$records" "$megabytes" "$runs"
printf '%-44s %9s %9s  %s\n' run seconds MiB rate

# measure NAME BYTES_OR_RECORDS UNIT COMMAND...: leaves the shortest time in $best.
measure() {
    local name=$1 amount=$2 unit=$3 run time peak=0
    shift 3
    best=
    for ((run = 0; run < runs; run++)); do
        /usr/bin/time -o "$dir/time" -f '%e %M' "$@" >/dev/null 2>"$dir/errors" || {
            tail -n 2 "$dir/errors"
            return 1
        }
        read -r time peak <"$dir/time"
        if [[ -z $best ]] || (($(echo "$time < $best" | bc))); then best=$time; fi
    done
    printf '%-44s %9s %9d  %s\n' "$name" "$best" $((peak / 1024)) \
        "$(echo "scale=1; $amount / 1000000 / $best" | bc) million $unit/s"
}
ratio() { printf '%-44s %9s\n' "  -> $1" "$(echo "scale=2; $2 / $3" | bc)"; }

measure "dptrace, text" "$records" records "$dptrace" trace -i "$dir/f.trace"
text=$best
bdev=$("$dptrace" trace -i "$dir/bdev.trace" | wc -l)
measure "dptrace, text, with bdev records" "$bdev" records "$dptrace" trace -i "$dir/bdev.trace"
measure "dptrace, JSON" "$records" records "$dptrace" trace -i "$dir/f.trace" --format json
json=$best
measure "dptrace, text from JSON" $((megabytes * 1000000)) bytes "$dptrace" trace -i "$dir/f.json"
from_json=$best
measure "dptrace, latency" "$records" records "$dptrace" latency -i "$dir/f.trace"

measure "dptrace, era C, text" "$records" records "$dptrace" trace -i "$dir/c.trace"
plain=$best
measure "dptrace, era C, annotated, 10,000 objects" "$records" records \
    "$dptrace" trace -i "$dir/c.trace" -b "$dir/c.recording"
ratio "annotated / not annotated" "$best" "$plain"

if [[ -n ${SPDK_TRACE:-} ]]; then
    measure "spdk_trace, text" "$records" records "$SPDK_TRACE" -f "$dir/f.trace"
    ratio "spdk_trace / dptrace, text" "$best" "$text"
    measure "spdk_trace, JSON" "$records" records "$SPDK_TRACE" -j -f "$dir/f.trace"
    ratio "spdk_trace / dptrace, JSON" "$best" "$json"
fi
if [[ -n ${SPDK_DIR:-} ]]; then
    runs=1
    cd "$SPDK_DIR"
    # The script takes a JSON file of this size for a raw one, but reads it from standard input.
    # It breaks on a comma in a host NQN, so it gets an empty recording.
    measure "SPDK's annotation script, from JSON" $((megabytes * 1000000)) bytes \
        bash -c "SPDK_BPF_TRACE_PY=1 python3 scripts/bpf/trace.py -b /dev/null <'$dir/f.json'"
    ratio "script / dptrace, text from JSON" "$best" "$from_json"
fi
