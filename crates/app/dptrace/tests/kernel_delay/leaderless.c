/* A process whose first thread ends before the others, and which runs another program then. It does each at a line. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_t first;

static void wait_for_line(void) {
    char byte = 0;
    while (read(0, &byte, 1) == 1 && byte != '\n') {
    }
}

static void *other(void *unused) {
    prctl(PR_SET_NAME, "other");
    pthread_join(first, NULL);
    puts("alone");
    fflush(stdout);
    wait_for_line();
    execl("/bin/sleep", "sleep", "0.1", (char *)NULL);
    exit(1);
}

int main(void) {
    pthread_t thread;
    first = pthread_self();
    if (pthread_create(&thread, NULL, other, NULL) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    wait_for_line();
    pthread_exit(NULL);
}
