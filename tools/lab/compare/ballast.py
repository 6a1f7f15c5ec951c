"""Holds device memory so that a number of bytes is left to others, until stdin ends: ballast.py DRIVER BYTES.

For programs with managed memory, which have no limit of their own: what they use beyond these bytes has to leave the device.
"""
import ctypes
import sys

PIECE = 64 << 20


def main(driver, left):
    cuda = ctypes.CDLL(driver)

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status != 0:
            sys.exit(f"{name} answers {status}")

    context, free, total, address = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    while free.value > left:
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(min(PIECE, free.value - left)))
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    print(free.value, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
