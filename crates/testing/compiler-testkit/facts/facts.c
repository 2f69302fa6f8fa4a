/* The types and functions of the made-up kernel and process of the target `compile`. Made with gcc 12, from this folder:
 *     gcc -O1 -g -gno-as-loc-support -ffile-prefix-map=$PWD=. -shared -nostdlib -fPIC -Wl,--build-id=none facts.c -o facts.so     (the process's file, with DWARF)
 *     (cd / && gcc -O1 -gbtf -x c -c - -o /tmp/btf.o) < facts.c && objcopy -O binary --only-section=.BTF --set-section-flags .BTF=alloc /tmp/btf.o facts.btf
 */
enum state { STATE_IDLE, STATE_BUSY = 7, STATE_GONE = -1 };
enum wide { WIDE_LOW = 1, WIDE_HIGH = 0x100000000000 };

struct list { struct list *next, *prev; };
typedef unsigned long long u64;
typedef struct { int counter; } atomic_t;

struct bits {
    unsigned a : 3, b : 13;
    signed c : 5;
    u64 d : 40;
    unsigned char : 0;
    char rest;
};

struct ns_common { unsigned inum; };
struct pid_namespace { struct ns_common ns; unsigned level; };
struct nsproxy { struct pid_namespace *pid_ns_for_children; };
struct cred { unsigned uid, gid; };

struct task_struct {
    unsigned long state;
    void *stack;
    int pid, tgid;
    char comm[16];
    struct task_struct *group_leader, *real_parent, *parent;
    struct list tasks;
    const struct cred *cred;
    struct nsproxy *nsproxy;
    u64 start_time;
    _Bool exiting;
    enum state kind;
    enum wide wide;
    struct bits bits;
    struct {
        union { int x; float f; };
        short y[3];
    };
    struct { struct { long deep[4][2]; } in[2]; } arrays;
    int (*call)(struct task_struct *, int);
    atomic_t usage;
    u64 tail[];
};

struct big { char text[300]; struct task_struct *tasks[64]; struct bits all[20]; };
struct empty {};

volatile int keep;
struct big the_big;
struct empty the_empty;

long vfs_read(struct task_struct *task, char *buffer, unsigned long count, long *at) { keep = 1; return task->pid; }
void vfs_open(const char *name, struct big *big, enum state state) { keep = big->text[0] + state; }
_Bool no_args(void) { return keep; }

typedef void (*btf_trace_sched_switch)(void *, _Bool, struct task_struct *, struct task_struct *, unsigned);
btf_trace_sched_switch the_trace;
