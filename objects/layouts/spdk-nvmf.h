// Structs of SPDK's lib/nvmf (docs/dev/layouts.md).

// v21.07 to v21.10
struct spdk_nvmf_tgt {
    char name[256];
    char pad1[56];
    uint32_t max_subsystems;
    char pad2[4];
    struct spdk_nvmf_subsystem **subsystems;
    struct { struct spdk_nvmf_transport *tqh_first; struct spdk_nvmf_transport **tqh_last; } transports;
    struct { struct spdk_nvmf_poll_group *tqh_first; struct spdk_nvmf_poll_group **tqh_last; } poll_groups;
    char pad3[32];
    struct { struct spdk_nvmf_tgt *tqe_next; struct spdk_nvmf_tgt **tqe_prev; } link;
};

// v22.01 to v22.09
struct spdk_nvmf_tgt {
    char name[256];
    char pad1[48];
    uint32_t max_subsystems;
    char pad2[4];
    struct spdk_nvmf_subsystem **subsystems;
    struct { struct spdk_nvmf_transport *tqh_first; struct spdk_nvmf_transport **tqh_last; } transports;
    struct { struct spdk_nvmf_poll_group *tqh_first; struct spdk_nvmf_poll_group **tqh_last; } poll_groups;
    char pad3[32];
    struct { struct spdk_nvmf_tgt *tqe_next; struct spdk_nvmf_tgt **tqe_prev; } link;
};

// v23.01
struct spdk_nvmf_tgt {
    char name[256];
    char pad1[48];
    uint32_t max_subsystems;
    char pad2[4];
    int state;
    char pad3[4];
    struct spdk_nvmf_subsystem **subsystems;
    struct { struct spdk_nvmf_transport *tqh_first; struct spdk_nvmf_transport **tqh_last; } transports;
    struct { struct spdk_nvmf_poll_group *tqh_first; struct spdk_nvmf_poll_group **tqh_last; } poll_groups;
    char pad4[32];
    struct { struct spdk_nvmf_tgt *tqe_next; struct spdk_nvmf_tgt **tqe_prev; } link;
};

// v23.05 to v23.09
struct spdk_nvmf_tgt {
    char name[256];
    char pad1[48];
    uint32_t max_subsystems;
    char pad2[4];
    int state;
    char pad3[12];
    struct { struct spdk_nvmf_subsystem *rbh_root; } subsystems;
    struct { struct spdk_nvmf_transport *tqh_first; struct spdk_nvmf_transport **tqh_last; } transports;
    struct { struct spdk_nvmf_poll_group *tqh_first; struct spdk_nvmf_poll_group **tqh_last; } poll_groups;
    char pad4[32];
    struct { struct spdk_nvmf_tgt *tqe_next; struct spdk_nvmf_tgt **tqe_prev; } link;
};

// v24.01
struct spdk_nvmf_tgt {
    char name[256];
    char pad1[48];
    uint32_t max_subsystems;
    char pad2[4];
    int state;
    char pad3[12];
    struct { struct spdk_nvmf_subsystem *rbh_root; } subsystems;
    struct { struct spdk_nvmf_transport *tqh_first; struct spdk_nvmf_transport **tqh_last; } transports;
    struct { struct spdk_nvmf_poll_group *tqh_first; struct spdk_nvmf_poll_group **tqh_last; } poll_groups;
    char pad4[48];
    struct { struct spdk_nvmf_tgt *tqe_next; struct spdk_nvmf_tgt **tqe_prev; } link;
};

// v24.05 to v26.01
struct spdk_nvmf_tgt {
    char name[256];
    char pad1[48];
    uint32_t max_subsystems;
    char pad2[4];
    int state;
    char pad3[12];
    struct { struct spdk_nvmf_subsystem *rbh_root; } subsystems;
    struct { struct spdk_nvmf_transport *tqh_first; struct spdk_nvmf_transport **tqh_last; } transports;
    struct { struct spdk_nvmf_poll_group *tqh_first; struct spdk_nvmf_poll_group **tqh_last; } poll_groups;
    char pad4[56];
    struct { struct spdk_nvmf_tgt *tqe_next; struct spdk_nvmf_tgt **tqe_prev; } link;
};

