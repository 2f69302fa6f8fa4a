#!/usr/bin/env python3
"""What codecs of Parquet make of the tables of `dptrace export`: bytes, and the CPU time to write and to read them.

Usage: benches/codecs.py DIR [RUNS]        (see benches/README.md)

DIR has tables that `dptrace export --parquet DIR` wrote. DuckDB (PyPI: duckdb) writes each of them anew with each codec, on one thread
and in the order that it has, and reads all of its columns. Codecs take turns; the shortest CPU time of the runs is shown. What DuckDB
writes is not what dptrace writes: compare columns of the same line.
"""

import os
import pathlib
import resource
import sys
import tempfile

import duckdb

CODECS = ("uncompressed", "lz4_raw", "snappy", "zstd")


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(connection, sql):
    before = cpu_seconds()
    connection.execute(sql).fetchall()
    return cpu_seconds() - before


def measure(connection, table, folder, runs):
    """By codec: bytes, the shortest CPU time of writing, and of reading."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE it AS SELECT * FROM '{table}/*/*/*/*.parquet'")
    columns = [row[0] for row in connection.execute("DESCRIBE it").fetchall()]
    everything = ", ".join(f'count("{column}"), max(hash("{column}"))' for column in columns)
    results = {codec: [0, [], []] for codec in CODECS}
    for _ in range(runs):
        for codec in CODECS:
            file = pathlib.Path(folder, f"{codec}.parquet")
            written = timed(connection, f"COPY it TO '{file}' (FORMAT parquet, CODEC '{codec}')")
            read = timed(connection, f"SELECT {everything} FROM '{file}'")
            result = results[codec]
            result[0] = os.path.getsize(file)
            result[1].append(written)
            result[2].append(read)
    return {codec: (size, min(written), min(read)) for codec, (size, written, read) in results.items()}


def main():
    tables = sorted(path for path in pathlib.Path(sys.argv[1]).iterdir() if path.is_dir())
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    connection = duckdb.connect(config={"threads": 1})
    print(f"{'table':20} {'codec':13} {'MB':>8} {'write s':>8} {'read s':>7} {'dptrace MB':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for table in tables:
            ours = sum(file.stat().st_size for file in table.glob("*/*/*/*.parquet"))
            for codec, (size, written, read) in measure(connection, table, folder, runs).items():
                own = f"{ours / 1e6:11.2f}" if codec == "lz4_raw" else ""
                print(f"{table.name:20} {codec:13} {size / 1e6:8.2f} {written:8.2f} {read:7.2f} {own}", flush=True)


main()
