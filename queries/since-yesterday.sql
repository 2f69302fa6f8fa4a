-- Which connections are slower than a day ago, by p99 of their last hour against the same hour of the day before?
WITH hours AS (
    SELECT hostname, subnqn, hostnqn, FLOOR(minute_ns / 3600000000000) AS hour_no, up_to_ns, count
    FROM stage_histograms
    WHERE stage = 'whole'
),
newest AS (
    SELECT MAX(hour_no) AS newest_hour FROM hours
),
buckets AS (
    SELECT hostname, subnqn, hostnqn, CASE WHEN hour_no = newest_hour THEN 1 ELSE 0 END AS is_now, up_to_ns,
        SUM(count) AS n
    FROM hours CROSS JOIN newest
    WHERE hour_no = newest_hour OR hour_no = newest_hour - 24
    GROUP BY hostname, subnqn, hostnqn, CASE WHEN hour_no = newest_hour THEN 1 ELSE 0 END, up_to_ns
),
passed AS (
    SELECT hostname, subnqn, hostnqn, is_now, up_to_ns,
        SUM(n) OVER (PARTITION BY hostname, subnqn, hostnqn, is_now ORDER BY up_to_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far,
        SUM(n) OVER (PARTITION BY hostname, subnqn, hostnqn, is_now) AS requests
    FROM buckets
),
both_days AS (
    SELECT hostname, subnqn, hostnqn,
        MIN(CASE WHEN is_now = 0 AND so_far * 100 >= requests * 99 THEN up_to_ns END) AS before_p99_ns,
        MIN(CASE WHEN is_now = 1 AND so_far * 100 >= requests * 99 THEN up_to_ns END) AS now_p99_ns
    FROM passed
    GROUP BY hostname, subnqn, hostnqn
)
SELECT hostname, subnqn, hostnqn, before_p99_ns, now_p99_ns, now_p99_ns - before_p99_ns AS slower_ns
FROM both_days
WHERE now_p99_ns > before_p99_ns
ORDER BY slower_ns DESC, hostname, subnqn, hostnqn
LIMIT 20
