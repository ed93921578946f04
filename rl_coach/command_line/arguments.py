"""The flags and commands of ``coach``: their names, help texts and values.

The module imports no large package at the top, so that ``coach --help`` answers immediately.
"""

from __future__ import annotations

import argparse
import os
from typing import Any, NamedTuple, NoReturn, Sequence

from rl_coach import __version__
from rl_coach.installation import default_framework
from rl_coach.utilities.errors import CoachError, nearest, suggested

EXAMPLES = """\
examples:
  train until the pole stands, then stop:
    coach -p CartPole_DQN -asc
  choose the level, name the experiment, save a checkpoint every ten minutes:
    coach -p Atari_DQN -lvl pong -e my_pong -s 600 --seed 1
  train five seeds at the same time and print statistics over them:
    coach -p CartPole_DQN --seeds 5
  continue a run that was stopped:
    coach --resume experiments/my_pong/01_02_2026-10_00
  watch the agent that a run has trained:
    coach evaluate experiments/my_pong/01_02_2026-10_00 --render
  change settings of the preset:
    coach -p CartPole_PG -cp "agent_params.algorithm.discount=0.9"
  train on a cluster with eight workers:
    coach -p CartPole_ClippedPPO -dc -dcp cluster.ini -n 8
  write the trained policy into a folder, for use without a training framework:
    coach export experiments/my_pong/01_02_2026-10_00 -o pong_policy
"""

POLICY, FROZEN_GRAPH = "policy", "frozen-graph"

IMPORT_EXAMPLES = """\
examples:
  a policy of PPO with two towers of 64 x 64 units:
    coach import sb3 ppo_cartpole.zip -p tuned/CartPole_PPO -e from_sb3
  evaluate the agent, or train it further:
    coach evaluate experiments/from_sb3/01_02_2026-10_00
    coach --resume experiments/from_sb3/01_02_2026-10_00
"""

EXPORT_EXAMPLES = """\
examples:
  the newest checkpoint of an experiment:
    coach export experiments/my_run/01_02_2026-10_00 -o my_policy
  the checkpoint of the best evaluation:
    coach export experiments/my_run/01_02_2026-10_00/best -o my_policy
  only the network, for robots that load frozen graphs of TensorFlow:
    coach export my_policy -o my_graph --format frozen-graph
"""

CHECK_ENVIRONMENT_EXAMPLES = """\
examples:
  an environment that Gymnasium registers:
    coach check-env CartPole-v1
  your own environment:
    coach check-env path/to/file.py:MyEnvironment
"""

ALGORITHMS_EXAMPLES = """\
examples:
  all algorithms:
    coach algorithms
  algorithms for recorded data:
    coach algorithms "data set"
"""

DATASET_EXAMPLES = """\
examples:
  print the contents of a file:
    coach dataset info episodes.csv
  convert a data set of Minari to a CSV file in Coach's layout, and back:
    coach dataset convert minari:D4RL/door/human-v2 door.csv
    coach dataset convert door.csv minari:my/door-v0
  record 10,000 random steps, then 10,000 steps of a run's best policy:
    coach dataset record -p CartPole_DQN --steps 10000 -o random.csv
    coach dataset record -p CartPole_DQN --steps 10000 \\
      -crd experiments/my_run/01_02_2026-10_00/best -o minari:cartpole/dqn-v0

A data set is FILE.csv in Coach's layout, FILE.npz that a memory saved, FILE.p
that Intel's Coach pickled, or minari:ID. Coach can write FILE.csv and
minari:ID.
"""

EVALUATE_EXAMPLES = """\
examples:
  the newest checkpoint, in a window:
    coach evaluate experiments/my_run/01_02_2026-10_00 --render
  the best checkpoint, for 10,000 steps:
    coach evaluate experiments/my_run/01_02_2026-10_00 --steps 10000 \\
      -crd experiments/my_run/01_02_2026-10_00/best
  several runs at the same time, with statistics over them:
    coach evaluate experiments/my_run/01_02_2026-10_00 \\
      experiments/my_other_run/01_02_2026-11_00
  all runs that --seeds has started:
    coach evaluate experiments/my_seeds/01_02_2026-10_00
  a policy that coach fetch wrote (flags: --steps, -lvl, --seed and --render):
    coach evaluate CartPole_PPO_policy --steps 10000
"""

WATCH_EXAMPLES = """\
examples:
  a policy that coach fetch wrote, in a window:
    coach watch CartPole_PPO_policy
  the newest and the best checkpoint of a run:
    coach watch experiments/my_run/01_02_2026-10_00
    coach watch experiments/my_run/01_02_2026-10_00/best
  one episode as a file, also without a display:
    coach watch CartPole_PPO_policy --gif cartpole.gif
"""

SWEEP_EXAMPLES = """\
settings:
  path=value,value; path=value,value    each combination is trained
  path: as in -cp; or only its end, such as learning_rate (of all networks)
  value: as in -cp; with --random also uniform(low, high),
  log_uniform(low, high), integers(low, high), log_integers(low, high)
  file: settings in each line; settings of two lines are not combined

examples:
  four settings, three seeds each, two runs at the same time:
    coach sweep -p CartPole_DQN "learning_rate=1e-4,3e-4; discount=0.9,0.99" \\
      --seeds 3 --parallel 2 -cp "improve_steps=EnvironmentSteps(20000)"
  20 settings drawn at random:
    coach sweep -p CartPole_DQN "learning_rate=log_uniform(1e-5, 1e-2)" \\
      --random 20
  continue a sweep that was stopped or killed:
    coach --resume experiments/CartPole_DQN/01_02_2026-10_00
"""

