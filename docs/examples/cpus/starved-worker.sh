#!/bin/sh
# A thread with a real-time policy polls on a CPU. Work that the kernel has bound to that CPU waits for it: reading
# /proc/sys/vm/stat_refresh queues some on each CPU, and ends when all of it is done.
#
#     docs/examples/cpus/starved-worker.sh [CPU] [SECONDS]
. "$(dirname "$0")/common.sh"

# The spinner is ended from another CPU: a timeout of the same priority, on the same CPU, would never run.
taskset -c "$cpu" chrt --fifo 1 sh -c 'while :; do :; done' &
spinner=$!
# Whatever happens to this script, the spinner ends.
(sleep $((seconds + 2)) && kill -KILL "$spinner" 2> /dev/null) &
guard=$!
trap 'kill -KILL "$spinner" "$guard" 2> /dev/null' EXIT INT TERM
echo "process $spinner polls on CPU $cpu with SCHED_FIFO, for $seconds s"

end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$end" ]; do
    began=$(date +%s%N)
    timeout "$((seconds + 3))" cat /proc/sys/vm/stat_refresh > /dev/null &
    reader=$!
    while kill -0 "$reader" 2> /dev/null && [ "$(date +%s)" -lt "$end" ]; do sleep 0.05; done
    kill -0 "$reader" 2> /dev/null && kill -KILL "$spinner"
    wait "$reader"
    echo "work on each CPU was done after $((($(date +%s%N) - began) / 1000000)) ms"
done
