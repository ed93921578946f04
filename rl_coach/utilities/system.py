"""The operating system: programs, paths, devices, ports, locks and clocks."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
import pkgutil
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from types import FrameType
from typing import Any, Callable, Iterable, Iterator

SECONDS_BETWEEN_LOOKS = 0.1


@contextlib.contextmanager
def handling(numbers: Iterable[int], handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    """Handle these signals in a ``with`` block of the main thread, and restore the old handlers at its end."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)


def program(name: str) -> str:
    """Command that calls a program of Coach: the program's name if the shell finds it, otherwise the program's path."""
    installed = pathlib.Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if not installed.exists() or (found and installed.samefile(found)):
        return name
    if not installed.is_relative_to(pathlib.Path.cwd()):
        return str(installed)
    below = installed.relative_to(pathlib.Path.cwd())
    return str(below) if below.parent.name else os.path.join(os.curdir, below)  # the shell does not find it by name


def shown(path: pathlib.Path) -> str:
    """A path for the user: relative if it is below the working directory."""
    return os.path.relpath(path) if path.is_relative_to(pathlib.Path.cwd()) else str(path)


def shell_command(name: str, *arguments: str) -> str:
    """A shell command line that calls a program of Coach."""
    return shlex.join([program(name), *arguments])


def get_base_dir() -> str:
    """The directory of the ``rl_coach`` package."""
    return str(pathlib.Path(__file__).resolve().parent.parent)


def break_file_path(path: str) -> tuple[str, str, str]:
    """The directory, the name and the extension of a file: ``"a/b.txt"`` gives ``("a", "b", ".txt")``."""
    base, extension = os.path.splitext(os.path.basename(path))
    return os.path.dirname(path), base, extension


def path_is_valid_dir(path: str) -> bool:
    """True if the path is a directory."""
    return os.path.isdir(path)


def get_latest_checkpoint(checkpoint_dir: str, checkpoint_prefix: str, checkpoint_file_extension: str) -> str:
    """The file ``<number>_...<prefix>....<extension>`` with the highest number; an empty string if there is none."""
    numbers = {
        file.name: int(number)
        for file in pathlib.Path(checkpoint_dir).iterdir()
        if file.is_file() and checkpoint_prefix in file.name and file.suffix == f".{checkpoint_file_extension}"
        for number in [file.name.split("_")[0]]
        if number.isdecimal()
    }
    return max(numbers, key=numbers.__getitem__, default="")


def set_gpu(gpu_id: int | str) -> None:
    """Show only one device to CUDA. Call this before a framework is imported."""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu_id)


def set_cpu() -> None:
    """Hide all CUDA devices. Call this before a framework is imported."""
    set_gpu("")