DOCTOR_EXAMPLES = """\
examples:
  all runs of an experiment, or one run:
    coach doctor experiments/CartPole_DQN
    coach doctor experiments/CartPole_DQN/01_02_2026-10_00

The exit code is 1 if a run has a problem.
"""

PACK_EXAMPLES = """\
examples:
  a finished run as CartPole_DQN_01_02_2026-10_00.zip:
    coach pack experiments/CartPole_DQN/01_02_2026-10_00
  train again from the file, here or on another machine, and compare:
    coach reproduce CartPole_DQN_01_02_2026-10_00.zip
"""

PORT_EXAMPLES = """\
examples:
  a script of Stable-Baselines3 as the preset train_preset.py:
    coach port train.py
  the same as a script that calls make_agent:
    coach port train.py --library

The script is read, but not run. Coach prints the line number of each part
that it does not convert.
"""

REPRODUCE_EXAMPLES = """\
examples:
  train with the preset, the settings and the seed of a file, and compare:
    coach reproduce CartPole_DQN_01_02_2026-10_00.zip

The exit code is 1 if the signals or the policy differ. A file may contain
programs: the preset, and the modules that it imports. --trust runs these
programs. If you did not write the file, read the programs first.
"""

INIT_EXAMPLES = """\
examples:
  an environment, its test, a preset and a README, ready to run:
    coach init my_env.py
  a preset to edit:
    coach init --preset SAC
"""

COMPARE_EXAMPLES = """\
examples:
  two experiments, each with its seeds:
    coach compare experiments/CartPole_DQN experiments/CartPole_PG
  the settings of a sweep:
    coach compare experiments/CartPole_DQN/01_02_2026-10_00 -o my_report

Each directory is compared with the first directory. For one directory, its
experiments are compared, or the settings of its sweep.
"""

TUNE_EXAMPLES = """\
space (--space), as text or as a file with a setting in each line:
  path=value,value                     one of these values; path as in -cp
  path=log_uniform(1e-5, 1e-2)         also uniform, integers, log_integers
  path=LinearSchedule(1, 0.1, integers(1000, 20000))
Without --space, Coach searches the usual settings of the algorithm.

examples:
  40 trials of 20,000 steps:
    coach tune -p CartPole_DQN --trials 40 --steps 20000
  continue after Ctrl-C or a crash, with more trials:
    coach tune --resume experiments/CartPole_DQN/01_02_2026-10_00 --trials 80
  several processes or machines in one study, each with this command:
    coach tune -p CartPole_DQN --trials 200 --steps 20000 \\
      --storage mysql://user@host/optuna --study cartpole
"""

FETCH_EXAMPLES = """\
examples:
  list the trained policies:
    coach fetch
  a tuned preset's policy, into the folder CartPole_PPO_policy:
    coach fetch tuned/CartPole_PPO
  a policy on the Hugging Face Hub:
    coach fetch OWNER/NAME -o my_policy

Small policies of tuned presets are part of Coach. Large policies are loaded
from the Hub.
"""

PUSH_EXAMPLES = """\
examples:
  the policy of an experiment's newest checkpoint:
    coach push experiments/my_run/01_02_2026-10_00 OWNER/NAME
  a folder that coach export has written, in a private repository:
    coach push my_policy OWNER/NAME --private

This command needs a token of huggingface.co: run hf auth login, or set
HF_TOKEN.
"""


class Command(NamedTuple):
    """A command of ``coach``.

    :param usage: the command's arguments, for the help of ``coach``; None hides the command
    :param program: the function of the command, as ``module:function``. It gets the arguments after the command, and
        returns an exit code or None. None for a command of the launcher
    :param has_nothing_to_save: True if the command ends at the first signal
    :param builds_graphs: True if the function also gets the launcher, because it builds graphs
    """

    usage: str | None
    program: str | None = None
    has_nothing_to_save: bool = True
    builds_graphs: bool = False


_HERE = "rl_coach.command_line"
COMMANDS = {
    "sweep": Command("-p PRESET SETTINGS [flags]", f"{_HERE}.sweep:run", False, builds_graphs=True),
    "tune": Command("-p PRESET --trials N [flags]", f"{_HERE}.tune:run", False, builds_graphs=True),
    "compare": Command("DIR ...", f"{_HERE}.reports:compare"),
    "doctor": Command("DIR", f"{_HERE}.reports:diagnose"),
    "evaluate": Command("EXPERIMENT ... [flags]", has_nothing_to_save=False),
    "watch": Command("DIR [--gif FILE] [--mp4 FILE]", f"{_HERE}.watch:run", False, builds_graphs=True),
    "pack": Command("DIR [-o FILE]", f"{_HERE}.reproduction:pack"),
    "reproduce": Command("FILE", f"{_HERE}.reproduction:reproduce", False, builds_graphs=True),
    "export": Command("EXPERIMENT -o DIR", f"{_HERE}.trained_policies:export"),
    "fetch": Command("[NAME]", f"{_HERE}.trained_policies:fetch"),
    "push": Command("DIR REPO", f"{_HERE}.trained_policies:push"),
    "import": Command("sb3 FILE -p PRESET [flags]", f"{_HERE}.sb3_import:run", builds_graphs=True),
    "port": Command("SCRIPT.py [--library]", f"{_HERE}.port:run"),
    "init": Command("FILE.py", f"{_HERE}.init:run"),
    "check-env": Command("LEVEL", f"{_HERE}.reports:check_environment"),
    "algorithms": Command("[TEXT]", f"{_HERE}.reports:list_algorithms"),
    "dataset": Command("info|convert|record ...", f"{_HERE}.dataset:run", builds_graphs=True),
    "dashboard": Command("[flags]", "rl_coach.dashboard.app:run"),
    "seeds-program": Command(None, f"{_HERE}.seeds_program:run", builds_graphs=True),  # for the processes of --seeds
}
"""The commands by their names, in the order of the help."""
_WORDS_FOR_TRAINING = ("train", "run", "learn", "fit")
INFO, CONVERT, RECORD = "info", "convert", "record"
RANDOM, EXPLORING, DEPLOYED = POLICIES = "random", "exploring", "deployed"
_NARROWEST = 80  # columns of the help
NEGATABLE = ("checkpoint_memory",)
MOST_SEEDS = 1000
MOST_SECONDS = 30 * 24 * 3600
DEFAULT_TRIALS = 50
FRAMEWORKS = ("tensorflow", "jax", "mxnet", "torch")
ORCHESTRATOR, TRAINER, ROLLOUT_WORKER = RUN_TYPES = ("orchestrator", "trainer", "rollout-worker")
ONLY_OF_THE_COMMAND = {"help", "list", "version", "seeds", "at_once", "run_directory", "seeds_program", "budget"}


