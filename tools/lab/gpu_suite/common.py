"""What the sections of tools/lab/gpu-suite share: the build, the device, running programs within a time, results on disk."""
import ctypes
import dataclasses
import datetime
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tty

DRIVER_PATHS = ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
                "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")


def say(text):
    print(f"reprise: {text}", file=sys.stderr, flush=True)


class Skipped(Exception):
    """A section, or a part of one, that cannot run here; the text says why."""


@dataclasses.dataclass
class Device:
    name: str
    driver: pathlib.Path
    driver_version: str
    simulated: bool

    @property
    def slug(self):
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower().replace("nvidia", "")).strip("-") or "gpu"


class Clock:
    """The time that a section has left."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def need(self, seconds, what):
        if self.left() < seconds:
            raise Skipped(f"{what}: the section's time was up")


@dataclasses.dataclass
class Suite:
    root: pathlib.Path
    build: pathlib.Path
    out: pathlib.Path
    device: Device
    python: str

    @property
    def folder(self):
        return self.build / "gpu-suite" if self.device.simulated else self.out

    def path(self, name, suffix=".json"):
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        first = self.folder / f"{name}-{self.device.slug}-{stamp}{suffix}"
        path, number = first, 2
        while path.exists():
            path = first.with_name(f"{first.stem}-{number}{suffix}")
            number += 1
        return path

    def binary(self, name):
        path = self.build / "bin" / name
        if not path.exists():
            raise Skipped(f"{name} is not in {self.build / 'bin'}")
        return path

    def environment(self, **more):
        """For a plain run of a program: the driver that was chosen, and where the runtime libraries are."""
        environment = {**os.environ, "REPRISE_KEEP_PLANS": "0", **more}  # each run is the first one
        folders = [environment.get("LD_LIBRARY_PATH", ""), "/usr/local/cuda/lib64"]
        if self.device.simulated:
            folders.insert(0, str(self.device.driver.parent))
            # The programs are small here; chunks in the same proportion to their tensors as on a GPU.
            environment.setdefault("REPRISE_SIM_GRANULARITY", "64KiB")
        environment["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
        environment["REPRISE_DRIVER"] = str(self.device.driver)
        return environment


def prepare_build(root, given):
    """The build folder to use, built when none is given; None (and a line) when that fails."""
    if given is not None:
        if (given / "bin" / "reprise-probe").exists():
            return given.resolve()
        say(f"{given} is no built tree: {given / 'bin' / 'reprise-probe'} is not there")
        return None
    build = root / "build" / "release"
    if shutil.which("cmake") is None:
        if (build / "bin" / "reprise-probe").exists():
            return build
        say("no cmake here: give a tree that was built elsewhere with --build")
        return None
    for command in (["tools/setup"], ["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release"]):
        if subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL).returncode == 0:
            continue
        say(f"{' '.join(command)} failed")
        if command == ["tools/setup"]:  # without a network, say; what matters may be there
            continue
        if "--build" not in command and (build / "bin" / "reprise-probe").exists():
            say(f"{build} was configured elsewhere: taking it as it was built")
            return build
        return None
    return build


def real_driver():
    chosen = os.environ.get("REPRISE_DRIVER")
    for path in [chosen] if chosen else ["libcuda.so.1", *DRIVER_PATHS]:
        try:
            return ctypes.CDLL(path), loaded_path(path)
        except OSError:
            continue
    return None, None


def loaded_path(name):
    """The file behind a library that has just been loaded."""
    if "/" in name:
        return pathlib.Path(name).resolve()
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if "/libcuda.so" in path:
            return pathlib.Path(path).resolve()
    return pathlib.Path(name)


def find_device(build):
    """The GPU, or the simulated device of the build, or None (and a line)."""
    library, path = real_driver()
    if library is not None and not hasattr(library, "repriseSimGetStats"):
        count, name, version = ctypes.c_int(0), ctypes.create_string_buffer(256), ctypes.c_int(0)
        if library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0:
            library.cuDeviceGetName(name, 256, 0)
            library.cuDriverGetVersion(ctypes.byref(version))
            return Device(name.value.decode(), path, f"{version.value // 1000}.{version.value % 1000 // 10}", False)
    simulated = build / "lib" / "sim" / "libcuda.so.1"
    if simulated.exists():
        return Device("simulated", simulated, "simulated", True)
    say("no GPU here, and no simulated device in the build")
    return None


@dataclasses.dataclass
class Finished:
    code: int
    output: str
    errors: str
    seconds: float
    timed_out: bool = False
    line_times: list = dataclasses.field(default_factory=list)  # of each line of output, seconds from the start

    def problem(self):
        last = ([line for line in self.errors.splitlines() if line.strip()] or [""])[-1]
        return f"ended with {self.code}{', out of time' if self.timed_out else ''}: {last}"


class _Stopper:
    """Ends a process group when its time is up: SIGTERM, so that it may clean up, and SIGKILL `grace` seconds later."""

    def __init__(self, process, seconds, grace):
        self.process, self.late, self.grace = process, False, grace
        self.timer = threading.Timer(max(0.1, seconds), self.expire)
        self.timer.daemon = True
        self.timer.start()

    def expire(self):
        self.late = True
        self.stop()

    def stop(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(self.grace)
                return
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue


def _read_lines(descriptor):
    """Yields what a pseudo terminal gives, line by line, until its other side is closed."""
    rest = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # how Linux says that the last writer is gone
            piece = b""
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest


def run(command, environment, seconds, cwd=None, grace=5):
    """Runs a program for at most `seconds`. Its output goes to a pseudo terminal, so that it comes line by line and
    line_times means something for programs that do not flush."""
    start = time.monotonic()
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    with tempfile.TemporaryFile(mode="w+", errors="replace") as errors:
        process = subprocess.Popen([str(part) for part in command], env=environment, cwd=cwd, stdin=subprocess.DEVNULL,
                                   stdout=theirs, stderr=errors, start_new_session=True)
        os.close(theirs)
        stopper, lines, times = _Stopper(process, seconds, grace), [], []
        try:
            for line in _read_lines(ours):
                times.append(time.monotonic() - start)
                lines.append(line.decode(errors="replace"))
            code = process.wait()
        except BaseException:
            stopper.stop()
            raise
        finally:
            stopper.timer.cancel()
            os.close(ours)
        errors.seek(0)
        output = "".join(line + "\n" for line in lines)
        return Finished(code, output, errors.read(), time.monotonic() - start, stopper.late, times)


def commit_of(suite):
    """Of what is measured: the build may be another than the sources that it lies in."""
    program = suite.build / "bin" / "reprise"
    told = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if program.exists() else ""
    found = re.search(r"\(([0-9a-f]{7,}[^,)]*)", told)
    return found.group(1) if found else "unknown"


def header(suite, section):
    return {"format": "reprise-gpu-suite", "version": 1, "section": section,
            "device": "simulated" if suite.device.simulated else suite.device.name,
            "driver_cuda": suite.device.driver_version,
            "measured_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "commit": commit_of(suite)}


def read(path):
    """A result, also one that was compressed to be kept."""
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(document, indent=1) + "\n")
    partial.rename(path)
    say(f"wrote {path}")


def run_section(suite, name, function, seconds):
    """True when the section did what it could and nothing failed."""
    document = header(suite, name)
    start = time.monotonic()
    good = False
    try:
        good = function(suite, document, Clock(seconds))
    except Skipped as skipped:
        say(f"{name}: {skipped}")
        document["skipped"], good = str(skipped), True
    except Exception as error:  # whatever it is, what was measured is written, and the next section has its turn
        say(f"{name}: {type(error).__name__}: {error}")
        document["problem"] = f"{type(error).__name__}: {error}"
    finally:
        document["seconds"] = round(time.monotonic() - start, 1)
        document["ok"] = good
        write(suite.path(name), document)
    return good
