/* A program that never rests: its threads hit the probe `restless:tick(0, n)` of a library, while that library is opened
 * and closed, children are forked that hit it too, and programs are run. It counts what it does, looks that nothing goes
 * wrong (a hit returns what it was given), and at SIGTERM prints the count and ends with 0.
 *
 *     restless LIBRARY THREADS
 *
 * Built twice, with -DLIBRARY as the library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROVIDER "restless"
#include "../common/tick.h"

#ifdef LIBRARY
unsigned long tick(unsigned long n)
{
    TICK(n);
    return n + 1;
}
#else
/* In a round, which then takes some ten milliseconds: long enough for a look into the process to find the library. */
#define HITS 200

typedef unsigned long tick_of(unsigned long);

static const char *path;
static volatile sig_atomic_t stop;
static unsigned long hits, opened, forked, run;

static void on_term(int signal)
{
    (void)signal;
    stop = 1;
}

static void wrong(const char *what)
{
    fprintf(stderr, "wrong: %s\n", what);
    _exit(1);
}

static void *open_it(tick_of **tick)
{
    void *library = dlopen(path, RTLD_NOW);

    *tick = library ? (tick_of *)dlsym(library, "tick") : NULL;
    if (!*tick)
        wrong("the library can't be opened");
    return library;
}

static void close_it(void *library)
{
    if (dlclose(library) != 0)
        wrong("the library can't be closed");
}

static void hit(tick_of *tick, unsigned long from)
{
    for (unsigned long n = from; n < from + HITS; n++) {
        if (tick(n) != n + 1)
            wrong("a hit returned something else");
        if (n % 10 == 0)
            usleep(200);
    }
}

/* Each round opens the library, hits its probe, and closes it: when all have closed it, it is unmapped. */
static void *hitter(void *unused)
{
    tick_of *tick;

    (void)unused;
    while (!stop) {
        void *library = open_it(&tick);
        hit(tick, 0);
        close_it(library);
        __atomic_fetch_add(&hits, HITS, __ATOMIC_RELAXED);
        __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
        usleep(1000);
    }
    return NULL;
}

/* The library is opened before: another thread may hold the loader's lock at the fork, and the child has it for good. */
static void child(int runs)
{
    int status;
    tick_of *tick;
    void *library = open_it(&tick);
    pid_t pid = fork();

    if (pid == 0) {
        hit(tick, 1000000);
        if (runs)
            execl("/bin/true", "true", (char *)NULL);
        _exit(runs ? 1 : 0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        wrong("a child was not well");
    close_it(library);
}

static void *sleeper(void *unused)
{
    (void)unused;
    while (!stop)
        usleep(250000);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    path = argv[1];
    signal(SIGTERM, on_term);
    int threads = atoi(argv[2]);
    pthread_t *ids = calloc(threads + 2, sizeof *ids);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    for (int i = 0; i < threads + 2; i++)
        if (pthread_create(&ids[i], &small, i < 2 ? hitter : sleeper, NULL) != 0)
            wrong("no thread");
    fprintf(stderr, "ready\n");
    while (!stop) {
        child(0);
        forked++;
        child(1);
        run++;
        usleep(2000);
    }
    for (int i = 0; i < threads + 2; i++)
        pthread_join(ids[i], NULL);
    printf("%lu %lu %lu %lu\n", hits, opened, forked, run);
    return 0;
}
#endif