def _directory(text: str) -> str:
    """Refuse an empty name of a directory, because it comes from an unset variable of the shell."""
    if not text:
        raise argparse.ArgumentTypeError("'' is not a directory")
    return text


def _not_empty(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("the value is empty, as if it came from an unset variable of the shell")
    return text


def _from(smallest: int, largest: int = 2**63 - 1) -> Any:
    """A function that converts a text to a whole number from ``smallest`` to ``largest``."""

    def whole_number(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
        if number < smallest:
            raise argparse.ArgumentTypeError(f"{number} is too small: it must be {smallest} or more")
        if number > largest:
            raise argparse.ArgumentTypeError(f"{text} is too large: it must be {largest} or less")
        return number

    return whole_number


def seconds_of(text: str) -> int:
    """The number of seconds in a text such as ``90s``, ``20min`` or ``1h30min``.

    :raises ArgumentTypeError: if the text has another form, or is not a duration above 0 and up to 30 days
    """
    import re

    found = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)min)?(?:(\d+)s)?", text.strip().lower())
    hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    time = hours * 3600 + minutes * 60 + seconds
    if not 0 < time <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time of at most 30 days: write 90s, 20min or 1h30min")
    return time


def seeds_of(text: str) -> tuple[int, ...]:
    """The seeds of a text such as ``5`` (seeds 0 to 4), ``1-5`` or ``0,3,7-9``.

    :raises ArgumentTypeError: if the text has another form, has no seed or too many seeds, or has a seed twice
    """
    parts = [range(int(text))] if text.isdecimal() else [_range_of(part.strip(), text) for part in text.split(",")]
    if any(part.stop - part.start > MOST_SEEDS for part in parts) or sum(map(len, parts)) > MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"'{text}' has more than {MOST_SEEDS:,} seeds")
    seeds = [seed for part in parts for seed in part]
    if not seeds:
        raise argparse.ArgumentTypeError(f"'{text}' selects no seeds: --seeds 1 trains with seed 0")
    twice = next((seed for seed in seeds if seeds.count(seed) > 1), None)
    if twice is not None:
        raise argparse.ArgumentTypeError(f"'{text}' contains seed {twice} twice")
    return tuple(seeds)


def _range_of(part: str, text: str) -> range:
    first, dash, last = part.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of seeds: write 5 (seeds 0 to 4), 1-5, or 0,3,7")
    if dash and int(last) < int(first):
        raise argparse.ArgumentTypeError(f"'{part}' goes backwards: write {last}-{first}")
    return range(int(first), int(last if dash else first) + 1)


def _flag(names: str, help: str, **options: Any) -> tuple[list[str], dict[str, Any]]:
    """The positional and keyword arguments of ``add_argument``."""
    return names.split(), {"help": help, **options}