// from v26.05
struct spdk_nvmf_tgt {
    char name[256];
    char pad1[48];
    uint32_t max_subsystems;
    char pad2[4];
    int state;
    char pad3[12];
    struct { struct spdk_nvmf_subsystem *rbh_root; } subsystems;
    struct { struct spdk_nvmf_transport *tqh_first; struct spdk_nvmf_transport **tqh_last; } transports;
    struct { struct spdk_nvmf_poll_group *tqh_first; struct spdk_nvmf_poll_group **tqh_last; } poll_groups;
    char pad4[64];
    struct { struct spdk_nvmf_tgt *tqe_next; struct spdk_nvmf_tgt **tqe_prev; } link;
};

// v21.07 to v22.09
struct spdk_nvmf_poll_group {
    struct spdk_thread *thread;
    char pad1[40];
    struct { struct spdk_nvmf_qpair *tqh_first; struct spdk_nvmf_qpair **tqh_last; } qpairs;
    char pad2[40];
    struct { struct spdk_nvmf_poll_group *tqe_next; struct spdk_nvmf_poll_group **tqe_prev; } link;
};

// v23.01
struct spdk_nvmf_poll_group {
    struct spdk_thread *thread;
    char pad1[40];
    struct { struct spdk_nvmf_qpair *tqh_first; struct spdk_nvmf_qpair **tqh_last; } qpairs;
    char pad2[48];
    struct { struct spdk_nvmf_poll_group *tqe_next; struct spdk_nvmf_poll_group **tqe_prev; } link;
};

// v23.05 to v24.09
struct spdk_nvmf_poll_group {
    struct spdk_thread *thread;
    char pad1[40];
    struct { struct spdk_nvmf_qpair *tqh_first; struct spdk_nvmf_qpair **tqh_last; } qpairs;
    char pad2[56];
    struct { struct spdk_nvmf_poll_group *tqe_next; struct spdk_nvmf_poll_group **tqe_prev; } link;
};

// from v25.01
struct spdk_nvmf_poll_group {
    struct spdk_thread *thread;
    char pad1[32];
    struct { struct spdk_nvmf_qpair *tqh_first; struct spdk_nvmf_qpair **tqh_last; } qpairs;
    char pad2[56];
    struct { struct spdk_nvmf_poll_group *tqe_next; struct spdk_nvmf_poll_group **tqe_prev; } link;
};

// v21.07 to v24.01
enum spdk_nvmf_qpair_state {
    SPDK_NVMF_QPAIR_UNINITIALIZED = 0,
    SPDK_NVMF_QPAIR_ACTIVE = 1,
    SPDK_NVMF_QPAIR_DEACTIVATING = 2,
    SPDK_NVMF_QPAIR_ERROR = 3,
};

// from v24.05
enum spdk_nvmf_qpair_state {
    SPDK_NVMF_QPAIR_UNINITIALIZED = 0,
    SPDK_NVMF_QPAIR_CONNECTING = 1,
    SPDK_NVMF_QPAIR_AUTHENTICATING = 2,
    SPDK_NVMF_QPAIR_ENABLED = 3,
    SPDK_NVMF_QPAIR_DEACTIVATING = 4,
    SPDK_NVMF_QPAIR_ERROR = 5,
};

// v21.07 to v23.09
struct spdk_nvmf_qpair {
    int state;
    char pad1[20];
    struct spdk_nvmf_transport *transport;
    struct spdk_nvmf_ctrlr *ctrlr;
    struct spdk_nvmf_poll_group *group;
    uint16_t qid;
    char pad2[30];
    struct { struct spdk_nvmf_qpair *tqe_next; struct spdk_nvmf_qpair **tqe_prev; } link;
};

// v24.01
struct spdk_nvmf_qpair {
    uint8_t state;
    char pad1[1];
    uint16_t qid;
    char pad2[4];
    struct spdk_nvmf_transport *transport;
    struct spdk_nvmf_ctrlr *ctrlr;
    struct spdk_nvmf_poll_group *group;
    char pad3[24];
    struct { struct spdk_nvmf_qpair *tqe_next; struct spdk_nvmf_qpair **tqe_prev; } link;
};

// from v24.05
struct spdk_nvmf_qpair {
    uint8_t state;
    char pad1[1];
    uint16_t qid;
    char pad2[4];
    struct spdk_nvmf_transport *transport;
    struct spdk_nvmf_ctrlr *ctrlr;
    struct spdk_nvmf_poll_group *group;
    char pad3[24];
    struct { struct spdk_nvmf_qpair *tqe_next; struct spdk_nvmf_qpair **tqe_prev; } link;
    char pad4[18];
    uint16_t trace_id;
};

