#!/usr/bin/env bash
# What kernel-delay costs: per system call in the traced process and in one that is not, to attach, in memory; beside
# bpftrace with an equivalent script, where that is installed. As root.
# Usage: benches/kernel-delay.sh [ROUNDS]        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-15}
dir=$(mktemp -d)
started=()
cleanup() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap cleanup EXIT

. benches/binary.sh

# The shortest of many rounds, in ns a call: a round that nothing came between.
cat >"$dir/load.c" <<'C'
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
int main(int argc, char **argv) {
    int pingpong = !strcmp(argv[1], "pingpong"), rounds = atoi(argv[2]), a[2], b[2];
    long calls = pingpong ? 5000 : 200000;
    cpu_set_t cpus;
    char byte = 0;
    double best = 1e18;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) || pipe(a) || pipe(b)) return 1;
    if (pingpong && !fork()) {
        close(a[1]);
        while (read(a[0], &byte, 1) == 1 && write(b[1], &byte, 1) == 1) {}
        _exit(0);
    }
    for (int round = 0; round < rounds; round++) {
        double begun = now();
        for (long i = 0; i < calls; i++)
            if (!pingpong) syscall(SYS_getppid);
            else if (write(a[1], &byte, 1) != 1 || read(b[0], &byte, 1) != 1) return 1;
        double each = (now() - begun) / calls;
        if (each < best) best = each;
    }
    close(a[1]);
    if (pingpong) wait(NULL);
    printf("%.1f\n", best);
}
C
cc -O2 -o "$dir/load" "$dir/load.c"

cat >"$dir/same.bt" <<'BT'
tracepoint:raw_syscalls:sys_enter /pid == TARGET/ { @start[tid] = nsecs; }
tracepoint:raw_syscalls:sys_exit /pid == TARGET && @start[tid]/ {
    $d = nsecs - @start[tid];
    @count[tid, args->id] = count(); @total[tid, args->id] = sum($d); @max[tid, args->id] = max($d);
    delete(@start[tid]);
}
tracepoint:sched:sched_switch /args->prev_pid == TARGET || args->next_pid == TARGET/ {
    @run[args->prev_pid] = sum(nsecs - @since[args->prev_pid]); @ready[args->next_pid] = sum(nsecs - @since[args->next_pid]);
    @since[args->prev_pid] = nsecs; @since[args->next_pid] = nsecs;
}
tracepoint:sched:sched_wakeup,tracepoint:sched:sched_wakeup_new /args->pid == TARGET/ { @since[args->pid] = nsecs; }
tracepoint:irq:irq_handler_entry /pid == TARGET/ { @hard[tid] = nsecs; }
tracepoint:irq:irq_handler_exit /pid == TARGET && @hard[tid]/ { @hardsum[tid, args->irq] = sum(nsecs - @hard[tid]); }
tracepoint:irq:softirq_entry /pid == TARGET/ { @soft[tid] = nsecs; }
tracepoint:irq:softirq_exit /pid == TARGET && @soft[tid]/ { @softsum[tid, args->vec] = sum(nsecs - @soft[tid]); }
BT

# A process that waits for a line and then runs the load: what looks at it is attached meanwhile.
# held LOAD: leaves its number in $held; `release` lets it go and waits for it.
held() {
    mkfifo "$dir/go"
    bash -c 'read -r _ <"$1/go"; exec "$1/load" "$2" "$3"' held "$dir" "$1" "$rounds" >"$dir/result" &
    held=$!
    started+=("$held")
}
release() {
    echo go >"$dir/go"
    wait "$held"
    rm "$dir/go"
}

# by_dptrace PID [OPTION]..., by_bpftrace PID: attach to that process, and leave the tracer's number in $tracer.
by_dptrace() {
    "$DPTRACE" kernel-delay -D -p "$1" --sample-time 600 --summary "${@:2}" >/dev/null 2>"$dir/notes" &
    tracer=$!
    started+=("$tracer")
    until grep -q 'window is open' "$dir/notes"; do sleep 0.01; done
}
by_bpftrace() {
    sed "s/TARGET/$1/g" "$dir/same.bt" >"$dir/now.bt"
    # It needs a tracefs, which is mounted for it alone.
    unshare -m sh -c 'mount -t tracefs nodev /sys/kernel/tracing; exec bpftrace "$0"' "$dir/now.bt" >"$dir/notes" 2>&1 &
    tracer=$!
    started+=("$tracer")
    until grep -q Attaching "$dir/notes"; do sleep 0.01; done
    sleep 2
}
end_tracer() {
    kill -INT "$tracer" 2>/dev/null || true
    wait "$tracer" || true
}

printf '%-10s %-12s %10s %10s %12s\n' load tracer bare traced 'not traced'
for load in getppid pingpong; do
    bare=$("$dir/load" $load "$rounds")
    for tool in dptrace bpftrace; do
        command -v $tool >/dev/null || [[ $tool == dptrace ]] || continue
        held $load
        by_$tool "$held"
        release
        traced=$(cat "$dir/result")
        end_tracer
        sleep 600 &
        bystander=$!
        started+=("$bystander")
        by_$tool "$bystander"
        other=$("$dir/load" $load "$rounds")
        end_tracer
        kill "$bystander"
        printf '%-10s %-12s %7s ns %7s ns %9s ns\n' $load $tool "$bare" "$traced" "$other"
    done
done

# What stacks cost, and what a threshold that no call reaches saves of that; and several processes instead of one.
for options in '-s' '-s --stack-copy 0' '-s --stack-trace-size 0' '-s 1000000' '--children'; do
    held getppid
    # shellcheck disable=SC2086
    by_dptrace "$held" $options
    release
    printf '%-10s %-32s %7s ns\n' getppid "traced, $options" "$(cat "$dir/result")"
    end_tracer
done

echo
sleep 600 &
idle=$!
started+=("$idle")
for run in 1 2 3; do
    /usr/bin/time -o "$dir/time" -f '%e s, %M KiB' "$DPTRACE" kernel-delay -D -p $idle --sample-time 0.5 >/dev/null 2>"$dir/notes"
    printf 'start to attached: %s us; a run of 0.5 s: %s\n' "$(sed -n 's/.*attached in \([0-9]*\) us/\1/p' "$dir/notes")" "$(cat "$dir/time")"
done
