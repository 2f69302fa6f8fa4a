"""Prints, of an export, the number of requests of hosts that count, and the longest of them, from both tables that have them."""

import json
import sys

import duckdb


def one(folder, table, query):
    files = f"{folder}/{table}/*/*/*/*.parquet"
    return duckdb.sql(query.format(f"read_parquet('{files}', hive_partitioning=true)")).limit(1).fetchall()[0]


folder = sys.argv[1]
requests = one(
    folder,
    "requests",
    "SELECT count(*), max(whole_ns) FROM {} WHERE finished AND excluded IS NULL AND stages > 0 AND kind = 'TCP_REQ'",
)
histograms = one(
    folder,
    "stage_histograms",
    "SELECT sum(count) FROM {} WHERE stage = 'whole' AND kind = 'TCP_REQ'",
)
print(json.dumps({"count": requests[0], "longest_ns": requests[1], "times": int(histograms[0])}))
