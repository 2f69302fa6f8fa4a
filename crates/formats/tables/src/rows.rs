//! The tables, one after another. Columns are in the order of the files.

use crate::row::table;

table! {
    #[about = "One request, or one I/O of a block device: an object of a trace from its first record to its last."]
    #[sorted_by("start_ns")]
    pub struct Request, "requests" {
        #[about = "The host, as `--host` names it, or the capture."]
        hostname: &'a str,
        #[about = "The name of the trace or capture that the row comes from."]
        capture: &'a str,
        #[about = "The number of the object in that capture: with `hostname` and `capture` it is the key of `request_stages`."]
        request: i64,
        #[about = "The object's name in the trace, `r10`; objects of two types may have the same one."]
        object: &'a str,
        #[about = "What kind of object it is, by the tracepoint that creates it: `TCP_REQ`, `RDMA_REQ`, `BDEV_IO`."]
        kind: &'a str,
        #[about = "The `request` of which it is a part, for an I/O of a block device; a host's request has none."]
        part_of: Option<i64>,
        #[unit = "ns since 1970"]
        #[about = "When it began, in UTC."]
        start_ns: i64,
        #[unit = "ns"]
        #[about = "From its first record to its last."]
        whole_ns: i64,
        #[about = "False if the trace ends in the middle of it."]
        finished: bool,
        #[about = "Why its time does not count, if so: `admin` or `unanswered`, explained above."]
        excluded: Option<&'a str>,
        #[about = "The process, if it is known."]
        pid: Option<i64>,
        #[about = "The lcore of its first record."]
        lcore: i64,
        #[about = "The name of the thread that wrote its first record, as the trace has it."]
        thread: Option<&'a str>,
        #[about = "The subsystem of its connection."]
        subnqn: Option<&'a str>,
        #[about = "The host of its connection, as NVMe has it."]
        hostnqn: Option<&'a str>,
        #[about = "The address at the other end of its connection."]
        peer: Option<&'a str>,
        #[about = "The queue of its connection: 0 is the admin queue."]
        qid: Option<i64>,
        #[about = "The block device."]
        bdev: Option<&'a str>,
        #[unit = "as the trace has it"]
        #[about = "The largest `size` of its records: mostly bytes."]
        size: i64,
        #[about = "The queue depth of its connection as it began."]
        queue_depth: Option<i64>,
        #[about = "How many stages it has."]
        stages: i64,
        #[unit = "ns"]
        #[about = "What the kernel took of it at least; missing without events of the kernel, and if it began before these."]
        late_least_ns: Option<i64>,
        #[unit = "ns"]
        #[about = "The same at most."]
        late_most_ns: Option<i64>,
        #[about = "Who took most of it: a thread, an interrupt, with its CPU."]
        late_by: Option<&'a str>,
        #[unit = "ns"]
        #[about = "How much of it no event of the kernel explains; missing as `late_least_ns` is."]
        unknown_ns: Option<i64>,
    }
}

table! {
    #[about = "The time between two records of a request."]
    #[sorted_by("start_ns")]
    pub struct RequestStage, "request_stages" {
        #[about = "As in `requests`."]
        hostname: &'a str,
        #[about = "As in `requests`."]
        capture: &'a str,
        #[about = "The request."]
        request: i64,
        #[about = "Its place among the stages of the request, from 0."]
        stage_no: i64,
        #[about = "The tracepoint that begins it."]
        from_point: &'a str,
        #[about = "The tracepoint that ends it."]
        to_point: &'a str,
        #[unit = "ns since 1970"]
        #[about = "When it began, in UTC."]
        start_ns: i64,
        #[unit = "ns"]
        #[about = "How long it took."]
        stage_ns: i64,
        #[about = "The lcore that wrote the record at its end: the stage is that one's."]
        lcore: i64,
        #[about = "The number of that lcore's thread, if it is known."]
        tid: Option<i64>,
        #[about = "The CPU that the thread had at the end, if that is known."]
        cpu: Option<i64>,
        #[unit = "ns"]
        #[about = "What the kernel took of it at least; missing as in `requests`."]
        late_least_ns: Option<i64>,
        #[unit = "ns"]
        #[about = "The same at most."]
        late_most_ns: Option<i64>,
        #[about = "Who took most of it."]
        late_by: Option<&'a str>,
        #[unit = "ns"]
        #[about = "How much of it no event of the kernel explains; missing as in `requests`."]
        unknown_ns: Option<i64>,
    }
}

table! {
    #[about = "How many stages of one kind took a time between two bounds, of one connection, in one minute. All histograms have the same bounds, so that counts of minutes, connections and hosts can be added."]
    #[sorted_by("minute_ns", "subnqn", "hostnqn", "peer", "qid", "stage", "above_ns")]
    pub struct StageHistogram, "stage_histograms" {
        #[about = "As in `requests`."]
        hostname: &'a str,
        #[about = "As in `requests`."]
        capture: &'a str,
        #[unit = "ns since 1970"]
        #[about = "When the minute began, in UTC: stages count in the minute in which their request ended."]
        minute_ns: i64,
        #[about = "The process, if it is known."]
        pid: Option<i64>,
        #[about = "What kind of object it is, as in `requests`."]
        kind: &'a str,
        #[about = "The subsystem of the connection."]
        subnqn: Option<&'a str>,
        #[about = "The host of the connection, as NVMe has it."]
        hostnqn: Option<&'a str>,
        #[about = "The address at the other end of the connection."]
        peer: Option<&'a str>,
        #[about = "The queue of the connection."]
        qid: Option<i64>,
        #[about = "The stage: its two tracepoints with `>` between; `whole` is from the first record of a request to its last."]
        stage: &'a str,
        #[unit = "ns"]
        #[about = "These took longer than this; of the first bucket, 0 is in it, too."]
        above_ns: i64,
        #[unit = "ns"]
        #[about = "They took at most this; the last bucket, for all above 66.6 s, has the largest number here."]
        up_to_ns: i64,
        #[about = "How many there were."]
        count: i64,
        #[unit = "ns"]
        #[about = "What they took together; for `dptrace serve`, the bucket's likely part of the exact sum."]
        sum_ns: i64,
    }
}

