#!/usr/bin/env python3
"""What `dptrace top` takes of a CPU and of memory, with 1,000 connections, on its screen and as JSON.

Usage: benches/top.py [SECONDS]        (see benches/README.md)

A target with 1,000 connections runs on CPU 0 at several rates. `top` runs beside it on a terminal of 120 columns and 40 lines, and then
with --json, which states what share of the records was read. Its CPU time is that of its process, from the 5th second on, without what
it takes to find the connections; its memory is the highest that it had. With --cpus the CPUs of the target's pollers are audited, too. The last rows read all records: what reading alone costs.
"""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time

from demo import DPTRACE, start_target

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 15.0
# Seconds until all lines are known and the pace is found.
READY = 5.0
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def highest_memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def drain(terminal):
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        # The other end is gone.
        pass


def start_top(target, options):
    command = [DPTRACE, "top", "-p", str(target.pid), *options]
    if "--json" in options:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    top = subprocess.Popen(command, stdin=its, stdout=its, stderr=subprocess.DEVNULL, env=environment, start_new_session=True)
    os.close(its)
    threading.Thread(target=drain, args=(ours,), daemon=True).start()
    return top


def measure(target, options):
    """CPU time as a share, memory in MiB, and of JSON also slots a second, share read, requests a second."""
    top = start_top(target, options)
    seconds = []
    if top.stdout:
        reader = threading.Thread(target=lambda: seconds.extend(json.loads(line) for line in top.stdout), daemon=True)
        reader.start()
    time.sleep(READY)
    before, began, had = cpu_seconds(top.pid), time.monotonic(), len(seconds)
    time.sleep(SECONDS)
    share = (cpu_seconds(top.pid) - before) / (time.monotonic() - began)
    memory = highest_memory(top.pid)
    traces = [(it["trace"], it["connections"]) for it in seconds[had:] if it["trace"]]
    top.terminate()
    top.wait()
    length = max(sum(trace["seconds"] for trace, _ in traces), 1e-9)
    written = sum(trace["slots_written"] for trace, _ in traces)
    read = sum(trace["slots_read"] for trace, _ in traces) / max(written, 1)
    connections = max((len(all_) for _, all_ in traces), default=0)
    return share, memory, written / length, read, connections


def main():
    print(f"{'rate':>8} {'options':32} {'CPU':>7} {'VmHWM':>9} {'slots/s':>10} {'read':>6} {'connections':>11}")
    for rate in (1000, 8000, 80000):
        target = start_target("--rate", str(rate), "--connections", "1000", "--life", "1000000")
        time.sleep(1)
        kinds = [[], ["--cpus"], ["--json"], ["--json", "--no-kernel"], ["--json", "--no-probes"], ["--json", "--all-records"]]
        for options in kinds:
            cpu, memory, written, read, connections = measure(target, options)
            of_trace = f"{written:10.0f} {read:6.1%} {connections:11}" if "--json" in options else ""
            print(f"{rate:8} {' '.join(options) or '(the screen)':32} {cpu:7.2%} {memory:5.1f} MiB {of_trace}", flush=True)
        target.terminate()
        target.wait()


main()
