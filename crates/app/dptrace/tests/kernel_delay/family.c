/* Processes that others start: many of one program, or one whose number another process has later. It does each at a line. */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 40
#define CALLS 1000

static void wait_for_line(void) {
    char byte = 0;
    while (read(0, &byte, 1) == 1 && byte != '\n') {
    }
}

static void say(const char *what, int number) {
    printf("%s %d\n", what, number);
    fflush(stdout);
}

static void call_and_end(const char *name) {
    prctl(PR_SET_NAME, name);
    for (int n = 0; n < CALLS; n++)
        syscall(SYS_getppid);
    _exit(0);
}

static int many(void) {
    for (int n = 0; n < MANY; n++) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                usleep(5000);
        }
    }
    say("ready", getpid());
    wait_for_line();
    return 0;
}

/* The process that is measured: it starts a child, and passes on its number once it has been waited for. */
static void measured(int in, int out) {
    int child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "measured");
    if (read(in, &child, sizeof(child)) != sizeof(child))
        _exit(1);
    child = fork();
    if (child == 0)
        call_and_end("child");
    waitpid(child, NULL, 0);
    if (write(out, &child, sizeof(child)) != sizeof(child))
        _exit(1);
    for (;;)
        pause();
}

static int reuse(void) {
    int to[2], from[2], number = 0;
    if (pipe(to) != 0 || pipe(from) != 0)
        return 1;
    int process = fork();
    if (process == 0)
        measured(to[0], from[1]);
    say("ready", process);
    wait_for_line();
    if (write(to[1], &number, sizeof(number)) != sizeof(number) || read(from[0], &number, sizeof(number)) != sizeof(number))
        return 1;
    pid_t wanted = number;
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&wanted, .set_tid_size = 1};
    long stranger = syscall(SYS_clone3, &args, sizeof(args));
    if (stranger == 0)
        call_and_end("stranger");
    if (stranger > 0)
        waitpid((pid_t)stranger, NULL, 0);
    say(stranger > 0 ? "reused" : "not reused", number);
    wait_for_line();
    return 0;
}

int main(int count, char **words) {
    return count > 1 && strcmp(words[1], "reuse") == 0 ? reuse() : many();
}
