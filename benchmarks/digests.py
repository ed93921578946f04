"""Compares digests of short runs, to check that a change of the code does not change results.

``python -m benchmarks.digests compare`` runs presets on TensorFlow and JAX, with one environment and with three copies.
It computes SHA-256 digests of their weights, memories and CSV files. These digests and the counters must be equal to
the recorded ones in ``tests/digests``. ``record`` runs every case twice, in two orders, and writes the file. ``--only
NAME`` chooses a preset.

Digests depend on the processor, so there is a file for each kind of processor. They also depend on the versions of the
libraries. If these versions differ from the recorded ones, ``compare`` prints the difference: then record a file with
the old code on the same machine.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any, Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
DIRECTORY = ROOT / "tests" / "digests"
FRAMEWORKS = ("tensorflow", "jax")
COPIES = (1, 3)
SEED = 11
SCHEDULE = (
    "heatup_steps=EnvironmentSteps({heatup}); improve_steps=EnvironmentSteps({steps}); "
    "steps_between_evaluation_periods=EnvironmentSteps({period}); evaluation_steps=EnvironmentEpisodes(2)"
)


@dataclass(frozen=True)
class Run:
    """A short run of a preset.

    :param preset: the name of the preset, or the path of its file in the repository
    :param settings: settings in the syntax of ``-cp``
    :param steps: environment steps of training, the sum over all copies; the agent is evaluated after half of the steps
        and at the end
    """

    preset: str
    settings: str = ""
    level: str | None = None
    steps: int = 300
    heatup: int = 60

    @property
    def name(self) -> str:
        return pathlib.PurePath(self.preset).stem


_SEGMENTS = (
    "agent_params.algorithm.num_consecutive_playing_steps=EnvironmentSteps(128); "
    "agent_params.algorithm.num_steps_between_copying_online_weights_to_target=EnvironmentSteps(128)"
)
_EPOCHS = f"{_SEGMENTS}; agent_params.algorithm.optimization_epochs=2"
RUNS = (
    Run("CartPole_DQN"),
    Run("CartPole_Rainbow"),
    Run("tests/digests/recurrent_ddqn.py"),
    Run("CartPole_NStepQ"),
    Run("CartPole_A3C"),
    Run("Mujoco_A3C_LSTM", level="inverted_pendulum"),
    Run("CartPole_PG"),
    Run("CartPole_ClippedPPO", _EPOCHS, steps=384),
    Run("Mujoco_ClippedPPO", _EPOCHS, "hopper", steps=384),
    Run("Mujoco_PPO", _SEGMENTS, "inverted_pendulum", steps=384),
    Run("CartPole_ACER", "agent_params.algorithm.num_transitions_to_start_replay=100"),
    Run("Mujoco_TD3", level="inverted_pendulum"),
    Run("Mujoco_SAC", level="inverted_pendulum", steps=150),
    Run("ExplorationChain_Bootstrapped_DQN"),
    Run("CartPole_NEC", steps=150),
    Run("BitFlip_DQN_HER"),
)


@dataclass(frozen=True)
class Case:
    """A run on one framework, with a number of copies of the environment."""

    framework: str
    run: Run
    copies: int

    @property
    def name(self) -> str:
        return f"{self.framework}/{self.run.name}/{self.copies}"


def cases(frameworks: Iterable[str], only: str = "*", copies: Iterable[int] = COPIES) -> list[Case]:
    """The cases of all presets whose names match ``only``."""
    return [
        Case(framework, run, number)
        for framework in frameworks
        for run in RUNS
        if fnmatch.fnmatch(run.name, only)
        for number in copies
    ]


def digest_of(case: Case) -> dict[str, Any]:
    """Train with the settings of the case. :return: the digests of the results, by their names"""
    from rl_coach.coach import CoachInterface

    run = case.run
    schedule = SCHEDULE.format(heatup=run.heatup, steps=run.steps, period=run.steps // 2)
    settings = "; ".join(
        part for part in (schedule, f"env_params.num_environments={case.copies}", run.settings) if part
    )
    with tempfile.TemporaryDirectory() as directory:
        graph = CoachInterface(
            preset=str(ROOT / run.preset) if run.preset.endswith(".py") else run.preset,
            level=run.level,
            framework=case.framework,
            custom_parameter=settings,
            experiment_path=directory,
            seed=SEED,
            num_threads=1,
            no_summary=True,
        ).run()
        (arrays,) = pathlib.Path(directory).rglob("*.ckpt/arrays.safetensors")
        (table,) = pathlib.Path(directory).rglob("*.csv")
        weights, memory = digests_of_arrays(arrays.read_bytes(), "/networks/", "/memory/")
        return {
            "weights": weights,
            "memory": memory,
            "csv": digest_of_table(table),
            "counters": {
                phase.name: {unit.__name__: count for unit, count in counter.counters.items()}
                for phase, counter in graph.total_steps_counters.items()
                if any(counter.counters.values())
            },
        }


def digests_of_arrays(safetensors: bytes, *parts: str) -> list[str]:
    """For each part, the SHA-256 of all arrays with the part in their names.

    The digest does not depend on the names and the order of the arrays.
    """
    size = int.from_bytes(safetensors[:8], "little")
    header, data = json.loads(safetensors[8 : 8 + size]), memoryview(safetensors)[8 + size :]
    found: dict[str, list[str]] = {part: [] for part in parts}
    for name, entry in header.items():
        for part in parts:
            if part in f"/{name}/":
                begin, end = entry["data_offsets"]
                found[part].append(f"{entry['dtype']} {entry['shape']} {hashlib.sha256(data[begin:end]).hexdigest()}")
    return [hashlib.sha256("\n".join(sorted(found[part])).encode()).hexdigest() for part in parts]


def digest_of_table(path: pathlib.Path) -> str:
    """The SHA-256 of a CSV file without the column ``Wall-Clock Time``."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    kept = [index for index, name in enumerate(rows[0]) if name != "Wall-Clock Time"]
    return hashlib.sha256(json.dumps([[row[index] for index in kept] for row in rows]).encode()).hexdigest()