// v21.07 to v21.10
struct spdk_nvmf_tcp_qpair {
    char pad1[256];
    char initiator_addr[256];
    char target_addr[256];
    uint16_t initiator_port;
    uint16_t target_port;
};

// v22.01
struct spdk_nvmf_tcp_qpair {
    char pad1[272];
    char initiator_addr[256];
    char target_addr[256];
    uint16_t initiator_port;
    uint16_t target_port;
};

// v22.05
struct spdk_nvmf_tcp_qpair {
    char pad1[280];
    char initiator_addr[256];
    char target_addr[256];
    uint16_t initiator_port;
    uint16_t target_port;
};

// v22.09 to v23.01
struct spdk_nvmf_tcp_qpair {
    char pad1[288];
    char initiator_addr[256];
    char target_addr[256];
    uint16_t initiator_port;
    uint16_t target_port;
};

// v23.05 to v24.01
struct spdk_nvmf_tcp_qpair {
    char pad1[296];
    char initiator_addr[256];
    char target_addr[256];
    uint16_t initiator_port;
    uint16_t target_port;
};

// v24.05
struct spdk_nvmf_tcp_qpair {
    char pad1[304];
    char initiator_addr[256];
    char target_addr[256];
    uint16_t initiator_port;
    uint16_t target_port;
};

// from v24.09
struct spdk_nvmf_tcp_qpair {
    char pad1[312];
    char initiator_addr[256];
    char target_addr[256];
    uint16_t initiator_port;
    uint16_t target_port;
};

// v21.07 to v21.10
struct spdk_nvmf_transport {
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_transport_ops *ops;
    char pad1[80];
    struct { struct spdk_nvmf_transport *tqe_next; struct spdk_nvmf_transport **tqe_prev; } link;
};

// v22.01 to v23.01
struct spdk_nvmf_transport {
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_transport_ops *ops;
    char pad1[88];
    struct { struct spdk_nvmf_transport *tqe_next; struct spdk_nvmf_transport **tqe_prev; } link;
};

// v23.05 to v24.01
struct spdk_nvmf_transport {
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_transport_ops *ops;
    char pad1[120];
    struct { struct spdk_nvmf_transport *tqe_next; struct spdk_nvmf_transport **tqe_prev; } link;
};

// v24.05 to v25.01
struct spdk_nvmf_transport {
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_transport_ops *ops;
    char pad1[128];
    struct { struct spdk_nvmf_transport *tqe_next; struct spdk_nvmf_transport **tqe_prev; } link;
};

// v25.05 to v25.09
struct spdk_nvmf_transport {
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_transport_ops *ops;
    char pad1[136];
    struct { struct spdk_nvmf_transport *tqe_next; struct spdk_nvmf_transport **tqe_prev; } link;
};

// v26.01
struct spdk_nvmf_transport {
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_transport_ops *ops;
    char pad1[144];
    struct { struct spdk_nvmf_transport *tqe_next; struct spdk_nvmf_transport **tqe_prev; } link;
};

// from v26.05
struct spdk_nvmf_transport {
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_transport_ops *ops;
    char pad1[152];
    struct { struct spdk_nvmf_transport *tqe_next; struct spdk_nvmf_transport **tqe_prev; } link;
};

// from v21.07
struct spdk_nvmf_transport_ops {
    char name[32];
    int type;
};

// v21.07
struct spdk_nvmf_ctrlr {
    uint16_t cntlid;
    char hostnqn[224];
    char pad1[6];
    struct spdk_nvmf_subsystem *subsys;
    char pad2[344];
    struct spdk_nvmf_qpair *admin_qpair;
    struct spdk_thread *thread;
    char pad3[4264];
    struct { struct spdk_nvmf_ctrlr *tqe_next; struct spdk_nvmf_ctrlr **tqe_prev; } link;
};

// v21.10
struct spdk_nvmf_ctrlr {
    uint16_t cntlid;
    char hostnqn[224];
    char pad1[6];
    struct spdk_nvmf_subsystem *subsys;
    char pad2[344];
    struct spdk_nvmf_qpair *admin_qpair;
    struct spdk_thread *thread;
    char pad3[4272];
    struct { struct spdk_nvmf_ctrlr *tqe_next; struct spdk_nvmf_ctrlr **tqe_prev; } link;
};

