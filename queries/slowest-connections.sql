-- Which connections of the fleet are the slowest, by p99.9 of whole requests?
--
-- The percentile is the upper bound of its bucket: at most 6.3 % above the exact value.
WITH buckets AS (
    SELECT hostname, kind, subnqn, hostnqn, peer, qid, up_to_ns, SUM(count) AS n, SUM(sum_ns) AS took
    FROM stage_histograms
    WHERE stage = 'whole'
    GROUP BY hostname, kind, subnqn, hostnqn, peer, qid, up_to_ns
),
passed AS (
    SELECT hostname, kind, subnqn, hostnqn, peer, qid, up_to_ns, took,
        SUM(n) OVER (PARTITION BY hostname, kind, subnqn, hostnqn, peer, qid ORDER BY up_to_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far,
        SUM(n) OVER (PARTITION BY hostname, kind, subnqn, hostnqn, peer, qid) AS requests
    FROM buckets
)
SELECT hostname, kind, subnqn, hostnqn, peer, qid, requests,
    SUM(took) / requests AS mean_ns,
    MIN(CASE WHEN so_far * 2 >= requests THEN up_to_ns END) AS p50_ns,
    MIN(CASE WHEN so_far * 100 >= requests * 99 THEN up_to_ns END) AS p99_ns,
    MIN(CASE WHEN so_far * 1000 >= requests * 999 THEN up_to_ns END) AS p99_9_ns
FROM passed
GROUP BY hostname, kind, subnqn, hostnqn, peer, qid, requests
ORDER BY p99_9_ns DESC, requests DESC, hostname, kind, subnqn, hostnqn, peer, qid
LIMIT 20