# The flags of ``coach`` by the groups of its help: their names, their help, and further arguments of argparse.
# fmt: off
_FLAGS = {
    "the experiment": [
        _flag("-p --preset",
              "the preset to run: its name (case does not matter), path.py, path.py:variable or package.module",
              metavar="PRESET"),
        _flag("-l --list",
              "list the presets with environment, algorithm and score; with TEXT, only presets that contain TEXT",
              nargs="?", const="", metavar="TEXT"),
        _flag("-e --experiment_name", "the experiment's name (default: the preset's name)", metavar="NAME", default=""),
        _flag("-ep --experiment_path", "the directory of all experiments (default: ./experiments)",
              metavar="DIR", default=""),
        _flag("--seed", "make the run repeatable; the number seeds every random generator", type=_from(0), metavar="N"),
        _flag("--seeds", "train with several seeds at the same time, such as 1-5 or 0,3,7; 5 means the seeds 0 to 4",
              type=seeds_of, metavar="SEEDS"),
        _flag("--at_once",
              "number of runs at the same time, for --seeds and evaluate (default: one for each core; in a compiled "
              "loop, all seeds run in one program)",
              type=_from(1), metavar="N"),
        _flag("--run_directory", argparse.SUPPRESS, metavar="DIR", default=""),  # the run's directory, used unchanged
        _flag("--seeds_program", argparse.SUPPRESS, metavar="ADDRESS"),  # of the process that computes all seeds
    ],
    "changes to the preset": [
        _flag("-lvl --level", "the environment's level, for example pong or hopper", type=_not_empty, metavar="LEVEL"),
        _flag("-cp --custom_parameter",
              "path=value settings, separated by semicolons; a value is a literal, arithmetic, or a constructor "
              "such as EnvironmentSteps(1000) or LinearSchedule(1, 0.1, 5000)", metavar="SETTINGS"),
        _flag("-et --environment_type",
              "environment parameters that replace those of the preset, as module:Class or file.py:Class",
              type=_not_empty, metavar="MODULE:CLASS"),
        _flag("-ept --exploration_policy_type",
              "exploration parameters that replace those of the preset, as module:Class or file.py:Class",
              type=_not_empty, metavar="MODULE:CLASS"),
    ],
    "running": [
        _flag("--callback",
              "classes of your own code that the run calls, such as module:Class, file.py:Class or, with arguments,"
              " 'my_code:Watch(every=10)'; several are separated by ';'. Coach has StopOnReward(reward=...),"
              " StopOnPlateau, SaveEvery(steps=...), FilmEvaluations and Histograms",
              metavar="CLASSES"),
        _flag("-f --framework", "the framework of the networks (default: %(default)s)",
              type=str.lower, choices=FRAMEWORKS, default=default_framework()),
        _flag("-c --use_cpu", "do not use a GPU", action="store_true"),
        _flag("--num_threads",
              "number of threads for the networks (default: one for small networks, all cores for large networks)",
              type=_from(1), metavar="N"),
        _flag("--num_devices",
              "number of devices that share each batch (in a compiled loop: that share the environments); needs -f jax"
              " (default: 1; a compiled loop uses all devices if it can divide its environments between them)",
              type=_from(1), metavar="N"),
        _flag("-asc --apply_stop_condition", "stop when an evaluation reaches the success reward", action="store_true"),
        _flag("--budget",
              "train for as many steps as fit into TIME, such as 90s, 20min or 1h30min; TIME includes start and"
              " evaluations",
              type=seconds_of, metavar="TIME"),
        _flag("--evaluate",
              "do not train, evaluate for STEPS environment steps, to the end of the last episode; without STEPS, "
              "evaluate until stopped",
              nargs="?", type=_from(0), const=0, metavar="STEPS"),
        _flag("--play", "play the environment yourself, and record it", action="store_true"),
    ],
    "checkpoints and export": [
        _flag("-s --checkpoint_save_secs", "save a checkpoint every SECONDS, under the experiment's directory",
              type=_from(1), metavar="SECONDS"),
        _flag("--checkpoint_save_steps", "save a checkpoint every N steps of training", type=_from(1), metavar="N"),
        _flag("--checkpoint_save_episodes", "save a checkpoint every N training episodes", type=_from(1), metavar="N"),
        _flag("--checkpoint_keep", "keep the newest K checkpoints and the best one (default: 5); 0 keeps all",
              type=_from(0), metavar="K"),
        _flag("--checkpoint_memory",
              "save the replay memory in checkpoints (default). Without it, a run cannot continue exactly. It needs"
              " disk space, time and a second copy in RAM: up to 7 GB for a million Atari frames",
              action=argparse.BooleanOptionalAction, default=True),
        _flag("-crd --checkpoint_restore_dir",
              "start from the newest checkpoint in DIR, from the checkpoint DIR/NAME.ckpt, or from the best checkpoint"
              " DIR/best",
              type=_not_empty, metavar="DIR"),
        _flag("-crf --checkpoint_restore_file", "start from this checkpoint", type=_not_empty, metavar="FILE"),
        _flag("--resume",
              "continue a stopped experiment exactly where it stopped, with its preset and its settings; -cp adds "
              "settings, -crd selects an older checkpoint; with --evaluate: evaluate the experiment in a new run",
              type=_directory, metavar="EXPERIMENT_DIR"),
        _flag("--trust",
              "with --resume: run the preset also if another user owns EXPERIMENT_DIR; a preset is a program",
              action="store_true"),
        _flag("-onnx --export_onnx_graph", "write all networks as ONNX with each checkpoint", action="store_true"),
    ],
    "output on the screen and in files": [
        _flag("-r --render", "show the environment in a window", action="store_true"),
        _flag("-dg --dump_gifs", "write each new best episode as GIF", action="store_true"),
        _flag("-dm --dump_mp4", "write each new best episode as MP4", action="store_true"),
        _flag("--track",
              "send signals, settings, evaluations, videos and the policy to: tensorboard, wandb, mlflow; several are"
              " separated by commas", metavar="SERVICES"),
        _flag("-tb --tensorboard", "write TensorBoard event files, as --track tensorboard does", action="store_true"),
        _flag("-d --open_dashboard", "open the dashboard with this experiment", action="store_true"),
        _flag("--print_networks_summary", "print the layers of each network", action="store_true"),
        _flag("-ns --no_summary", "print one line at the end, not the summary", action="store_true"),
        _flag("-v --verbosity", "high also shows the warnings of other libraries (default: %(default)s)",
              type=str.lower, choices=("low", "high"), default="low"),
        _flag("-tfv --tf_verbosity", "messages of TensorFlow: 0 shows all, 3 shows only fatal errors (default: 3)",
              type=_from(0), metavar="LEVEL"),
        _flag("--nocolor", "print without colours", action="store_true"),
    ],
    "several workers": [
        _flag(
            "-n --num_workers",
            "number of workers (default: 1). Workers of actor-critic and similar agents train and share weights; "
            "workers of other agents, and all workers with -dc, only play for one trainer",
            type=_from(1), default=1, metavar="N",
        ),
        _flag("-ew --evaluation_worker", "with -n: start one more worker, which only evaluates", action="store_true"),
    ],
    "distributed runs": [
        _flag("-dc --distributed_coach", "train with rollout workers (-n), on this machine or on a cluster",
              action="store_true"),
        _flag("-dcp --distributed_coach_config_path",
              "the settings of -dc: an INI file with orchestrator, image, data_store, resources", metavar="FILE"),
        _flag("--dry_run", "on Kubernetes: print the manifests as YAML and do nothing else", action="store_true"),
        _flag("--attach", "on Kubernetes: follow the existing run with the name of -e", action="store_true"),
        _flag("--keep", "on Kubernetes: do not remove the run at its end", action="store_true"),
        _flag("--memory_backend_params", argparse.SUPPRESS, metavar="JSON"),
        _flag("--data_store_params", argparse.SUPPRESS, metavar="JSON"),
        _flag("--distributed_coach_run_type", argparse.SUPPRESS, choices=RUN_TYPES),
        _flag("--dump_worker_logs", "with -dc: keep the output of each worker", action="store_true"),
    ],
}
# fmt: on


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formats the help: each flag's value appears once (``-p, --preset PRESET``), and lines fit into the terminal."""

    def __init__(self, prog: str):
        import shutil

        super().__init__(prog, max_help_position=34, width=max(_NARROWEST, shutil.get_terminal_size().columns))

    def _format_action_invocation(self, action: argparse.Action) -> str:
        value = "" if action.nargs == 0 else " " + self._format_args(action, action.dest.upper())
        if not action.option_strings:
            return value.strip()
        return ", ".join(action.option_strings) + value


