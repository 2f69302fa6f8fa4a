/* A program that hits a probe when it is told to: on its standard input, a command a line. Built twice: with -DLIBRARY
 * it is the shared library that has the probe `victim:tick(0, n)`, else the program, which opens that library with
 * dlopen(3), so that it can close it again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROVIDER "victim"
#include "tick.h"

#ifdef LIBRARY
void tick(unsigned long n)
{
    TICK(n);
}
#else
static void *library;
static void (*tick)(unsigned long);

static void hit(unsigned long from, unsigned long count)
{
    for (unsigned long n = from; n < from + count; n++)
        tick(n);
}

int main(int argc, char **argv)
{
    char line[64];
    unsigned long count;

    setvbuf(stdin, NULL, _IONBF, 0);
    fprintf(stderr, "ready\n");
    while (argc > 1 && fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "hit %lu", &count) == 1)
            hit(0, count);
        else if (sscanf(line, "fork %lu", &count) == 1) {
            pid_t child = fork();
            if (child == 0) {
                hit(1000000, count);
                _exit(0);
            }
            int status;
            waitpid(child, &status, 0);
            if (status != 0)
                return 1;
        } else if (line[0] == 'o') {
            library = dlopen(argv[1], RTLD_NOW);
            tick = library ? (void (*)(unsigned long))dlsym(library, "tick") : NULL;
            if (!tick)
                return 1;
        } else if (line[0] == 'c')
            dlclose(library);
        else if (line[0] == 'e')
            execl("/bin/cat", "cat", (char *)NULL);
        else if (line[0] == 'k')
            abort();
        fprintf(stderr, "done %s", line);
    }
    return 0;
}
#endif
