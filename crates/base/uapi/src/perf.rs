//! Numbers of `linux/perf_event.h` and `linux/hw_breakpoint.h`.

/// `PERF_TYPE_HARDWARE`: events counted by the processor, by `enum perf_hw_id`.
pub const TYPE_HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`: events counted by the kernel, by `enum perf_sw_ids`.
pub const TYPE_SOFTWARE: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
pub const TYPE_TRACEPOINT: u32 = 2;
/// `PERF_TYPE_BREAKPOINT`.
pub const TYPE_BREAKPOINT: u32 = 5;

/// A counted event: `perf_event_attr.type` and `config`.
pub type Counter = (u32, u64);

/// `PERF_COUNT_HW_CPU_CYCLES`.
pub const CPU_CYCLES: Counter = (TYPE_HARDWARE, 0);
/// `PERF_COUNT_SW_CPU_CLOCK`: nanoseconds of a CPU's time.
pub const CPU_CLOCK: Counter = (TYPE_SOFTWARE, 0);

/// `PERF_COUNT_SW_PAGE_FAULTS`: page faults, at their start.
pub const PAGE_FAULTS: Counter = (TYPE_SOFTWARE, 2);
/// `PERF_COUNT_SW_PAGE_FAULTS_MIN`: page faults that needed no device, at their end.
pub const MINOR_FAULTS: Counter = (TYPE_SOFTWARE, 5);
/// `PERF_COUNT_SW_PAGE_FAULTS_MAJ`: page faults that needed a device, at their end.
pub const MAJOR_FAULTS: Counter = (TYPE_SOFTWARE, 6);

/// `PERF_COUNT_SW_DUMMY`: counts nothing, and only carries other records.
pub const DUMMY: Counter = (TYPE_SOFTWARE, 9);
/// `PERF_RECORD_LOST`: records were lost for lack of room.
pub const RECORD_LOST: u32 = 2;
/// `PERF_RECORD_FORK`: a thread was started.
pub const RECORD_FORK: u32 = 7;
/// `PERF_RECORD_MMAP2`: code was mapped.
pub const RECORD_MMAP2: u32 = 10;

/// `HW_BREAKPOINT_R`: reads of memory.
pub const BREAKPOINT_READ: u32 = 1;
/// `HW_BREAKPOINT_W`: writes.
pub const BREAKPOINT_WRITE: u32 = 2;
/// `HW_BREAKPOINT_X`: execution.
pub const BREAKPOINT_EXECUTE: u32 = 4;

/// `PERF_MAX_STACK_DEPTH`: maximum number of stack frames returned by the kernel, unless
/// `kernel.perf_event_max_stack` is changed.
pub const MAX_STACK_DEPTH: u32 = 127;