def digests_of(chosen: list[Case]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run the cases of each framework in one process, and yield the name and the digests of each case.

    :return: the name and the digests; if a case fails, ``error`` with its message instead of the digests
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(code()), os.environ.get("PYTHONPATH", "")])}
    for framework in dict.fromkeys(case.framework for case in chosen):
        names = [case.name for case in chosen if case.framework == framework]
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [sys.executable, __file__, "run", *names],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
            assert process.stdout is not None
            for line in process.stdout:
                name, digests = json.loads(line)
                names.remove(name)
                yield name, digests
            if process.wait() or names:
                errors.seek(0)
                for name in names:
                    yield name, {"error": f"its process ended with {process.returncode}: {errors.read()[-2000:]}"}


def code() -> pathlib.Path:
    """The directory from which ``rl_coach`` is imported."""
    found = importlib.util.find_spec("rl_coach")
    if found is None or found.origin is None:
        raise SystemExit("rl_coach is not installed, and PYTHONPATH does not name a directory that has it")
    return pathlib.Path(found.origin).parents[1]


def run_here(names: list[str]) -> None:
    """Run cases in this process, and print a line of JSON for each."""
    results = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)  # Coach's prints would mix with the results
    known = {case.name: case for case in cases(FRAMEWORKS)}
    for name in names:
        try:
            digests = digest_of(known[name])
        except Exception as error:
            digests = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps([name, digests]), file=results, flush=True)


def this_machine() -> dict[str, str]:
    """The properties of the machine that change digests: the processor, and the versions of Python and packages."""
    packages = ("tensorflow", "keras", "jax", "jaxlib", "numpy", "onnxruntime", "gymnasium", "mujoco")
    return {
        "processor": f"{platform.machine()} {' '.join(_vector_instructions())}".strip(),
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
    }


