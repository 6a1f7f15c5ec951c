// NVML's functions as the stand-in exports them: one jump each. A slot holds the real function's address; before the first
// call of any it holds the address of code that finds all. NVML passes nothing in vector registers.

        .text
        .set    row, 0

.macro nvml_slot symbol
        .pushsection .data.rel.local.nvml_slots, "aw", @progbits
.Lslot_\symbol:
        .quad   .Lfirst_\symbol
        .popsection
.Lfirst_\symbol:
        movl    $row, %r11d
        jmp     first_call
        .set    row, row + 1
.endm

.macro nvml_forwarded symbol
        .globl  \symbol
        .type   \symbol, @function
        .p2align 4
\symbol:
        .cfi_startproc
        endbr64
        jmp     *.Lslot_\symbol(%rip)
        .cfi_endproc
        .size   \symbol, . - \symbol
        nvml_slot \symbol
.endm

// Written in C++ (library.cpp).
.macro nvml_hooked symbol
        nvml_slot \symbol
.endm

        .pushsection .data.rel.local.nvml_slots, "aw", @progbits
        .globl  reprise_nvml_slots
        .hidden reprise_nvml_slots
reprise_nvml_slots:
        .popsection

        .hidden reprise_nvml_find
        .type   first_call, @function
        .p2align 4
first_call:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        subq    $64, %rsp
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movq    %r11, 48(%rsp)
        call    reprise_nvml_find
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    24(%rsp), %rcx
        movq    32(%rsp), %r8
        movq    40(%rsp), %r9
        movq    48(%rsp), %r11
        leaq    reprise_nvml_slots(%rip), %rax
        movq    (%rax,%r11,8), %r11
        xorl    %eax, %eax
        leave
        .cfi_def_cfa rsp, 8
        jmp     *%r11
        .cfi_endproc
        .size   first_call, . - first_call

#define REPRISE_NVML(class, symbol) nvml_##class symbol
#include "preload/nvml/names.def"

        .section .note.GNU-stack, "", @progbits
