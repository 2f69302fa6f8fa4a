-- What overlapped the slowest request: on its own host, and of its subsystem on any host (initiator and target)?
WITH ranked AS (
    SELECT hostname, capture, request, start_ns, whole_ns, subnqn,
        ROW_NUMBER() OVER (ORDER BY whole_ns DESC, hostname, capture, request) AS place
    FROM requests
    WHERE finished AND excluded IS NULL AND part_of IS NULL
),
slow AS (
    SELECT hostname AS slow_host, capture AS slow_capture, request AS slow_request, start_ns AS slow_start_ns,
        start_ns + whole_ns AS slow_end_ns, COALESCE(subnqn, '') AS slow_subnqn
    FROM ranked
    WHERE place = 1
)
SELECT hostname, capture, request, object, kind, start_ns - slow_start_ns AS after_its_start_ns, whole_ns, subnqn, peer, qid,
    bdev, late_by
FROM requests CROSS JOIN slow
WHERE start_ns < slow_end_ns AND start_ns + whole_ns > slow_start_ns
    AND (hostname = slow_host OR COALESCE(subnqn, '-') = slow_subnqn)
ORDER BY after_its_start_ns, hostname, capture, request
LIMIT 200
