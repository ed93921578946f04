import atexit
import os
import shutil
import signal
import tempfile

from hypothesis import settings

from tests.browser import browser
from tests.redis_server import redis

__all__ = ["browser", "redis"]

# Tests write to no directory of the user's.
os.environ.setdefault("COACH_COMPILATION_CACHE", "off")

# Tests make a few updates of small networks and wait for XLA to compile them. Without its optimizations, and above all
# without the code generator that fuses operations, it takes a third of the time on JAX and two thirds on TensorFlow.
# Both frameworks read this when they are imported, in this process and all that it starts.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false",
)

# Many tests compile the same steps. All processes of a run share them, and no run gets those of another.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="coach-tests-compiled-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)

# Tests share their machine with others: how long an example takes says nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# The redis-server that embedded Redis finds first, in this process and all that it starts; `make faults` tests several.
if redis_server := os.environ.get("COACH_TEST_REDIS"):
    os.environ["PATH"] = f"{os.path.dirname(os.path.abspath(redis_server))}{os.pathsep}{os.environ['PATH']}"

# PyTorch compiles a step in 20 seconds; tests of what is compiled switch it on.
os.environ.setdefault("COACH_TORCH_COMPILE", "off")

# A shell has what it starts in the background ignore Ctrl-C, and nohup a closed terminal; what the tests start would
# inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
