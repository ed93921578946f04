"""``system.metrics``: the load of processor, memory and GPU during a run, for the dashboard.

    Wall-Clock Time,Processor (%),Memory (MB),GPU (%),GPU memory (MB)

The file has the form of a signal CSV. A row is written with each update of ``status.json``. The time is in minutes
since the run's start. A cell is empty if the system does not report the value: processor and memory need ``/proc``
(Linux), the GPU needs NVIDIA's driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pathlib

SYSTEM_FILE = "system.metrics"
METRICS = ("Processor (%)", "Memory (MB)", "GPU (%)", "GPU memory (MB)")
"""The busy share of all cores, the resident memory of the run's process, and the load and memory of the first GPU."""
_TIME = "Wall-Clock Time"
_NVML = "libnvidia-ml.so.1"
_LONGEST_NAME = 96


class SystemMetrics:
    """Appends rows to the ``system.metrics`` of a run. :param directory: the run's directory"""

    def __init__(self, directory: str | os.PathLike[str]):
        self._path = pathlib.Path(directory) / SYSTEM_FILE
        self._busy, self._total = _processor_times()

    def write(self, seconds: float) -> None:
        """Append a row. :param seconds: the time since the run's start

        :raises OSError: if the file cannot be written
        """
        values = [self._processor(), _memory(), *_gpu()]
        if all(value is None for value in values):
            return
        cells = [f"{seconds / 60:.5f}", *("" if value is None else f"{value:.1f}" for value in values)]
        with open(self._path, "a", encoding="utf-8") as file:
            if file.tell() == 0:
                file.write(",".join((_TIME, *METRICS)) + "\n")
            file.write(",".join(cells) + "\n")

    def _processor(self) -> float | None:
        busy, total = _processor_times()
        passed, worked = total - self._total, busy - self._busy
        self._busy, self._total = busy, total
        return 100.0 * worked / passed if passed > 0 else None


def _processor_times() -> tuple[int, int]:
    """The working time of all cores, and their total time, in the kernel's ticks; zeros if the times are unknown."""
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(text) for text in file.readline().split()[1:9]]
        return sum(ticks) - sum(ticks[3:5]), sum(ticks)  # without idle and waiting for disks
    return 0, 0


def _memory() -> float | None:
    """The resident memory of this process in MB."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError):
        return None


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


@functools.lru_cache(maxsize=1)
def _first_gpu() -> tuple[ctypes.CDLL, ctypes.c_void_p] | None:
    """NVIDIA's library and its handle of the first GPU; None without one."""
    try:
        library = ctypes.CDLL(_NVML)
    except OSError:
        return None
    device = ctypes.c_void_p()
    has_failed = library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    return None if has_failed else (library, device)


def _gpu() -> tuple[float | None, float | None]:
    """The load in percent and the used memory in MB of the first GPU."""
    found = _first_gpu()
    if found is None:
        return None, None
    library, device = found
    load, memory = _Utilization(), _Memory()
    knows_load = library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(load)) == 0
    knows_memory = library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    return float(load.gpu) if knows_load else None, memory.used / 1e6 if knows_memory else None


def gpu_name() -> str | None:
    """The name of the first GPU; None without one, or if this process hides it."""
    found = None if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") else _first_gpu()
    name = ctypes.create_string_buffer(_LONGEST_NAME)
    if found is None or found[0].nvmlDeviceGetName(found[1], name, _LONGEST_NAME):
        return None
    return name.value.decode(errors="replace")


def processor_name() -> str:
    """The model of the processor; empty if it is unknown."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    return ""
