#!/usr/bin/env python3
"""What `dptrace capture` costs the target, beside `perf sched record`.

Usage: benches/capture.py [BLOCKS] [SECONDS]        (see benches/README.md)

One target runs at its highest rate on CPU 0 all the time. A block is a window of SECONDS for each kind of observer, in random
order. The rates of a block are compared with each other only, so that a machine whose speed changes over minutes changes the result
little. Printed is the median of the ratios of all blocks, and an interval that has the true median in 95 of 100 cases (bootstrap).
"""

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from demo import DPTRACE, start_target

BLOCKS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
LAST_CPU = str(os.cpu_count() - 1)
# Seconds until an observer is attached.
READY = 1.0


def written(target):
    """Slots that the target has written, and when (seconds)."""
    info = subprocess.run([DPTRACE, "trace", "--info", "--json", "-p", str(target.pid)], capture_output=True, check=True)
    return sum(lcore["written"] for lcore in json.loads(info.stdout)["lcores"]), time.monotonic()


def observers(target, folder):
    """The command of each kind."""
    capture = [DPTRACE, "capture", "-p", str(target.pid), "-o", f"{folder}/capture"]
    kinds = {"alone": None, "dptrace capture": capture, "dptrace capture --no-kernel": [*capture, "--no-kernel"]}
    kinds["a process that spins on the other CPU"] = ["taskset", "-c", LAST_CPU, "sh", "-c", "while :; do :; done"]
    perf = ["taskset", "-c", LAST_CPU, "perf", "sched", "record", "-a", "-o", f"{folder}/perf"]
    if subprocess.run([*perf, "--", "true"], capture_output=True).returncode == 0:
        kinds["perf sched record -a"] = perf
    return kinds


def window(target, command, folder):
    """Slots a second, and what the observer said at its end."""
    shutil.rmtree(f"{folder}/capture", ignore_errors=True)
    observer = command and subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(READY)
    begin, since = written(target)
    time.sleep(SECONDS)
    end, until = written(target)
    said = ""
    if observer:
        # perf and dptrace finish their files; a shell ends.
        observer.send_signal(signal.SIGTERM if "sh" in command else signal.SIGINT)
        said = observer.communicate()[1]
    return (end - begin) / (until - since), said


def interval(ratios):
    """Where the median lies in 95 of 100 cases."""
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-50]


def main():
    folder = tempfile.mkdtemp()
    target = start_target("--flat-out", "--life", "1000")
    rates, losses = {}, []
    try:
        kinds = observers(target, folder)
        for _ in range(BLOCKS):
            for kind in random.sample(sorted(kinds), len(kinds)):
                rate, said = window(target, kinds[kind], folder)
                rates.setdefault(kind, []).append(rate)
                losses += [line for line in said.splitlines() if "slots lost" in line or "not captured" in line]
    finally:
        target.terminate()
        target.wait()
        shutil.rmtree(folder)
    print(f"records a second of the demo target at its highest rate, pinned to CPU 0: {BLOCKS} windows of {SECONDS:g} s each, in turns")
    for kind in kinds:
        values = rates[kind]
        ratios = [100 * (value / alone - 1) for value, alone in zip(values, rates["alone"])]
        low, high = interval(ratios)
        change = "" if kind == "alone" else f"{statistics.median(ratios):+7.2f} %  ({low:+.2f} to {high:+.2f})"
        print(f"{kind:40}{statistics.median(values):12.0f}  {change}")
    print(*losses[:3], sep="\n")


main()
