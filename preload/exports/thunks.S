// The exported functions that have no hook in preload/hooks, one thunk per row of hooks.def. A slot holds the driver's
// address; before the first call it holds the address of code that finds it. A thunk leaves every argument register as
// it is.

        .text

#define REPRISE_ROW(symbol, class, ...) row_##class symbol

        .set    row_index, 0

// The slot of a row, its look-up code, and our own address of it (getprocaddress.cpp).
.macro row_slot symbol
        .pushsection .data.rel.local.reprise_slots, "aw", @progbits
.Lslot_\symbol:
        .quad   .Lresolve_\symbol
        .popsection
        .pushsection .data.rel.ro.reprise_exports, "aw", @progbits
        .quad   \symbol
        .popsection
.Lresolve_\symbol:
        movl    $row_index, %r11d
        jmp     reprise_lazy_entry
.endm

.macro export_begin symbol
        .globl  \symbol
        .type   \symbol, @function
        .p2align 4
\symbol:
        .cfi_startproc
        endbr64
.endm

.macro export_end symbol
        .cfi_endproc
        .size   \symbol, . - \symbol
        row_slot \symbol
        .set    row_index, row_index + 1
.endm

.macro row_harmless symbol
        export_begin \symbol
        jmp     *.Lslot_\symbol(%rip)
        export_end \symbol
.endm

.macro row_watched symbol
        export_begin \symbol
        testb   $1, reprise_watch(%rip)
        jne     .Lwatched_\symbol
        jmp     *.Lslot_\symbol(%rip)
.Lwatched_\symbol:
        movl    $row_index, %r11d
        jmp     reprise_ordered_entry
        export_end \symbol
.endm

.macro row_ordered symbol
        row_watched \symbol
.endm
.macro row_opaque symbol
        row_watched \symbol
.endm
.macro row_graph_update symbol
        row_watched \symbol
.endm

.macro row_refused symbol
        export_begin \symbol
        testb   $2, reprise_watch(%rip)
        jne     .Lrefuse_\symbol
        jmp     *.Lslot_\symbol(%rip)
.Lrefuse_\symbol:
        movl    $row_index, %edi
        jmp     reprise_refuse_row
        export_end \symbol
.endm

// Written in C++; only the slot and the address of the export are made here.
.macro row_hooked symbol
        row_slot \symbol
        .set    row_index, row_index + 1
.endm

// Calls `function(row, where the argument registers are saved)` with every argument register kept, then jumps to what it
// returned. From the saved ones on: 6 argument registers at 0, what is below at 48, the caller's stack arguments at 208.
.macro keep_arguments_and_call entry, function
        .type   \entry, @function
        .p2align 4
\entry:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        subq    $192, %rsp
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movq    %rax, 48(%rsp)
        movaps  %xmm0, 64(%rsp)
        movaps  %xmm1, 80(%rsp)
        movaps  %xmm2, 96(%rsp)
        movaps  %xmm3, 112(%rsp)
        movaps  %xmm4, 128(%rsp)
        movaps  %xmm5, 144(%rsp)
        movaps  %xmm6, 160(%rsp)
        movaps  %xmm7, 176(%rsp)
        movl    %r11d, %edi
        movq    %rsp, %rsi
        call    \function
        movq    %rax, %r11
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    24(%rsp), %rcx
        movq    32(%rsp), %r8
        movq    40(%rsp), %r9
        movq    48(%rsp), %rax
        movaps  64(%rsp), %xmm0
        movaps  80(%rsp), %xmm1
        movaps  96(%rsp), %xmm2
        movaps  112(%rsp), %xmm3
        movaps  128(%rsp), %xmm4
        movaps  144(%rsp), %xmm5
        movaps  160(%rsp), %xmm6
        movaps  176(%rsp), %xmm7
        leave
        .cfi_def_cfa rsp, 8
        jmp     *%r11
        .cfi_endproc
        .size   \entry, . - \entry
.endm

        .hidden reprise_watch
        .hidden reprise_resolve_row
        .hidden reprise_before_row
        .hidden reprise_refuse_row

        .pushsection .data.rel.local.reprise_slots, "aw", @progbits
        .globl  reprise_slots
        .hidden reprise_slots
        .p2align 3
reprise_slots:
        .popsection
        .pushsection .data.rel.ro.reprise_exports, "aw", @progbits
        .globl  reprise_exports
        .hidden reprise_exports
        .p2align 3
reprise_exports:
        .popsection

keep_arguments_and_call reprise_lazy_entry, reprise_resolve_row
keep_arguments_and_call reprise_ordered_entry, reprise_before_row

#include "preload/exports/hooks.def"

        .section .note.GNU-stack, "", @progbits
