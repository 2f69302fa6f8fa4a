// Structs of SPDK's lib/thread and lib/event (docs/dev/layouts.md).

// v21.07 to v21.10
struct spdk_thread {
    uint64_t tsc_last;
    char pad1[16];
    struct { struct spdk_poller *tqh_first; struct spdk_poller **tqh_last; } active_pollers;
    struct { struct spdk_poller *rbh_root; } timed_pollers;
    char pad2[8];
    struct { struct spdk_poller *tqh_first; struct spdk_poller **tqh_last; } paused_pollers;
    char pad3[40];
    uint64_t id;
    int state;
    char pad4[12];
    struct { struct spdk_thread *tqe_next; struct spdk_thread **tqe_prev; } tailq;
    char name[257];
};

// v22.01 to v23.09
struct spdk_thread {
    uint64_t tsc_last;
    char pad1[16];
    struct { struct spdk_poller *tqh_first; struct spdk_poller **tqh_last; } active_pollers;
    struct { struct spdk_poller *rbh_root; } timed_pollers;
    char pad2[8];
    struct { struct spdk_poller *tqh_first; struct spdk_poller **tqh_last; } paused_pollers;
    char pad3[40];
    uint64_t id;
    char pad4[8];
    int state;
    char pad5[12];
    struct { struct spdk_thread *tqe_next; struct spdk_thread **tqe_prev; } tailq;
    char name[257];
};

// v24.01 to v24.09
struct spdk_thread {
    uint64_t tsc_last;
    char pad1[16];
    struct { struct spdk_poller *tqh_first; struct spdk_poller **tqh_last; } active_pollers;
    struct { struct spdk_poller *rbh_root; } timed_pollers;
    char pad2[8];
    struct { struct spdk_poller *tqh_first; struct spdk_poller **tqh_last; } paused_pollers;
    char pad3[40];
    uint64_t id;
    char pad4[8];
    int state;
    char pad5[20];
    struct { struct spdk_thread *tqe_next; struct spdk_thread **tqe_prev; } tailq;
    char name[257];
};

// from v25.01
struct spdk_thread {
    uint64_t tsc_last;
    char pad1[16];
    struct { struct spdk_poller *tqh_first; struct spdk_poller **tqh_last; } active_pollers;
    struct { struct spdk_poller *rbh_root; } timed_pollers;
    char pad2[8];
    struct { struct spdk_poller *tqh_first; struct spdk_poller **tqh_last; } paused_pollers;
    char pad3[104];
    uint64_t id;
    char pad4[8];
    int state;
    char pad5[20];
    struct { struct spdk_thread *tqe_next; struct spdk_thread **tqe_prev; } tailq;
    char name[257];
};

// v21.07 to v21.10
struct spdk_poller {
    struct { struct spdk_poller *tqe_next; struct spdk_poller **tqe_prev; } tailq;
    struct { struct spdk_poller *rbe_left; struct spdk_poller *rbe_right; struct spdk_poller *rbe_parent; } node;
    int state;
    char pad1[4];
    uint64_t period_ticks;
    char pad2[8];
    uint64_t run_count;
    uint64_t busy_count;
    void *fn;
    void *arg;
    struct spdk_thread *thread;
    char pad3[24];
    char name[257];
};

// from v22.01
struct spdk_poller {
    struct { struct spdk_poller *tqe_next; struct spdk_poller **tqe_prev; } tailq;
    struct { struct spdk_poller *rbe_left; struct spdk_poller *rbe_right; struct spdk_poller *rbe_parent; } node;
    int state;
    char pad1[4];
    uint64_t period_ticks;
    char pad2[8];
    uint64_t run_count;
    uint64_t busy_count;
    char pad3[8];
    void *fn;
    void *arg;
    struct spdk_thread *thread;
    char pad4[24];
    char name[257];
};

// from v21.07
struct spdk_reactor {
    struct { struct spdk_lw_thread *tqh_first; struct spdk_lw_thread **tqh_last; } threads;
    uint32_t thread_count;
    uint32_t lcore;
    uint32_t flags;
    char pad1[4];
    uint64_t tsc_last;
    char pad2[168];
    uint64_t busy_tsc;
    uint64_t idle_tsc;
    char pad3[480];
};

// from v21.07
struct spdk_lw_thread {
    struct { struct spdk_lw_thread *tqe_next; struct spdk_lw_thread **tqe_prev; } link;
    char pad1[8];
    uint32_t lcore;
};
