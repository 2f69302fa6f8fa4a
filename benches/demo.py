"""The program that is measured, and its demo target: for the other files here."""

import os
import subprocess
import sys

os.chdir(f"{os.path.dirname(os.path.abspath(__file__))}/..")
DPTRACE = subprocess.run(["bash", "-c", ". benches/binary.sh; echo $DPTRACE"], capture_output=True, text=True, check=True).stdout.strip()


def start_target(*options):
    """A target on CPU 0. With --inject, it writes to its ring as SPDK does, in memory; nothing is injected in that time."""
    command = ["taskset", "-c", "0", DPTRACE, "demo-target", *options]
    command += ["--inject", "own", "--inject-every", "24h", "--for", "24h"]
    target = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    line = target.stderr.readline()
    if "demo-target: pid" not in line:
        sys.exit(f"the demo target did not start: {line}")
    return target
