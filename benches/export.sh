#!/usr/bin/env bash
# Measures `dptrace export` of a trace of ten million slots: seconds, CPU time, memory, and what it writes.
# Usage: benches/export.sh [RUNS]        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

dptrace=${DPTRACE:-$PWD/target/dist/dptrace}
generate=${GEN_TRACE:-$PWD/target/dist/gen-trace}
[[ -n ${DPTRACE:-} && -n ${GEN_TRACE:-} ]] || cargo build --profile dist --quiet -p dptrace -p testkit
load=(--era F --records 16777216 --lcores 4 --qpairs 64 --connections 2000 --no-bdev --fill 60)
"$generate" "${load[@]}" --out "$dir/big.trace"

for ((run = 0; run < runs; run++)); do
    rm -rf "$dir/tables"
    /usr/bin/time -f '%e s, %U s + %S s of CPU, %M KiB' "$dptrace" export "$dir/big.trace" --parquet "$dir/tables" \
        --at 2026-11-23T06:32:00Z 2>"$dir/errors" >"$dir/out"
    tail -n 1 "$dir/errors"
done
cat "$dir/out"
rm -rf "$dir/tables"
/usr/bin/time -f 'requests alone: %e s, %M KiB' "$dptrace" export "$dir/big.trace" --parquet "$dir/tables" \
    --at 2026-11-23T06:32:00Z --tables requests,request_stages,stage_histograms >"$dir/out" 2>"$dir/errors"
tail -n 1 "$dir/errors"
