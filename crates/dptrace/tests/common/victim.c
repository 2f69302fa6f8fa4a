/* A program that hits a probe when it is told to: on its standard input, a command a line. Built twice: with -DLIBRARY
 * it is the shared library that has the probe `victim:tick(0, n)`, else the program, which opens that library with
 * dlopen(3), so that it can close it again. The probe's note is written by hand, as <sys/sdt.h> would write it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBRARY
void tick(unsigned long n)
{
    __asm__ volatile("990: nop\n"
                     ".pushsection .note.stapsdt,\"\",\"note\"\n"
                     ".balign 4\n"
                     ".4byte 992f-991f, 994f-993f, 3\n"
                     "991: .asciz \"stapsdt\"\n"
                     "992: .balign 4\n"
                     "993: .8byte 990b\n"
                     ".8byte _.stapsdt.base\n"
                     ".8byte 0\n"
                     ".asciz \"victim\"\n"
                     ".asciz \"tick\"\n"
                     ".asciz \"8@$0 8@%0\"\n"
                     "994: .balign 4\n"
                     ".popsection\n"
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
                     ".weak _.stapsdt.base\n"
                     ".hidden _.stapsdt.base\n"
                     "_.stapsdt.base: .space 1\n"
                     ".popsection\n"
                     :: "r"(n));
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