def get_open_port() -> int:
    """A free TCP port of this machine."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return listener.getsockname()[1]


def start_shell_command_and_wait(command: str) -> int:
    """Run a shell command in its own process group. :return: the exit code"""
    return subprocess.run(command, shell=True, start_new_session=True, check=False).returncode


def list_all_presets() -> list[str]:
    """The names of the presets that come with Coach, without the tuned presets, sorted."""
    found = importlib.util.find_spec(".presets", __package__.partition(".")[0])
    folders = [] if found is None else found.submodule_search_locations or []
    return sorted(module.name for module in pkgutil.iter_modules(folders) if not module.name.startswith("_"))


killed_processes: list[int] = []
"""The numbers (``id``) of commands to kill. Append the number of a command of ``threaded_cmd_line_run`` to kill it."""


def cmd_line_run(result: list, run_cmd: str, id: int = -1) -> None:
    """Run a command line in bash until it ends or is killed.

    :param result: its first element becomes the exit code
    :param id: the command's number in ``killed_processes``
    """
    process = subprocess.Popen(run_cmd, shell=True, executable="bash", start_new_session=True)
    while process.poll() is None:
        if id in killed_processes:
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=SECONDS_BETWEEN_LOOKS)
    result[0] = process.returncode


def threaded_cmd_line_run(run_cmd: str, id: int = -1) -> list:
    """Run a command line in bash in parallel with this program.

    :param id: the command's number in ``killed_processes``
    :return: a list; its first element is ``[None]`` until the command has ended, then the exit code
    """
    result: list = [[None]]
    threading.Thread(target=cmd_line_run, args=(result, run_cmd, id), name="runThread", daemon=True).start()
    return result


class ReaderWriterLock:
    """A lock: many threads may read at the same time, or one thread may write.

    Readers hold ``lock_writing``, which excludes writers; a writer holds ``lock_writing_and_reading``.
    """

    def __init__(self) -> None:
        self.num_readers_lock = threading.Lock()
        self.writers_lock = threading.Lock()
        self.num_readers = 0
        self.now_writing = False

    def some_worker_is_reading(self) -> bool:
        return self.num_readers > 0

    def some_worker_is_writing(self) -> bool:
        return self.now_writing

    def lock_writing_and_reading(self) -> None:
        """Wait until no thread reads or writes, then exclude all other threads."""
        self.writers_lock.acquire()
        self.now_writing = True

    def release_writing_and_reading(self) -> None:
        """Allow other threads to read and write again."""
        self.now_writing = False
        self.writers_lock.release()

    def lock_writing(self) -> None:
        """Wait until no thread writes, then exclude writers. Other threads may read."""
        with self.num_readers_lock:
            if self.num_readers == 0:
                self.writers_lock.acquire()
            self.num_readers += 1

    def release_writing(self) -> None:
        """End reading. After the last reader, writers are allowed again."""
        with self.num_readers_lock:
            self.num_readers -= 1
            if self.num_readers == 0:
                self.writers_lock.release()


class SharedMemoryScratchPad:
    """Store of named objects that threads share."""

    def __init__(self) -> None:
        self.dict: dict[str, Any] = {}
        self._changed = threading.Condition()

    def add(self, key: str, value: Any) -> None:
        """Store an object."""
        with self._changed:
            self.dict[key] = value
            self._changed.notify_all()

    def get(self, key: str, timeout: float = 30) -> Any:
        """The object with a name; None if no such object was stored within ``timeout`` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: key in self.dict, timeout)
            return self.dict.get(key)

    def internal_call(self, key: str, func: str, args: Any) -> Any:
        """Call a method of the object with a name, and return the result."""
        return getattr(self.dict[key], func)(*(args if isinstance(args, tuple) else (args,)))


class Timer:
    """Prints the number of seconds that a ``with`` block took.

    :param prefix: printed before the number
    """

    def __init__(self, prefix: str):
        self.prefix = prefix

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        print(self.prefix, time.perf_counter() - self.start)


class timeout:
    """Raises a ``TimeoutError`` in a ``with`` block of the main thread that lasts longer than ``seconds``."""

    def __init__(self, seconds: int = 1, error_message: str = "Timeout"):
        self.seconds = seconds
        self.error_message = error_message

    def handle_timeout(self, signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(self.error_message)

    def __enter__(self) -> None:
        self._handler_before = signal.signal(signal.SIGALRM, self.handle_timeout)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._handler_before)


class ProgressBar:
    """A progress bar on standard error.

    :param max_value: the value of the full bar
    """

    _WIDTH = 40

    def __init__(self, max_value: float):
        self.start_time = time.time()
        self.max_value = max_value
        self.current_value: float = 0

    def update(self, current_value: float, additional_info: str = "") -> None:
        """Show the current value."""
        self.current_value = current_value
        share = min(1.0, current_value / self.max_value)
        filled = round(share * self._WIDTH)
        bar = "#" * filled + "-" * (self._WIDTH - filled)
        seconds = time.time() - self.start_time
        sys.stderr.write(f"\r[{bar}] {share:4.0%} {seconds:.0f}s {additional_info}")
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        sys.stderr.write("\n")
