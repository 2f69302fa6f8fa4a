-- Which single requests were the slowest, and how much of each did the kernel take?
SELECT hostname, capture, request, object, kind, start_ns, whole_ns, subnqn, peer, qid, bdev, size, queue_depth,
    late_least_ns, late_most_ns, late_by
FROM requests
WHERE finished AND excluded IS NULL AND part_of IS NULL
ORDER BY whole_ns DESC, hostname, capture, request
LIMIT 20
