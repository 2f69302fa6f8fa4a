-- Who runs instead of the threads that serve requests, on how many hosts, and how long at once?
SELECT caused_by, activity, COUNT(DISTINCT hostname) AS hosts, COUNT(DISTINCT tid) AS threads, SUM(total_ns) AS taken_ns,
    SUM(times) AS how_often, MAX(longest_ns) AS longest_once_ns
FROM thread_budgets
WHERE taken AND caused_by IS NOT NULL
GROUP BY caused_by, activity
ORDER BY taken_ns DESC, caused_by, activity
LIMIT 20
