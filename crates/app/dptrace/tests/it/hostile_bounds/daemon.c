// Calls itself ovs-vswitchd with a PMD thread, and answers whatever is asked at the socket of its first argument with values of JSON
// that take many times the bytes of their text.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void *poller(void *unused) {
    prctl(PR_SET_NAME, "pmd-c00/id:8");
    pause();
    return unused;
}

int main(int count, char **words) {
    pthread_t thread;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (count < 3)
        return 2;
    prctl(PR_SET_NAME, "ovs-vswitchd");
    size_t values = strtoul(words[2], 0, 10), length = 0;
    char *answer = malloc(values * 7 + 100);
    length += sprintf(answer, "{\"id\":0,\"error\":null,\"result\":[");
    for (size_t nth = 0; nth < values; nth++, length += 7)
        memcpy(answer + length, "{\"\":0},", 7);
    length += sprintf(answer + length, "0]}");
    strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 8))
        return 3;
    pthread_create(&thread, 0, poller, 0);
    fputs("ready\n", stderr);
    for (;;) {
        int client = accept(listener, 0, 0);
        char question[1000];
        if (read(client, question, sizeof question) > 0)
            for (size_t done = 0; done < length;) {
                ssize_t sent = send(client, answer + done, length - done, MSG_NOSIGNAL);
                if (sent <= 0)
                    break;
                done += sent;
            }
        close(client);
    }
}