_ACCUMULATED = {"custom_parameter": "; ", "callback": "; ", "track": ","}
"""Flags that may be given several times, and the separators that join their values."""


class _StoreOnce(argparse.Action):
    """Stores the value of a flag. Values of ``_ACCUMULATED`` are joined; any other flag may be given only once."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, flag: str | None = None) -> None:
        before = parser.given.get(self.dest)
        if flag is not None and self.dest == "custom_parameter":
            self._refuse_twice(before, values)
        if flag is not None and before is not None:
            values = self._joined(before, values, flag)
        parser.given[self.dest] = values
        setattr(namespace, self.dest, values)

    def _joined(self, before: Any, values: Any, flag: str) -> Any:
        if self.dest not in _ACCUMULATED:
            if values == before:
                return values
            raise argparse.ArgumentError(self, f"it is given twice, as {before} and {values}: give it once")
        return f"{before.rstrip('; ')}{_ACCUMULATED[self.dest]}{values}"

    def _refuse_twice(self, *texts: str | None) -> None:
        from rl_coach.runs.record import settings_in

        paths = [path for text in texts if text for path, _ in settings_in(text)]
        if twice := [path for path in paths if paths.count(path) > 1]:
            raise argparse.ArgumentError(self, f"'{twice[0]}' is set twice: leave one out")
        for number, path in enumerate(paths):
            if whole := next((one for one in paths[number:] if path.startswith((f"{one}.", f"{one}["))), None):
                raise argparse.ArgumentError(self, f"'{whole}' replaces '{path}': set '{whole}' first")


class Parser(argparse.ArgumentParser):
    """An argument parser. An error is a message in one line, with the nearest flag for an unknown flag.

    :ivar given: the values of the flags on the command line, by their names
    """

    def __init__(self, prog: str, description: str, epilog: str, usage: str | None = None):
        super().__init__(prog, usage, description, epilog, formatter_class=_HelpFormatter, allow_abbrev=False)
        self.given: dict[str, Any] = {}
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments as in argparse. Each call clears ``given``."""
        self.given = {}
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise an error about the command line. :raises CoachError: always"""
        raise CoachError(f"{message} (see {self.prog} --help)")

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """The values of all flags.

        :raises CoachError: if a flag is unknown, or a flag does not accept its value
        """
        values, unknown = self.parse_known_args(args, namespace)
        if unknown and unknown[0].startswith("-"):
            self.error(f"unknown flag '{unknown[0]}'{suggested(self._flags_like(unknown[0].partition('=')[0]))}")
        if unknown:
            self.error(self.about_word(unknown[0]))
        return values

    def _flags_like(self, given: str) -> list[str]:
        """At most three flags that begin with ``given``. If no flag begins with it, flags with a similar spelling."""
        # without the dashes, which would make all flags similar
        flags = {flag.lstrip("-"): flag for action in self._actions for flag in action.option_strings}
        name = given.lstrip("-")
        begun = [flag for flag in flags if name and flag.startswith(name)]
        return [flags[one] for one in begun[:3] or nearest(name, flags, similarity=0.7)]

    def about_word(self, word: str) -> str:
        """The message about an argument that is neither a flag nor a value of a flag."""
        return f"unknown argument '{word}'"


class _MainParser(Parser):
    """The parser of ``coach`` without a command. Its message about a word suggests presets and commands."""

    def about_word(self, word: str) -> str:
        from rl_coach.command_line import preset_catalogue

        if word.lower() in _WORDS_FOR_TRAINING:
            return f"there is no command '{word}': coach -p PRESET trains a preset"
        presets = [*preset_catalogue.list_all_presets(), *preset_catalogue.list_tuned_presets()]
        by_lower = {name.lower(): name for name in presets}
        exact = [by_lower[word.lower()]] if word.lower() in by_lower else []
        if exact or os.path.isfile(word):
            return f"'{word}' is not a command; did you mean coach -p {exact[0] if exact else word}?"
        similar = preset_catalogue.presets_with(word)[: preset_catalogue.MOST_SUGGESTIONS] or nearest(word, presets)
        close = [
            *(f"coach {name}" for name in nearest(word, _shown_commands())),
            *(f"coach -p {name}" for name in similar),
        ]
        return f"there is no command '{word}'" + (f"; did you mean {' or '.join(close)}?" if close else "")


def _shown_commands() -> dict[str, str]:
    """The usage of each command that users type, by its name."""
    return {name: one.usage for name, one in COMMANDS.items() if one.usage is not None}


def get_argument_parser() -> Parser:
    """The parser of ``coach``."""
    parser = _MainParser(
        "coach",
        "Train, evaluate and play reinforcement-learning agents from presets.",
        EXAMPLES,
        usage="\n       ".join(
            ["coach -p PRESET [flags]", *(f"coach {name} {use}" for name, use in _shown_commands().items())]
        ),
    )
    parser.add_argument("--version", action="version", version=f"coach {__version__}", help="print Coach's version")
    for title, flags in _FLAGS.items():
        group = parser.add_argument_group(title)
        for names, options in flags:
            group.add_argument(*names, **options)
    _set_defaults(parser)
    return parser


def _set_defaults(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(checkpoint_save_dir=None)  # for launchers; None saves below the experiment directory
    parser.set_defaults(evaluated=None)  # the run to evaluate; set by --resume
    parser.set_defaults(imported=None)  # the policy of another library that the run begins from


def _add_flags_of_coach(parser: argparse.ArgumentParser, shown: Sequence[str]) -> None:
    """Add all flags of ``coach`` to the parser of a command. :param shown: the flags that the command's help shows"""
    for names, options in (flag for flags in _FLAGS.values() for flag in flags):
        is_shown = any(name in shown for name in names)
        parser.add_argument(*names, **(options if is_shown else {**options, "help": argparse.SUPPRESS}))
    _set_defaults(parser)