// v22.01 to v24.01
struct spdk_nvmf_ctrlr {
    uint16_t cntlid;
    char hostnqn[224];
    char pad1[6];
    struct spdk_nvmf_subsystem *subsys;
    char pad2[360];
    struct spdk_nvmf_qpair *admin_qpair;
    struct spdk_thread *thread;
    char pad3[4288];
    struct { struct spdk_nvmf_ctrlr *tqe_next; struct spdk_nvmf_ctrlr **tqe_prev; } link;
};

// v24.05 to v25.05
struct spdk_nvmf_ctrlr {
    uint16_t cntlid;
    char hostnqn[224];
    char pad1[6];
    struct spdk_nvmf_subsystem *subsys;
    char pad2[368];
    struct spdk_nvmf_qpair *admin_qpair;
    struct spdk_thread *thread;
    char pad3[4288];
    struct { struct spdk_nvmf_ctrlr *tqe_next; struct spdk_nvmf_ctrlr **tqe_prev; } link;
};

// from v25.09
struct spdk_nvmf_ctrlr {
    uint16_t cntlid;
    char hostnqn[224];
    char pad1[6];
    struct spdk_nvmf_subsystem *subsys;
    char pad2[376];
    struct spdk_nvmf_qpair *admin_qpair;
    struct spdk_thread *thread;
    char pad3[4288];
    struct { struct spdk_nvmf_ctrlr *tqe_next; struct spdk_nvmf_ctrlr **tqe_prev; } link;
};

// v21.07
struct spdk_nvmf_subsystem {
    struct spdk_thread *thread;
    uint32_t id;
    int state;
    int subtype;
    uint16_t next_cntlid;
    char pad1[2];
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_ns **ns;
    uint32_t max_nsid;
    char pad2[4];
    struct { struct spdk_nvmf_ctrlr *tqh_first; struct spdk_nvmf_ctrlr **tqh_last; } ctrlrs;
    char pad3[72];
    struct { struct spdk_nvmf_subsystem *tqe_next; struct spdk_nvmf_subsystem **tqe_prev; } entries;
    char sn[21];
    char mn[41];
    char subnqn[224];
};

// v21.10
struct spdk_nvmf_subsystem {
    struct spdk_thread *thread;
    uint32_t id;
    int state;
    int subtype;
    uint16_t next_cntlid;
    char pad1[10];
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_ns **ns;
    uint32_t max_nsid;
    char pad2[4];
    struct { struct spdk_nvmf_ctrlr *tqh_first; struct spdk_nvmf_ctrlr **tqh_last; } ctrlrs;
    char pad3[72];
    struct { struct spdk_nvmf_subsystem *tqe_next; struct spdk_nvmf_subsystem **tqe_prev; } entries;
    char pad4[16];
    char sn[21];
    char mn[41];
    char subnqn[224];
};

// v22.01 to v22.09
struct spdk_nvmf_subsystem {
    struct spdk_thread *thread;
    uint32_t id;
    int state;
    int subtype;
    uint16_t next_cntlid;
    char pad1[10];
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_ns **ns;
    uint32_t max_nsid;
    char pad2[4];
    struct { struct spdk_nvmf_ctrlr *tqh_first; struct spdk_nvmf_ctrlr **tqh_last; } ctrlrs;
    char pad3[80];
    struct { struct spdk_nvmf_subsystem *tqe_next; struct spdk_nvmf_subsystem **tqe_prev; } entries;
    char pad4[16];
    char sn[21];
    char mn[41];
    char subnqn[224];
};

// v23.01
struct spdk_nvmf_subsystem {
    struct spdk_thread *thread;
    uint32_t id;
    int state;
    int subtype;
    uint16_t next_cntlid;
    char pad1[18];
    struct spdk_nvmf_tgt *tgt;
    struct spdk_nvmf_ns **ns;
    uint32_t max_nsid;
    char pad2[4];
    struct { struct spdk_nvmf_ctrlr *tqh_first; struct spdk_nvmf_ctrlr **tqh_last; } ctrlrs;
    char pad3[80];
    struct { struct spdk_nvmf_subsystem *tqe_next; struct spdk_nvmf_subsystem **tqe_prev; } entries;
    char pad4[16];
    char sn[21];
    char mn[41];
    char subnqn[224];
};

