/* A probe `PROVIDER:tick(0, n)` with one place, whose note is written by hand, as <sys/sdt.h> would write it. PROVIDER is
 * defined by who includes this, as a string. */
#define TICK(n) \
    __asm__ volatile("990: nop\n" \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n" \
                     ".balign 4\n" \
                     ".4byte 992f-991f, 994f-993f, 3\n" \
                     "991: .asciz \"stapsdt\"\n" \
                     "992: .balign 4\n" \
                     "993: .8byte 990b\n" \
                     ".8byte _.stapsdt.base\n" \
                     ".8byte 0\n" \
                     ".asciz \"" PROVIDER "\"\n" \
                     ".asciz \"tick\"\n" \
                     ".asciz \"8@$0 8@%0\"\n" \
                     "994: .balign 4\n" \
                     ".popsection\n" \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
                     ".weak _.stapsdt.base\n" \
                     ".hidden _.stapsdt.base\n" \
                     "_.stapsdt.base: .space 1\n" \
                     ".popsection\n" \
                     :: "r"(n))