class _Usage(NamedTuple):
    """The help of a command.

    :param about: the description of the command, in a sentence
    :param examples: the end of the help
    :param flags: the command's own flags and arguments
    :param usage: the first line of the help; None for the line that argparse makes
    :param shown: the flags of ``coach`` in the help, if the command accepts all flags of ``coach``; otherwise empty
    """

    about: str
    examples: str
    flags: list[tuple[list[str], dict[str, Any]]]
    usage: str | None = None
    shown: tuple[str, ...] = ()


# fmt: off
_USAGES = {
    "compare": _Usage("Compare runs: a report in Markdown and HTML, with figures.", COMPARE_EXAMPLES, [
        _flag("directory", "a directory that contains runs", metavar="DIR", nargs="+", type=_directory),
        _flag("-o --output", "the directory of the report (default: ./comparison)", metavar="DIR",
              default="comparison"),
        _flag("--score", "the evaluation that is a run's score: last (default) or best",
              choices=("last", "best"), default="last"),
        _flag("--range",
              "the scores that become 0 and 1 in measures over several environments (default: the lowest and the "
              "highest score of all runs); can be given once for each environment",
              metavar="ENVIRONMENT=LOW,HIGH", action="append"),
    ]),
    "init": _Usage("Write the files of an environment of your own, or a preset to edit.", INIT_EXAMPLES, [
        _flag("file", "the file of the environment", metavar="FILE.py", nargs="?"),
        _flag("--preset", "write a preset for this algorithm (coach --list shows the algorithms of presets)",
              metavar="ALGORITHM"),
    ]),
    "port": _Usage("Turn a training script of Stable-Baselines3 into a preset.", PORT_EXAMPLES, [
        _flag("script", "the script, which trains one model", metavar="SCRIPT.py"),
        _flag("--library", "write a script with make_agent instead of a preset", action="store_true"),
        _flag("-o --output", "the new file (default: ./SCRIPT_preset.py; with --library ./SCRIPT_coach.py)",
              metavar="FILE"),
    ]),
    "pack": _Usage("Write a run into one zip: preset, settings, seed, versions, signals and policy.", PACK_EXAMPLES, [
        _flag("directory", "the directory of a run", metavar="DIR", type=_directory),
        _flag("-o --output", "the new file (default: ./EXPERIMENT_DATE.zip)", metavar="FILE"),
    ]),
    "reproduce": _Usage("Train again from a file of coach pack, and compare bit for bit.", REPRODUCE_EXAMPLES, [
        _flag("file", "the zip that coach pack has written", metavar="FILE"),
        _flag("--trust", "run the programs that the file contains or names", action="store_true"),
    ]),
    "doctor": _Usage(
        "Name the problem of each run in one sentence, with evidence from its signals and settings.", DOCTOR_EXAMPLES,
        [_flag("directory", "a directory that contains runs", metavar="DIR", type=_directory)],
    ),
    "tune": _Usage("Search for the best settings of a preset with Optuna, and write them as a preset.", TUNE_EXAMPLES, [
        _flag("--trials", f"total number of trials of the study (default: {DEFAULT_TRIALS})", type=_from(1),
              metavar="N"),
        _flag("--steps", "environment steps of a trial, with 20 evaluations (default: the preset's schedule)",
              type=_from(1), metavar="N"),
        _flag("--space", "the settings to search, as text or as a file; see below", metavar="SPACE"),
        _flag("--storage",
              "URL of the study's database (default: $COACH_TUNE_STORAGE, or a file next to the trials)",
              metavar="URL"),
        _flag("--study", "the study's name (default: the experiment's name)", metavar="NAME"),
        _flag("--sampler", "tpe (default) learns from earlier trials; random does not", choices=("tpe", "random"),
              default="tpe"),
        _flag("--pruner", "how unpromising trials are stopped: median (default), hyperband, or none",
              choices=("median", "hyperband", "none"), default="median"),
        _flag("--parallel", "trials at the same time (default: one for each core)", type=_from(1), metavar="N"),
    ], "coach tune -p PRESET --trials N [flags]",
       ("--preset", "--custom_parameter", "--experiment_name", "--seed", "--resume")),
    "sweep": _Usage("Train a preset with many settings at the same time, and compare them.", SWEEP_EXAMPLES, [
        _flag("settings", "the settings to vary, or a file with settings in each line; see below",
              metavar="SETTINGS", nargs="?"),
        _flag("--random", "train with N combinations, drawn at random (default: with all combinations)",
              type=_from(1), metavar="N"),
        _flag("--parallel", "runs at the same time (default: one for each core)", type=_from(1), metavar="N"),
    ], 'coach sweep -p PRESET "path=value,value; ..." [flags]',
       ("--preset", "--seeds", "--custom_parameter", "--experiment_name")),
    "export": _Usage(
        "Write a trained policy into a folder, for programs with NumPy and ONNX Runtime.", EXPORT_EXAMPLES, [
        _flag("experiment", "an experiment (exports its newest checkpoint), EXPERIMENT/best, or a checkpoint",
              metavar="EXPERIMENT"),
        _flag("-o --output", "the new folder to write", metavar="DIR", required=True),
        _flag("--agent", "the agent, if the run has several agents", metavar="LEVEL.AGENT"),
        _flag("--format", f"{POLICY} (default), or {FROZEN_GRAPH}: for TensorFlow, with tensor names of Coach 1.0.1",
              choices=(POLICY, FROZEN_GRAPH), default=POLICY),
    ]),
    "import": _Usage("Make an experiment from a policy that another library has trained.", IMPORT_EXAMPLES, [
        _flag("library", "the library: sb3 is Stable-Baselines3", choices=("sb3",)),
        _flag("file", "the .zip that model.save has written", metavar="FILE"),
    ], "coach import sb3 FILE -p PRESET [flags]"),
    "fetch": _Usage("Get a trained policy, for programs with NumPy and ONNX Runtime.", FETCH_EXAMPLES, [
        _flag("name", "a tuned preset, or OWNER/NAME of the Hugging Face Hub (default: list the policies of presets)",
              metavar="NAME", nargs="?"),
        _flag("-o --output", "the new folder to write (default: ./NAME_policy)", metavar="DIR"),
    ]),
    "push": _Usage("Upload a trained policy to the Hugging Face Hub.", PUSH_EXAMPLES, [
        _flag("policy", "an experiment, EXPERIMENT/best, a checkpoint, or a policy's folder", metavar="DIR"),
        _flag("repository", "OWNER/NAME on the Hub; it is made if it does not exist", metavar="REPO"),
        _flag("--private", "make the repository private", action="store_true"),
    ]),
    "algorithms": _Usage("List the algorithms with their names for make_agent.", ALGORITHMS_EXAMPLES, [
        _flag("text", "list only lines that contain TEXT", metavar="TEXT", nargs="?", default=""),
    ]),
    "check-env": _Usage(
        "Play an environment at random and report errors in its observations and rewards.",
        CHECK_ENVIRONMENT_EXAMPLES, [
            _flag("level", "a Gymnasium id, module:Class or file.py:Class", metavar="LEVEL"),
            _flag("--steps", "play N steps; an episode must end within N steps (default: %(default)s)",
                  type=_from(1), default=10_000, metavar="N"),
            _flag("--seed", "seed of the actions (default: 0)", type=_from(0), default=0, metavar="N"),
        ]),
    "evaluate": _Usage(
        "Evaluate a run's trained agent with the run's settings, or a trained policy.", EVALUATE_EXAMPLES, [
            _flag("experiment", "the directory of the run; several directories are compared",
                  type=_directory, metavar="EXPERIMENT", nargs="+"),
            _flag("--steps",
                  "number of environment steps; the last episode is played to its end (default: %(default)s); with "
                  "0, evaluate until stopped", type=_from(0), default=1000, metavar="STEPS"),
        ], "coach evaluate EXPERIMENT ... [--steps STEPS] [flags of coach]"),
    "evaluate POLICY": _Usage("Evaluate a trained policy.", EVALUATE_EXAMPLES, [
        _flag("--steps", "number of environment steps; the last episode is played to its end (default: %(default)s)",
              type=_from(1), default=1000, metavar="STEPS"),
        _flag("-lvl --level", "the environment (default: the environment of the preset)", metavar="LEVEL"),
        _flag("--seed", "seed of the environment (default: 0)", type=_from(0), default=0, metavar="N"),
        _flag("--render", "show the environment in a window", action="store_true"),
    ]),
    "watch": _Usage("See a trained agent play, in a window or in a file.", WATCH_EXAMPLES, [
        _flag("directory", "a run, RUN/best, or the folder of a policy", type=_directory, metavar="DIR"),
        _flag("--gif", "write one episode as GIF instead of opening a window", metavar="FILE"),
        _flag("--mp4", "write one episode as MP4 instead of opening a window", metavar="FILE"),
        _flag("-lvl --level", "another environment than in the run or the preset", metavar="LEVEL"),
        _flag("--seed", "seed of the environment (default: 0)", type=_from(0), default=0, metavar="N"),
    ]),
}
# fmt: on


