-- In which stage of which connection is the time lost, by p99.9?
WITH buckets AS (
    SELECT hostname, subnqn, hostnqn, peer, qid, stage, up_to_ns, SUM(count) AS n
    FROM stage_histograms
    WHERE stage <> 'whole'
    GROUP BY hostname, subnqn, hostnqn, peer, qid, stage, up_to_ns
),
passed AS (
    SELECT hostname, subnqn, hostnqn, peer, qid, stage, up_to_ns,
        SUM(n) OVER (PARTITION BY hostname, subnqn, hostnqn, peer, qid, stage ORDER BY up_to_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far,
        SUM(n) OVER (PARTITION BY hostname, subnqn, hostnqn, peer, qid, stage) AS requests
    FROM buckets
)
SELECT hostname, subnqn, hostnqn, peer, qid, stage, requests,
    MIN(CASE WHEN so_far * 2 >= requests THEN up_to_ns END) AS p50_ns,
    MIN(CASE WHEN so_far * 1000 >= requests * 999 THEN up_to_ns END) AS p99_9_ns
FROM passed
GROUP BY hostname, subnqn, hostnqn, peer, qid, stage, requests
ORDER BY p99_9_ns DESC, requests DESC, hostname, subnqn, hostnqn, peer, qid, stage
LIMIT 20
