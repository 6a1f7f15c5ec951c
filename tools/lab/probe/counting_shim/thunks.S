// An entry for each row of hooks.def, which passes the call on to the driver with every argument as it was. All are weak: a
// function of this name in shim.cpp or memory_calls.cpp takes its place. A slot holds the driver's address; before the first
// call it leads to code that asks reprise_count_resolve() (real.cpp) for it.

        .text

#define REPRISE_INTEROP_ROW(...)
#define REPRISE_ROW(symbol, class, touches, stream, outputs, waits, base, version) thunk symbol, base, version

        .set    row_index, 0

.macro thunk symbol, base, version
        .weak   \symbol
        .type   \symbol, @function
        .p2align 4
\symbol:
.Lthunk_\symbol:
        jmp     *.Lslot_\symbol(%rip)
        .size   \symbol, . - \symbol
.Lresolve_\symbol:
        pushq   $row_index
        jmp     resolve_row
        .pushsection .data.rel.local.reprise_count_slots, "aw", @progbits
.Lslot_\symbol:
        .quad   .Lresolve_\symbol
        .popsection
        .pushsection .rodata.str1.1, "aMS", @progbits, 1
.Lname_\symbol:
        .asciz  "\symbol"
.Lbase_\symbol:
        .asciz  "\base"
        .popsection
        .pushsection .data.rel.ro.reprise_count_rows, "aw", @progbits
        .quad   .Lname_\symbol, .Lbase_\symbol, \version, \symbol, .Lthunk_\symbol
        .popsection
        .set    row_index, row_index + 1
.endm

        .pushsection .data.rel.local.reprise_count_slots, "aw", @progbits
        .p2align 3
slots:
        .popsection
        .pushsection .data.rel.ro.reprise_count_rows, "aw", @progbits
        .globl  reprise_count_rows
        .hidden reprise_count_rows
        .globl  reprise_count_rows_end
        .hidden reprise_count_rows_end
        .p2align 3
reprise_count_rows:
        .popsection

// On the stack: the row, the caller's return address.
        .hidden reprise_count_resolve
        .type   resolve_row, @function
        .p2align 4
resolve_row:
        pushq   %rax
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rcx
        pushq   %r8
        pushq   %r9
        subq    $136, %rsp
        movups  %xmm0, 0(%rsp)
        movups  %xmm1, 16(%rsp)
        movups  %xmm2, 32(%rsp)
        movups  %xmm3, 48(%rsp)
        movups  %xmm4, 64(%rsp)
        movups  %xmm5, 80(%rsp)
        movups  %xmm6, 96(%rsp)
        movups  %xmm7, 112(%rsp)
        movq    192(%rsp), %rdi
        call    reprise_count_resolve
        movq    192(%rsp), %rcx
        leaq    slots(%rip), %rdx
        movq    %rax, (%rdx,%rcx,8)
        movq    %rax, %r11
        movups  0(%rsp), %xmm0
        movups  16(%rsp), %xmm1
        movups  32(%rsp), %xmm2
        movups  48(%rsp), %xmm3
        movups  64(%rsp), %xmm4
        movups  80(%rsp), %xmm5
        movups  96(%rsp), %xmm6
        movups  112(%rsp), %xmm7
        addq    $136, %rsp
        popq    %r9
        popq    %r8
        popq    %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        popq    %rax
        addq    $8, %rsp
        jmp     *%r11
        .size   resolve_row, . - resolve_row

#include "preload/exports/hooks.def"

        .pushsection .data.rel.ro.reprise_count_rows, "aw", @progbits
reprise_count_rows_end:
        .popsection

        .section .note.GNU-stack, "", @progbits
