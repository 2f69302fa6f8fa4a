// Structs of SPDK's lib/bdev (docs/dev/layouts.md).

// v21.07 to v22.05
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[120];
    struct {
        char pad6[104];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[216];
    } internal;
};

// v22.09
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[128];
    struct {
        char pad6[104];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[232];
    } internal;
};

// v23.01
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[128];
    struct {
        char pad6[88];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[160];
    } internal;
};

// v23.05 to v23.09
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[128];
    struct {
        char pad6[128];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[160];
    } internal;
};

// v24.01
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[136];
    struct {
        char pad6[128];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[160];
    } internal;
};

// v24.05 to v24.09
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[144];
    struct {
        char pad6[128];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[160];
    } internal;
};

// v25.01
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[152];
    struct {
        char pad6[128];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[176];
    } internal;
};

// v25.05
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[152];
    struct {
        char pad6[128];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[192];
    } internal;
};

// v25.09 to v26.01
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[176];
    struct {
        char pad6[128];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[192];
    } internal;
};

// from v26.05
struct spdk_bdev {
    char pad1[8];
    char *name;
    char pad2[16];
    char *product_name;
    char pad3[4];
    uint32_t blocklen;
    char pad4[8];
    uint64_t blockcnt;
    char pad5[184];
    struct {
        char pad6[120];
        struct { struct spdk_bdev *tqe_next; struct spdk_bdev **tqe_prev; } link;
        char pad7[192];
    } internal;
};

// v21.07 to v22.09
struct spdk_bdev_mgr {
    char pad1[48];
    struct { struct spdk_bdev *tqh_first; struct spdk_bdev **tqh_last; } bdevs;
};

// from v23.01
struct spdk_bdev_mgr {
    char pad1[32];
    struct { struct spdk_bdev *tqh_first; struct spdk_bdev **tqh_last; } bdevs;
};