// v23.05 to v23.09
struct spdk_nvmf_subsystem {
    struct spdk_thread *thread;
    uint32_t id;
    int state;
    int subtype;
    uint16_t next_cntlid;
    char pad1[18];
    struct spdk_nvmf_tgt *tgt;
    struct { struct spdk_nvmf_subsystem *rbe_left; struct spdk_nvmf_subsystem *rbe_right; struct spdk_nvmf_subsystem *rbe_parent; } link;
    struct spdk_nvmf_ns **ns;
    uint32_t max_nsid;
    char pad2[4];
    struct { struct spdk_nvmf_ctrlr *tqh_first; struct spdk_nvmf_ctrlr **tqh_last; } ctrlrs;
    char pad3[80];
    struct { struct spdk_nvmf_subsystem *tqe_next; struct spdk_nvmf_subsystem **tqe_prev; } entries;
    char pad4[16];
    char sn[21];
    char mn[41];
    char subnqn[224];
};

// v24.01 to v26.01
struct spdk_nvmf_subsystem {
    struct spdk_thread *thread;
    uint32_t id;
    int state;
    int subtype;
    uint16_t next_cntlid;
    char pad1[18];
    struct spdk_nvmf_tgt *tgt;
    struct { struct spdk_nvmf_subsystem *rbe_left; struct spdk_nvmf_subsystem *rbe_right; struct spdk_nvmf_subsystem *rbe_parent; } link;
    struct spdk_nvmf_ns **ns;
    uint32_t max_nsid;
    char pad2[20];
    struct { struct spdk_nvmf_ctrlr *tqh_first; struct spdk_nvmf_ctrlr **tqh_last; } ctrlrs;
    char pad3[80];
    struct { struct spdk_nvmf_subsystem *tqe_next; struct spdk_nvmf_subsystem **tqe_prev; } entries;
    char pad4[16];
    char sn[21];
    char mn[41];
    char subnqn[224];
};

// v26.05
struct spdk_nvmf_subsystem {
    struct spdk_thread *thread;
    uint32_t id;
    int state;
    uint16_t next_cntlid;
    char pad1[22];
    struct spdk_nvmf_tgt *tgt;
    struct { struct spdk_nvmf_subsystem *rbe_left; struct spdk_nvmf_subsystem *rbe_right; struct spdk_nvmf_subsystem *rbe_parent; } link;
    struct spdk_nvmf_ns **ns;
    uint32_t max_nsid;
    char pad2[4];
    struct {
        char pad3[16];
        char sn[21];
        char mn[41];
        char pad4[10];
    } opts;
    struct { struct spdk_nvmf_ctrlr *tqh_first; struct spdk_nvmf_ctrlr **tqh_last; } ctrlrs;
    char pad5[80];
    struct { struct spdk_nvmf_subsystem *tqe_next; struct spdk_nvmf_subsystem **tqe_prev; } entries;
    char pad6[16];
    char subnqn[224];
};

// from v26.09
struct spdk_nvmf_subsystem {
    struct spdk_thread *thread;
    uint32_t id;
    int state;
    uint16_t next_cntlid;
    char pad1[22];
    struct spdk_nvmf_tgt *tgt;
    struct { struct spdk_nvmf_subsystem *rbe_left; struct spdk_nvmf_subsystem *rbe_right; struct spdk_nvmf_subsystem *rbe_parent; } link;
    struct spdk_nvmf_ns **ns;
    uint32_t max_nsid;
    char pad2[4];
    struct {
        char pad3[16];
        char sn[21];
        char mn[41];
        char pad4[267];
    } opts;
    char pad5[7];
    struct { struct spdk_nvmf_ctrlr *tqh_first; struct spdk_nvmf_ctrlr **tqh_last; } ctrlrs;
    char pad6[80];
    struct { struct spdk_nvmf_subsystem *tqe_next; struct spdk_nvmf_subsystem **tqe_prev; } entries;
    char pad7[16];
    char subnqn[224];
};

// from v21.07
struct spdk_nvmf_ns {
    uint32_t nsid;
    char pad1[4];
    struct spdk_nvmf_subsystem *subsystem;
    struct spdk_bdev *bdev;
};
