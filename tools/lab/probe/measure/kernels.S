/* The fat binary of kernels.cu as a symbol; REPRISE_PROBE_FATBIN is its path, given by CMakeLists.txt. */
  .section .rodata
  .global reprise_probe_kernels
  .hidden reprise_probe_kernels
  .balign 64
reprise_probe_kernels:
  .incbin REPRISE_PROBE_FATBIN
  .quad 0
  .section .note.GNU-stack, "", @progbits
