-- On which hosts does the kernel take most of the time of a target's threads, and by whom?
WITH seen AS (
    SELECT hostname, SUM(total_ns) AS seen_ns
    FROM thread_budgets
    GROUP BY hostname
),
takers AS (
    SELECT hostname, activity, caused_by, SUM(total_ns) AS taken_ns, SUM(times) AS how_often, MAX(longest_ns) AS longest_once_ns
    FROM thread_budgets
    WHERE taken
    GROUP BY hostname, activity, caused_by
)
SELECT takers.hostname AS of_host, activity, caused_by, taken_ns, how_often, longest_once_ns,
    1000000 * taken_ns / seen_ns AS parts_per_million
FROM takers JOIN seen ON takers.hostname = seen.hostname
ORDER BY taken_ns DESC, of_host, activity, caused_by
LIMIT 20
