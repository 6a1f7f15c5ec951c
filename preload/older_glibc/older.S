// A function of our own for each row of older.def, known inside the library alone, that jumps to glibc's of the older
// version. All objects of the library, and the archives that are linked into it, find these before they find glibc's.
// The caller's address stays as it is, which dlsym and dlopen look at.

        .text

.macro older name version
        .symver reprise_older_\name, \name@\version
        .globl  \name
        .hidden \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        jmp     *reprise_older_\name@GOTPCREL(%rip)
        .cfi_endproc
        .size   \name, . - \name
.endm

#define REPRISE_OLDER(name, version) older name version
#include "preload/older_glibc/older.def"

        .section .note.GNU-stack, "", @progbits
