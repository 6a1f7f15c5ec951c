/* The fat binary of digest.cu as a symbol; REPRISE_DIGEST_FATBIN is its path, given by digest.cmake. */
  .section .rodata
  .global reprise_digest_kernel
  .hidden reprise_digest_kernel
  .balign 64
reprise_digest_kernel:
  .incbin REPRISE_DIGEST_FATBIN
  .quad 0
  .section .note.GNU-stack, "", @progbits