def parser_of(command: str) -> Parser:
    """The parser of a command. ``import`` and ``evaluate`` also accept flags of ``coach``, which this parser does not
    know.

    :param command: the command; ``evaluate POLICY`` is ``coach evaluate`` for a policy, which accepts fewer flags. For
        ``dataset`` see ``get_dataset_parser``
    """
    about, examples, flags, usage, shown = _USAGES[command]
    parser = Parser(f"coach {command.partition(' ')[0]}", about, examples, usage)
    for names, options in flags:
        parser.add_argument(*names, **options)
    if shown:
        _add_flags_of_coach(parser, shown)
        parser.epilog = f"Other flags of coach can also be given (coach --help).\n\n{parser.epilog}"
    return parser


def get_dataset_parser() -> Parser:
    """The parser of ``coach dataset``. ``record`` also accepts flags of ``coach``, which this parser does not know."""
    about = "Print, convert or record data sets of experience."
    parser = Parser("coach dataset", about, DATASET_EXAMPLES)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    def add(name: str, help_: str, usage: str | None = None) -> Parser:
        description = f"{help_[0].upper()}{help_[1:]}."
        return commands.add_parser(name, help=help_, description=description, epilog="", usage=usage)

    info = add(INFO, "print the contents of a data set")
    info.add_argument("place", metavar="FILE", help="the data set")
    convert = add(CONVERT, "write a data set in another form")
    convert.add_argument("place", metavar="FROM", help="the data set")
    convert.add_argument("output", metavar="TO", help="the new data set")
    usage = f"coach dataset {RECORD} -p PRESET --steps N -o TO [flags of coach]"
    record = add(RECORD, "play a preset or a trained agent, and write the steps", usage)
    length = "number of environment steps; the last episode is played to its end"
    record.add_argument("--steps", type=_from(1), required=True, metavar="N", help=length)
    record.add_argument("-o", "--output", metavar="TO", required=True, help="the new data set")
    who = (
        f"{RANDOM}: random actions (default without a checkpoint); {EXPLORING}: the agent with exploration, as in "
        f"training; {DEPLOYED}: the agent as in evaluations (default with -crd or --resume)"
    )
    record.add_argument("--policy", choices=POLICIES, metavar="POLICY", help=who)
    return parser


