// A process whose page faults are known, one that reads a file for ever, and one that waits for its child in vfork(2).
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGES = 4096, PAGE = 4096 };

static void go(void)
{
    char line[16];
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        _exit(1);
}

static int touch(void)
{
    go();
    char *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE))
        return 1;
    for (size_t page = 0; page < PAGES; page++)
        memory[page * PAGE] = 1;
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    printf("faults %d %ld\n", PAGES, usage.ru_minflt);
    go();
    return 0;
}

static int wait_in_vfork(void)
{
    puts("ready");
    fflush(stdout);
    if (!vfork()) {
        // Until its input ends.
        char byte;
        while (read(0, &byte, 1) > 0)
            ;
        _exit(0);
    }
    return 0;
}

static int read_file(const char *path)
{
    static char buffer[1 << 16];
    go();
    for (;;) {
        FILE *file = fopen(path, "r");
        if (!file)
            return 1;
        while (fread(buffer, 1, sizeof(buffer), file))
            ;
        fclose(file);
    }
}

int main(int count, char **arguments)
{
    if (count > 2 && !strcmp(arguments[1], "read"))
        return read_file(arguments[2]);
    return count > 1 && !strcmp(arguments[1], "touch") ? touch() : wait_in_vfork();
}
