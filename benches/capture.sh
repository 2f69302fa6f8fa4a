#!/usr/bin/env bash
# What `dptrace capture` costs the target, beside `perf sched record`.
# Usage: benches/capture.sh [ROUNDS] [SECONDS]        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} seconds=${2:-3}
dir=$(mktemp -d)
started=
# Only what was started here is ended.
trap '[[ -z $started ]] || kill "$started" 2>/dev/null; rm -rf "$dir"' EXIT

. benches/binary.sh
median() { sort -g "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
has_perf=
perf sched record -o "$dir/try" -- true >/dev/null 2>&1 && has_perf=1

# One run of the target at its highest rate on CPU 0: its requests a second, with what runs beside it. With --inject it writes to
# its ring as SPDK does, in memory, and not by system calls, each of which would be an event; nothing is injected in that time.
target() {
    taskset -c 0 "$DPTRACE" demo-target --flat-out --life 1000 --inject own --inject-every 1m --for "${seconds}s" \
        --truth "$dir/truth" 2>"$dir/said" &
    started=$!
    until grep -q 'demo-target: pid' "$dir/said"; do sleep 0.01; done
    rm -rf "$dir/capture"
    case $1 in
    none) ;;
    capture) "$DPTRACE" capture -p "$started" -o "$dir/capture" 2>"$dir/notes" ;;
    trace) "$DPTRACE" capture -p "$started" --no-kernel -o "$dir/capture" 2>"$dir/notes" ;;
    perf) taskset -c "$(($(nproc) - 1))" perf sched record -a -o "$dir/perf" -- sleep "$seconds" >/dev/null 2>&1 || true ;;
    esac
    wait "$started" || true
    started=
    local requests
    requests=$(grep -o '"requests_completed": *[0-9]*' "$dir/truth" | grep -o '[0-9]*$')
    echo $((requests / seconds)) >>"$dir/$1.rates"
    [[ $1 != capture ]] || grep 'lost\|not captured' "$dir/notes" >>"$dir/came"
}

kinds=(none capture trace)
[[ -z $has_perf ]] || kinds+=(perf)
for ((round = 0; round < rounds; round++)); do
    for kind in "${kinds[@]}"; do target "$kind"; done
done
echo "requests a second of the demo target at its highest rate, pinned to CPU 0, medians of $rounds runs of $seconds s in turns:"
base=$(median "$dir/none.rates")
for kind in "${kinds[@]}"; do
    rate=$(median "$dir/$kind.rates")
    case $kind in
    none) what="alone" ;;
    capture) what="dptrace capture" ;;
    trace) what="dptrace capture --no-kernel" ;;
    perf) what="perf sched record -a" ;;
    esac
    printf '%-30s %10s %8s\n' "$what" "$rate" "$(awk "BEGIN { printf \"%+.2f %%\", 100 * ($rate - $base) / $base }")"
done
cat "$dir/came"
