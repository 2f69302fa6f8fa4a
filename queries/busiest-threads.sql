-- How much of its time does each thread run, wait for a CPU, block, and how much is not known?
SELECT hostname, tid, thread, SUM(total_ns) AS seen_ns,
    100.0 * SUM(CASE WHEN activity IN ('runs', 'calls') THEN total_ns ELSE 0 END) / SUM(total_ns) AS percent_runs,
    100.0 * SUM(CASE WHEN taken THEN total_ns ELSE 0 END) / SUM(total_ns) AS percent_taken,
    100.0 * SUM(CASE WHEN activity = 'blocked' THEN total_ns ELSE 0 END) / SUM(total_ns) AS percent_blocked,
    100.0 * SUM(CASE WHEN activity = 'unknown' THEN total_ns ELSE 0 END) / SUM(total_ns) AS percent_unknown
FROM thread_budgets
GROUP BY hostname, tid, thread
ORDER BY percent_taken DESC, hostname, tid, thread
LIMIT 40