def _vector_instructions() -> list[str]:
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()
    except OSError:
        return []
    return [name for name in ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile") if name in flags]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def record(chosen: list[Case], file: pathlib.Path) -> int:
    """Run each case twice and write the digests. The digests of other cases stay in the file.

    :return: the number of cases that failed or gave two different digests; these cases are not written
    """
    machine = this_machine()
    kept = json.loads(file.read_text())["digests"] if file.exists() else {}
    if kept and json.loads(file.read_text())["machine"] != machine:
        print(f"{file} was recorded on another kind of machine: its digests are dropped")
        kept = {}
    first, bad = {}, 0
    for name, digests in digests_of(chosen):
        first[name] = digests
        print(f"{name}: {_differences(digests, digests) or 'done once'}", flush=True)
    for name, digests in digests_of(chosen[::-1]):
        different = _differences(first[name], digests)
        print(f"{name}: {different or 'the same twice'}", flush=True)
        if different:
            bad += 1
        else:
            kept[name] = digests
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": machine, "digests": dict(sorted(kept.items()))}, indent=1) + "\n")
    return bad


def compare(chosen: list[Case], file: pathlib.Path) -> int:
    """Run the cases and print the cases with digests that differ from the file.

    :return: the number of cases that differ

    """
    if not file.exists():
        raise SystemExit(f"there is no {file}: record it with the old code on a processor of this kind")
    recorded, machine, bad = json.loads(file.read_text()), this_machine(), 0
    changed = [
        f"{part} {old}, here {machine[part]}" for part, old in recorded["machine"].items() if machine[part] != old
    ]
    if changed:
        print(f"{file} was recorded on another kind of machine: {'; '.join(changed)}.")
        print("Digests may differ though the code does not. Record a file with the old code on this machine.")
    for name, digests in digests_of(chosen):
        expected = recorded["digests"].get(name)
        different = _differences(digests if expected is None else expected, digests)
        different = different or ("not recorded" if expected is None else "")
        print(f"{name}: {different or 'equal'}", flush=True)
        bad += bool(different)
    print(f"{len(chosen) - bad} of {len(chosen)} cases are equal" + (", on another kind of machine" if changed else ""))
    return bad


def _differences(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """The parts with different digests, as text; empty if all are equal."""
    if "error" in {**expected, **found}:
        return f"FAILED: {found.get('error') or expected.get('error')}"
    parts = [part for part in expected if expected[part] != found.get(part)]
    if not parts:
        return ""
    counters = f" ({expected['counters']} became {found['counters']})" if "counters" in parts else ""
    return f"DIFFERS in {', '.join(parts)}{counters}"


def main() -> int:
    """Run the command ``record`` or ``compare``.

    :return: the exit code, 1 if any case differs
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.digests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["record", "compare", "run"])
    parser.add_argument("names", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--framework", choices=FRAMEWORKS, help="both, unless one is chosen")
    parser.add_argument("--only", default="*", metavar="NAME", help="a preset, or a pattern of presets' names")
    parser.add_argument("--copies", type=int, choices=COPIES, help="of the environment; both, unless one is chosen")
    own = DIRECTORY / f"{this_machine()['processor'].replace(' ', '_')}.json"
    parser.add_argument("--file", type=pathlib.Path, default=own, help="default: %(default)s")
    options = parser.parse_args()
    if options.command == "run":
        run_here(options.names)
        return 0
    frameworks = [options.framework] if options.framework else FRAMEWORKS
    chosen = cases(frameworks, options.only, [options.copies] if options.copies else COPIES)
    if not chosen:
        parser.error(f"no preset is called {options.only}; there are {', '.join(run.name for run in RUNS)}")
    print(f"runs of the rl_coach in {code()}", flush=True)
    bad = (record if options.command == "record" else compare)(chosen, options.file)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