table! {
    #[about = "How long one thread did one thing in one minute. What a thread did adds up to the time of the minute that was seen."]
    #[sorted_by("minute_ns", "tid", "activity")]
    pub struct ThreadBudget, "thread_budgets" {
        #[about = "As in `requests`."]
        hostname: &'a str,
        #[about = "As in `requests`."]
        capture: &'a str,
        #[unit = "ns since 1970"]
        #[about = "When the minute began, in UTC."]
        minute_ns: i64,
        #[about = "The process, if it is known."]
        pid: Option<i64>,
        #[about = "The number of the thread."]
        tid: i64,
        #[about = "The name of the thread at that time."]
        thread: &'a str,
        #[about = "What it did: `runs`, `calls`, `interrupted`, `preempted`, `woken`, `blocked`, `stopped`, `ended`, `unknown`."]
        activity: &'a str,
        #[about = "Whether it could not go on and did not ask for that: `interrupted`, `preempted`, `woken` and `stopped`."]
        taken: bool,
        #[about = "The system call, the interrupt, the thread that ran instead, or the sender of the signal that stopped it."]
        caused_by: Option<&'a str>,
        #[unit = "ns"]
        #[about = "How long, all together."]
        total_ns: i64,
        #[about = "How often; missing of `dptrace serve`, which keeps sums only."]
        times: Option<i64>,
        #[unit = "ns"]
        #[about = "The longest time at once, of what began in this minute or went on in it; missing as `times` is."]
        longest_ns: Option<i64>,
    }
}

table! {
    #[about = "What one thread did from one time to another. Of each thread the intervals follow one another without a gap."]
    #[sorted_by("start_ns")]
    pub struct KernelInterval, "kernel_intervals" {
        #[about = "As in `requests`."]
        hostname: &'a str,
        #[about = "As in `requests`."]
        capture: &'a str,
        #[unit = "ns since 1970"]
        #[about = "When it began, in UTC."]
        start_ns: i64,
        #[unit = "ns"]
        #[about = "How long it took."]
        interval_ns: i64,
        #[about = "The process, if it is known."]
        pid: Option<i64>,
        #[about = "The number of the thread."]
        tid: i64,
        #[about = "The name of the thread at that time."]
        thread: &'a str,
        #[about = "The lcore whose ring the thread writes, if it is known."]
        lcore: Option<i64>,
        #[about = "What it did, as in `thread_budgets`."]
        activity: &'a str,
        #[about = "Whether it could not go on and did not ask for that, as in `thread_budgets`."]
        taken: bool,
        #[about = "The system call, the interrupt, the thread that ran instead, or the sender of the signal that stopped it."]
        caused_by: Option<&'a str>,
        #[about = "The thread or the interrupt that ended it, if it is `blocked` and that is known."]
        woken_by: Option<&'a str>,
        #[about = "The number of the thread that ran instead, ended the wait, or sent the signal; 0 for the kernel's signal."]
        cause_tid: Option<i64>,
        #[about = "Whether that one is a thread of the same process."]
        cause_is_own: Option<bool>,
    }
}

table! {
    #[about = "One record of a trace."]
    #[sorted_by("time_ns")]
    pub struct TraceRecord, "records" {
        #[about = "As in `requests`."]
        hostname: &'a str,
        #[about = "As in `requests`."]
        capture: &'a str,
        #[unit = "ns since 1970"]
        #[about = "When it was written, in UTC."]
        time_ns: i64,
        #[unit = "ticks"]
        #[about = "The same as the trace has it."]
        ticks: i64,
        #[about = "The process, if it is known."]
        pid: Option<i64>,
        #[about = "The lcore that wrote it."]
        lcore: i64,
        #[about = "The name of the thread that wrote it, as the trace has it."]
        thread: Option<&'a str>,
        #[about = "The tracepoint."]
        tpoint: &'a str,
        #[about = "The object's name, `r10`, if its creation was seen."]
        object: Option<&'a str>,
        #[about = "The object's id, mostly its address. What is above the largest number with a sign is negative."]
        object_id: Option<i64>,
        #[about = "The name of another object that the record names."]
        related: Option<&'a str>,
        #[unit = "as the tracepoint has it"]
        #[about = "The `size` of the record."]
        size: i64,
        #[about = "The description of the owner, or the poller."]
        owner: Option<&'a str>,
        #[about = "Its arguments as a JSON object; numbers are as the trace has them, without a sign."]
        args: Option<&'a str>,
    }
}
