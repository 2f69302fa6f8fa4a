#!/usr/bin/env bash
# What `dptrace trace --follow` loses at the rates of real reactors, and what it costs the target.
# Usage: benches/live.sh [ROUNDS] [SECONDS]        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} seconds=${2:-3}
dir=$(mktemp -d)
started=
# Only what was started here is ended.
trap '[[ -z $started ]] || kill "$started" 2>/dev/null; rm -rf "$dir" /dev/shm/bench_live_trace.*' EXIT

. benches/binary.sh
cargo build -q --profile dist -p testkit --bin write-live
write_live=${CARGO_TARGET_DIR:-target}/release/write-live
trace=/dev/shm/bench_live_trace.$$
last=$(($(nproc) - 1))
row() { printf '%-50s %14s %14s %14s %10s\n' "$@"; }
median() { sort -g "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# One run of a writer and a reader: what was written a second, what was written, and what was read of it.
one() {
    local pin=$1 how=$2
    shift 2
    # What the writer before this one said is not to be taken for this one's.
    : >"$dir/said"
    taskset -c "$pin" "$write_live" --out "$trace" --millis $((seconds * 1000)) "$@" >"$dir/wrote" 2>"$dir/said" &
    started=$!
    until grep -q writes "$dir/said"; do sleep 0.01; done
    # shellcheck disable=SC2086 # options, one a word
    "$DPTRACE" trace --follow -i "$trace" $how -o /dev/null 2>"$dir/notes"
    wait "$started"
    started=
    read -r _ _ wrote a_second _ < <(grep '^all' "$dir/wrote")
    read=$(grep -o 'shown of [0-9]* read' "$dir/notes" | cut -d' ' -f3)
    wrote=${wrote%,}
}

echo "records read along, of $rounds runs of $seconds s the one that lost least (the writer on CPU 0, as many lcores as said):"
row "" "a second" written lost "in %"
try() {
    local what=$1 pin=$2 how=$3 best=
    shift 3
    for ((round = 0; round < rounds; round++)); do
        one "$pin" "$how" "$@"
        if [[ -z $best || $((wrote - read)) -lt $best ]]; then
            best=$((wrote - read)) of=$wrote rate=$a_second
        fi
    done
    row "$what" "$rate" "$of" "$best" "$(awk "BEGIN { printf \"%.3f\", 100 * $best / $of }")"
}
none='--tpoint NONE'
for slots in 32768 4096; do
    for rate in 17000 250000 500000 750000 1000000 0; do
        what="$slots slots, $rate requests/s, read"
        [[ $rate != 0 ]] || what="$slots slots, as many as possible, read"
        try "$what" 0 "$none" --slots "$slots" --rate "$rate"
    done
done
for rate in 17000 100000 250000; do
    try "32768 slots, $rate requests/s, printed as text" 0 "" --slots 32768 --rate "$rate"
done
[[ $last -lt 2 ]] || try "32768 slots, 1000000 requests/s of $last lcores, read" "0-$((last - 1))" "$none" \
    --lcores "$last" --rate 1000000

echo
echo "requests a second of the demo target at its highest rate, pinned to CPU 0, medians of $rounds runs in turns:"
target() {
    taskset -c 0 "$DPTRACE" demo-target --flat-out --life 1000 --for "${seconds}s" --truth "$dir/truth" 2>"$dir/said" &
    started=$!
    until grep -q 'demo-target: pid' "$dir/said"; do sleep 0.01; done
    case $1 in
    none) ;;
    # As it is: it stays off CPU 0 by itself.
    free) "$DPTRACE" trace -p "$started" -o /dev/null 2>"$dir/notes" ;;
    # Where there is no other CPU.
    same) taskset -c 0 "$DPTRACE" trace -p "$started" -o /dev/null 2>"$dir/notes" ;;
    esac
    wait "$started" || true
    started=
    requests=$(grep -o '"requests_completed": *[0-9]*' "$dir/truth" | grep -o '[0-9]*$')
    echo $((requests / seconds)) >>"$dir/$1.rate"
}
for ((round = 0; round < rounds; round++)); do
    for how in none free same; do target "$how"; done
done
printf '%-50s %14s\n' "nobody reads" "$(median "$dir/none.rate")" "dptrace trace -p" "$(median "$dir/free.rate")" \
    "dptrace trace -p, on CPU 0 as well" "$(median "$dir/same.rate")"