def evaluation_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments of ``coach evaluate``.

    :param arguments: the arguments after ``evaluate``
    :return: the runs to evaluate, and flags of ``coach`` that together with ``--resume RUN`` evaluate a run
    :raises CoachError: if no experiment is given, or STEPS is not a number
    """
    parser = parser_of("evaluate")
    if not set(arguments) & {"-h", "--help"} and (not arguments or arguments[0].startswith("-")):
        parser.error("give the run's directory first: coach evaluate EXPERIMENT")
    known, flags = parser.parse_known_args(arguments)
    return known.experiment, [f"--evaluate={known.steps}", *flags]


def free_experiment_path(args: argparse.Namespace) -> str:
    """The path of a new directory for a run without ``--run_directory``, in ``args.experiment_path``. The directory is
    not created."""
    from rl_coach import logger
    from rl_coach.command_line import preset_catalogue

    of_preset = preset_catalogue.name_of(args.preset).strip() if args.preset else ""
    name = logger.get_experiment_name(args.experiment_name, default=of_preset or "experiment")
    return os.path.abspath(logger.get_experiment_path(name, args.experiment_path or None, create_path=False))


def keywords() -> frozenset[str]:
    """The long names of the flags that ``CoachInterface`` accepts as keywords. Flags that only print a text,
    ``--budget`` and flags for several runs are not accepted."""
    actions = get_argument_parser()._actions
    return frozenset(action.dest for action in actions) - ONLY_OF_THE_COMMAND


_OF_THE_WHOLE_RUN = {
    "experiment_name", "experiment_path", "resume", "trust", "num_workers", "evaluation_worker", "distributed_coach",
    "distributed_coach_config_path", "memory_backend_params", "data_store_params", "distributed_coach_run_type",
    "dump_worker_logs", "open_dashboard", "dry_run", "attach", "keep",
}  # fmt: skip


def arguments_of_a_process(args: argparse.Namespace, defaults: dict[str, Any]) -> list[str]:
    """The flags that the trainer and the workers of a distributed run need to build their graphs.

    :param args: the flags of the run
    """
    given = {name: vars(args)[name] for name in keywords() - _OF_THE_WHOLE_RUN}
    given["framework"] = getattr(given["framework"], "name", given["framework"])
    # the default of the other process may be another framework
    changed = {name: value for name, value in sorted(given.items()) if value != defaults[name] or name == "framework"}
    return arguments_from_keywords(changed)


def arguments_from_keywords(keywords: dict[str, Any]) -> list[str]:
    """Convert keywords such as ``preset="CartPole_DQN", render=True`` to the arguments of a command line.

    True becomes a flag without a value. None and False become no argument, but False switches off a flag that is on by
    default.
    """
    arguments = []
    for name, value in keywords.items():
        if value is True:
            arguments.append(f"--{name}")
        elif value is False and name in NEGATABLE:
            arguments.append(f"--no-{name}")
        elif value is not None and value is not False:
            arguments.append(f"--{name}={value}")
    return arguments
