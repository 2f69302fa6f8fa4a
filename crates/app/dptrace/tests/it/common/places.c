// A program that computes the same again and again, and says whether it was always right. Its debug information and its
// probes' notes lead into the middle of instructions.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((section(".probes"), used)) volatile unsigned short one = 1, other = 1;

#define NOTE(NAME, PLACE, SEMAPHORE) \
    ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 8, 1f-0f, 3\n.asciz \"stapsdt\"\n" \
    "0: .8byte " PLACE ", 0, " SEMAPHORE "\n.asciz \"places\"\n.asciz \"" NAME "\"\n.asciz \"\"\n1: .balign 4\n.popsection\n"

// mov $0x90909090, %eax; nop; add %rdi, %rax; ret: the instructions begin at 0, 5, 6 and 9.
__asm__(".text\n.globl rec\n.type rec,@function\nrec: mov $0x90909090, %eax\nprobe: nop\n add %rdi, %rax\n ret\n"
        ".size rec, .-rec\n"
        NOTE("good", "probe", "0") NOTE("inside", "rec+2", "0") NOTE("mov", "rec", "0")
        ".type gate,@function\ngate: nop\n ret\n.size gate, .-gate\n"
        NOTE("one", "gate", "one") NOTE("other", "gate", "other")
        // A probe in so many places that attaching takes a while.
        ".type many,@function\nmany:\n.rept 2000\n9: nop\n" NOTE("many", "9b", "one") ".endr\n ret\n.size many, .-many\n");
uint64_t rec(uint64_t n);

__attribute__((noinline)) uint64_t lines(void) {
    uint64_t got;
    // mov $0x90001f0f, %eax, whose number is two nops: the line table has line 7777 there.
    __asm__ volatile(".byte 0xb8\n.loc 1 7777 0\nnopl (%%rax)\nnop" : "=a"(got));
    return got;
}

int main(void) {
    fcntl(0, F_SETFL, O_NONBLOCK);
    fprintf(stderr, "ready\n");
    uint64_t wrong = 0;
    char byte;
    // Until standard input is closed.
    for (uint64_t n = 0; n % 256 || read(0, &byte, 1) != 0; n++)
        wrong += rec(n) != n + 0x90909090 || lines() != 0x90001f0f;
    printf("wrong: %lu\n", (unsigned long)wrong);
    return wrong != 0;
}
