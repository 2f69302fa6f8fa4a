// Structs of SPDK's lib/nvme and module/bdev/nvme (docs/dev/layouts.md).

// from v21.07
struct spdk_nvme_transport_id {
    char pad1[36];
    int trtype;
    char pad2[4];
    char traddr[257];
    char trsvcid[33];
    char subnqn[224];
    char pad3[6];
};

// from v21.10
struct nvme_bdev_ctrlr {
    char *name;
    struct { struct nvme_ctrlr *tqh_first; struct nvme_ctrlr **tqh_last; } ctrlrs;
    char pad1[16];
    struct { struct nvme_bdev_ctrlr *tqe_next; struct nvme_bdev_ctrlr **tqe_prev; } tailq;
};

// v21.07
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[8];
    char *name;
    char pad2[88];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
};

// v21.10
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[96];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
    struct nvme_bdev_ctrlr *nbdev_ctrlr;
};

// v22.01
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[104];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
    struct nvme_bdev_ctrlr *nbdev_ctrlr;
};

// v22.05 to v23.05
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[128];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
    struct nvme_bdev_ctrlr *nbdev_ctrlr;
};

// v23.09 to v24.01
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[4224];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
    struct nvme_bdev_ctrlr *nbdev_ctrlr;
};

// v24.05
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[4240];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
    struct nvme_bdev_ctrlr *nbdev_ctrlr;
};

// v24.09
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[160];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
    struct nvme_bdev_ctrlr *nbdev_ctrlr;
};

// v25.01 to v25.09
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[184];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
    struct nvme_bdev_ctrlr *nbdev_ctrlr;
};

// from v26.01
struct nvme_ctrlr {
    struct spdk_nvme_ctrlr *ctrlr;
    char pad1[176];
    struct { struct nvme_ctrlr *tqe_next; struct nvme_ctrlr **tqe_prev; } tailq;
    struct nvme_bdev_ctrlr *nbdev_ctrlr;
};

// v21.07 to v22.01
struct spdk_nvme_ctrlr {
    char pad1[20];
    uint16_t cntlid;
    char pad2[18];
    struct spdk_nvme_transport_id trid;
    char pad3[16];
    int state;
};

// v22.05 to v26.01
struct spdk_nvme_ctrlr {
    char pad1[22];
    uint16_t cntlid;
    char pad2[16];
    struct spdk_nvme_transport_id trid;
    char pad3[16];
    int state;
};

// from v26.05
struct spdk_nvme_ctrlr {
    char pad1[8];
    int state;
    char pad2[28];
    uint16_t cntlid;
    char pad3[2];
    struct spdk_nvme_transport_id trid;
};
