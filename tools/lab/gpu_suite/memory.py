"""The most device memory in use while a program runs, seen from outside: NVML, else nvidia-smi, else nothing."""
import ctypes
import shutil
import subprocess
import threading


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def _nvml_reader():
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    device = ctypes.c_void_p()
    if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) != 0:
        return None
    memory = _Memory()

    def read():
        return memory.used if library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0 else None

    return read


def _smi_reader():
    if shutil.which("nvidia-smi") is None:
        return None

    def read():
        done = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True)
        return int(done.stdout) << 20 if done.returncode == 0 and done.stdout.strip().isdigit() else None

    return read


class Sampler:
    """with Sampler(...) as sampler: ...; sampler.peak: bytes above what was in use before, None when nothing could tell."""

    def __init__(self, simulated):
        self._read = None if simulated else _nvml_reader() or _smi_reader()
        self._stop = threading.Event()
        self._thread = None
        self.peak = None

    def __enter__(self):
        before = self._read() if self._read else None
        if before is None:
            return self

        def sample():
            while not self._stop.wait(0.005):
                now = self._read()
                if now is not None:
                    self.peak = max(self.peak or 0, now - before)

        self._thread = threading.Thread(target=sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *unused):
        self._stop.set()
        if self._thread:
            self._thread.join()
