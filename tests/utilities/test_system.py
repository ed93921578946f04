import os
import socket
import threading
import time

import pytest

from rl_coach import utils
from rl_coach.utils import ProgressBar, ReaderWriterLock, SharedMemoryScratchPad, Timer, timeout


def test_an_open_port_can_be_listened_on():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", utils.get_open_port()))


def test_paths(tmp_path):
    assert utils.break_file_path("a/b.c.txt") == ("a", "b.c", ".txt")
    assert utils.path_is_valid_dir(str(tmp_path)) and not utils.path_is_valid_dir(str(tmp_path / "none"))


def test_the_latest_checkpoint_is_that_of_the_highest_number(tmp_path):
    for name in ("9_main.ckpt", "10_main.ckpt", "11_main.txt", "12_other.ckpt", "main.ckpt"):
        (tmp_path / name).touch()
    assert utils.get_latest_checkpoint(str(tmp_path), "main", "ckpt") == "10_main.ckpt"
    assert utils.get_latest_checkpoint(str(tmp_path), "none", "ckpt") == ""


def test_devices(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    utils.set_gpu(1)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    utils.set_cpu()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_a_shell_command_is_waited_for(tmp_path):
    assert utils.start_shell_command_and_wait(f"echo done > {tmp_path}/file; exit 3") == 3
    assert (tmp_path / "file").read_text() == "done\n"


def test_readers_share_the_lock_and_keep_a_writer_out():
    lock, written = ReaderWriterLock(), threading.Event()

    def write():
        lock.lock_writing_and_reading()
        written.set()
        lock.release_writing_and_reading()

    lock.lock_writing()
    lock.lock_writing()
    assert lock.some_worker_is_reading() and not lock.some_worker_is_writing()
    writer = threading.Thread(target=write)
    writer.start()
    lock.release_writing()
    assert not written.is_set()
    lock.release_writing()
    writer.join(10)
    assert written.is_set() and not lock.some_worker_is_reading() and not lock.some_worker_is_writing()


def test_a_writer_keeps_all_out():
    lock = ReaderWriterLock()
    lock.lock_writing_and_reading()
    assert lock.some_worker_is_writing() and not lock.writers_lock.acquire(blocking=False)
    lock.release_writing_and_reading()
    assert lock.writers_lock.acquire(blocking=False)


def test_a_scratch_pad_waits_for_what_another_thread_leaves():
    pad = SharedMemoryScratchPad()
    threading.Timer(0.05, lambda: pad.add("memory", [1, 2])).start()
    assert pad.get("memory", timeout=10) == [1, 2]
    assert pad.internal_call("memory", "count", 2) == 1 and pad.internal_call("memory", "index", (2, 0)) == 1
    assert pad.get("nothing", timeout=0) is None


def test_a_block_that_lasts_too_long_is_ended():
    with pytest.raises(TimeoutError, match="too long"), timeout(0.05, "too long"):
        while True:
            pass
    with timeout(10):
        begun = time.perf_counter()
    assert time.perf_counter() - begun < 5


def test_timers_and_bars_are_printed(capsys):
    with Timer("took"):
        pass
    assert float(capsys.readouterr().out.removeprefix("took ")) >= 0
    bar = ProgressBar(10)
    bar.update(5, "half")
    bar.close()
    shown = capsys.readouterr().err
    assert "[" + "#" * 20 + "-" * 20 + "]  50%" in shown and shown.endswith("half\n")
