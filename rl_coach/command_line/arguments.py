"""The flags of ``coach``: what they are called, what they mean, which values they take.

Imports nothing but argparse at its top, so that ``coach --help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
from typing import Any, NoReturn, Sequence

from rl_coach import __version__

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
  play back what a run has trained:
    coach evaluate experiments/my_pong/01_02_2026-10_00 --render
  change settings of the preset:
    coach -p CartPole_PG -cp "agent_params.algorithm.discount=0.9; improve_steps=EnvironmentSteps(20000)"
  train on a cluster with eight workers:
    coach -p CartPole_ClippedPPO -dc -dcp cluster.ini -n 8
  write the trained policy into a folder, for acting without a training framework:
    coach export experiments/my_pong/01_02_2026-10_00 -o pong_policy
"""

EXPORT = "export"
CHECK_ENVIRONMENT = "check-env"
DASHBOARD = "dashboard"
EVALUATE = "evaluate"

EXPORT_EXAMPLES = """\
examples:
  the newest checkpoint of an experiment:
    coach export experiments/my_run/01_02_2026-10_00 -o my_policy
  the checkpoint of the best evaluation:
    coach export experiments/my_run/01_02_2026-10_00/best -o my_policy
"""

CHECK_ENVIRONMENT_EXAMPLES = """\
examples:
  an environment that Gymnasium registers:
    coach check-env CartPole-v1
  your own environment:
    coach check-env path/to/file.py:MyEnvironment
"""

EVALUATE_EXAMPLES = """\
examples:
  the newest checkpoint, in a window:
    coach evaluate experiments/my_run/01_02_2026-10_00 --render
  the best checkpoint, for 10,000 steps:
    coach evaluate experiments/my_run/01_02_2026-10_00 --steps 10000 -crd experiments/my_run/01_02_2026-10_00/best
  several runs at the same time, with statistics over them; a directory of --seeds means all of its runs:
    coach evaluate experiments/my_seeds/01_02_2026-10_00 experiments/my_run/01_02_2026-10_00
"""

NEGATABLE = ("checkpoint_memory",)
MOST_SEEDS = 1000
FRAMEWORKS = ("tensorflow", "jax", "mxnet")
ORCHESTRATOR, TRAINER, ROLLOUT_WORKER = RUN_TYPES = ("orchestrator", "trainer", "rollout-worker")
_NO_KEYWORDS = {"help", "list", "version", "seeds", "at_once", "run_directory"}


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Shows ``-p, --preset PRESET`` with the value once, in columns that fit a terminal."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=34, width=110)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        value = "" if action.nargs == 0 else " " + self._format_args(action, action.dest.upper())
        if not action.option_strings:
            return value.strip()
        return ", ".join(action.option_strings) + value


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and suggest the nearest flag."""

    def error(self, message: str) -> NoReturn:
        """
        :raises CoachError: always
        """
        from rl_coach.utils import CoachError

        raise CoachError(f"{message} (see {self.prog} --help)")

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """The values of all flags.

        :raises CoachError: for an unknown flag, naming the nearest, or a value that its flag does not take
        """
        values, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(f"unknown flag '{unknown[0]}'{self._nearest_flag(unknown[0])}")
        return values

    def _nearest_flag(self, text: str) -> str:
        from rl_coach.utils import did_you_mean

        flags = [flag for action in self._actions for flag in action.option_strings]
        return did_you_mean(text.partition("=")[0], flags)


def get_argument_parser() -> Parser:
    """The parser of ``coach``."""
    parser = Parser(
        prog="coach",
        description="Train, evaluate and play reinforcement-learning agents from presets.",
        epilog=EXAMPLES,
        usage="coach -p PRESET [flags]\n"
        "       coach evaluate EXPERIMENT ... [flags]\n"
        "       coach export EXPERIMENT -o DIR\n"
        "       coach check-env LEVEL\n"
        "       coach dashboard [flags]",
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"coach {__version__}", help="print Coach's version")
    _add_experiment(parser.add_argument_group("the experiment"))
    _add_changes(parser.add_argument_group("changes to the preset"))
    _add_running(parser.add_argument_group("running"))
    _add_checkpoints(parser.add_argument_group("checkpoints and export"))
    _add_output(parser.add_argument_group("what the run shows and writes"))
    _add_workers(parser.add_argument_group("several workers"))
    _add_distribution(parser.add_argument_group("distributed runs"))
    parser.set_defaults(checkpoint_save_dir=None)  # for launchers; below the experiment's directory if they set none
    parser.set_defaults(evaluated=None)  # the run that an evaluation is of; said by --resume
    return parser


def _command(name: str, description: str, epilog: str, usage: str | None = None) -> Parser:
    """The parser of one of Coach's commands, without arguments yet."""
    return Parser(
        prog=f"coach {name}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )


def get_export_parser() -> Parser:
    """The parser of ``coach export``."""
    parser = _command(
        "export",
        description="Write a trained policy into its own folder. Using it needs only NumPy and ONNX Runtime.",
        epilog=EXPORT_EXAMPLES,
    )
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        help="an experiment (exports its newest checkpoint), EXPERIMENT/best, or a checkpoint",
    )
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="the new folder to write")
    parser.add_argument("--agent", metavar="LEVEL.AGENT", help="which agent, if the run has several")
    return parser


def get_check_environment_parser() -> Parser:
    """The parser of ``coach check-env``."""
    parser = _command(
        "check-env",
        description="Play an environment with random actions and report everything that is wrong with its output.",
        epilog=CHECK_ENVIRONMENT_EXAMPLES,
    )
    parser.add_argument("level", metavar="LEVEL", help="a Gymnasium id, module:Class or file.py:Class")
    parser.add_argument(
        "--steps",
        type=_from(1),
        default=10_000,
        metavar="N",
        help="play N steps; an episode must end within them (default: %(default)s)",
    )
    parser.add_argument("--seed", type=_from(0), default=0, metavar="N", help="seed of the actions (default: 0)")
    return parser


def get_evaluate_parser() -> Parser:
    """The parser of ``coach evaluate``; the flags it does not know are those of ``coach``."""
    parser = _command(
        "evaluate",
        usage="coach evaluate EXPERIMENT ... [--steps STEPS] [flags of coach]",
        description="Evaluate what a run has trained, with the preset, framework and settings of that run.",
        epilog=EVALUATE_EXAMPLES,
    )
    parser.add_argument(
        "experiment",
        type=_directory,
        metavar="EXPERIMENT",
        nargs="+",
        help="the directory of the run; give several to compare them",
    )
    parser.add_argument(
        "--steps",
        type=_from(0),
        default=1000,
        metavar="STEPS",
        help="number of environment steps; the last episode is finished (default: %(default)s); 0 runs until stopped",
    )
    return parser


def evaluation_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The runs that ``coach evaluate`` is to evaluate, and the flags of ``coach`` that mean the same, without
    ``--resume`` and the run.

    :raises CoachError: no experiment is named, or STEPS is no number
    """
    parser = get_evaluate_parser()
    if not set(arguments) & {"-h", "--help"} and (not arguments or arguments[0].startswith("-")):
        parser.error("give the run's directory first: coach evaluate EXPERIMENT")
    known, flags = parser.parse_known_args(arguments)
    return known.experiment, [f"--evaluate={known.steps}", *flags]


def _add_experiment(group: Any) -> None:
    group.add_argument(
        "-p",
        "--preset",
        metavar="PRESET",
        help="what to run: the name of a preset (case does not matter), path.py, path.py:variable or package.module",
    )
    group.add_argument("-l", "--list", action="store_true", help="list the presets with environment and algorithm")
    group.add_argument(
        "-e", "--experiment_name", metavar="NAME", default="", help="the experiment's name (default: the preset's name)"
    )
    group.add_argument(
        "-ep",
        "--experiment_path",
        metavar="DIR",
        default="",
        help="where experiments are written (default: ./experiments)",
    )
    group.add_argument(
        "--seed", type=_from(0), metavar="N", help="make the run repeatable; the number seeds every random generator"
    )
    group.add_argument(
        "--seeds",
        type=seeds_of,
        metavar="SEEDS",
        help="train with several seeds at the same time: 5 means the seeds 0 to 4; or 1-5, or 0,3,7",
    )
    group.add_argument(
        "--at_once",
        type=_from(1),
        metavar="N",
        help="how many runs of --seeds or evaluate run at the same time (default: one for each core)",
    )
    group.add_argument("--run_directory", metavar="DIR", default="", help=argparse.SUPPRESS)  # to write to, as it is


def _add_changes(group: Any) -> None:
    group.add_argument("-lvl", "--level", metavar="LEVEL", help="the environment's level, for example pong or hopper")
    group.add_argument(
        "-cp",
        "--custom_parameter",
        metavar="SETTINGS",
        help="path=value settings, separated by semicolons; a value is a literal, arithmetic, or a constructor such as"
        " EnvironmentSteps(1000) or LinearSchedule(1, 0.1, 5000)",
    )
    group.add_argument(
        "-et",
        "--environment_type",
        metavar="MODULE:CLASS",
        help="environment parameters that replace those of the preset, as module:Class or file.py:Class",
    )
    group.add_argument(
        "-ept",
        "--exploration_policy_type",
        metavar="MODULE:CLASS",
        help="exploration parameters that replace those of the preset, as module:Class or file.py:Class",
    )


def _add_running(group: Any) -> None:
    group.add_argument(
        "-f",
        "--framework",
        type=str.lower,
        choices=FRAMEWORKS,
        default="tensorflow",
        help="the framework of the networks (default: %(default)s)",
    )
    group.add_argument("-c", "--use_cpu", action="store_true", help="do not use a GPU")
    group.add_argument(
        "--num_threads",
        type=_from(1),
        metavar="N",
        help="how many threads the networks use (default: one for small networks, all cores for large networks)",
    )
    group.add_argument(
        "-asc", "--apply_stop_condition", action="store_true", help="stop when evaluations reach the target reward"
    )
    group.add_argument(
        "--evaluate",
        nargs="?",
        type=_from(0),
        const=0,
        metavar="STEPS",
        help="evaluate only, for STEPS environment steps and until the last episode ends; without STEPS, until stopped",
    )
    group.add_argument("--play", action="store_true", help="play the environment yourself, and record it")


def _add_checkpoints(group: Any) -> None:
    group.add_argument(
        "-s",
        "--checkpoint_save_secs",
        type=_from(1),
        metavar="SECONDS",
        help="save a checkpoint every SECONDS, under the experiment's directory",
    )
    group.add_argument(
        "--checkpoint_save_steps", type=_from(1), metavar="N", help="save a checkpoint every N steps of training"
    )
    group.add_argument(
        "--checkpoint_save_episodes", type=_from(1), metavar="N", help="save a checkpoint every N training episodes"
    )
    group.add_argument(
        "--checkpoint_keep",
        type=_from(0),
        metavar="K",
        help="keep the newest K checkpoints and the best one (default: 5); 0 keeps all",
    )
    group.add_argument(
        "--checkpoint_memory",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="save the replay memory in checkpoints (default); an exact resume needs it; it costs disk space, time and,"
        " during saving, RAM of the size of its filled part, up to 7 GB for a million Atari frames",
    )
    group.add_argument(
        "-crd",
        "--checkpoint_restore_dir",
        metavar="DIR",
        help="start from the newest checkpoint in DIR, from DIR/NAME.ckpt, or from the best with DIR/best",
    )
    group.add_argument("-crf", "--checkpoint_restore_file", metavar="FILE", help="start from this checkpoint")
    group.add_argument(
        "--resume",
        type=_directory,
        metavar="EXPERIMENT_DIR",
        help="continue a stopped experiment in its directory, exactly where it stopped; preset and settings come"
        " from there; -cp adds settings, -crd names another checkpoint than the newest; with --evaluate: a new run that"
        " evaluates it",
    )
    group.add_argument(
        "--trust",
        action="store_true",
        help="with --resume: run the preset, a program, that another user's directory names",
    )
    group.add_argument(
        "-onnx", "--export_onnx_graph", action="store_true", help="write all networks as ONNX with each checkpoint"
    )


def _add_output(group: Any) -> None:
    group.add_argument("-r", "--render", action="store_true", help="show the environment in a window")
    group.add_argument("-dg", "--dump_gifs", action="store_true", help="write each new best episode as GIF")
    group.add_argument("-dm", "--dump_mp4", action="store_true", help="write each new best episode as MP4")
    group.add_argument("-tb", "--tensorboard", action="store_true", help="write TensorBoard event files")
    group.add_argument("-d", "--open_dashboard", action="store_true", help="open the dashboard with this experiment")
    group.add_argument("--print_networks_summary", action="store_true", help="print the layers of each network")
    group.add_argument("-ns", "--no_summary", action="store_true", help="print no summary at the end")
    group.add_argument(
        "-v",
        "--verbosity",
        type=str.lower,
        choices=("low", "high"),
        default="low",
        help="high also shows the warnings of other libraries (default: %(default)s)",
    )
    group.add_argument(
        "-tfv",
        "--tf_verbosity",
        type=_from(0),
        metavar="LEVEL",
        help="TensorFlow's own messages: 0 shows all, 3 shows only fatal ones (default: 3)",
    )
    group.add_argument("--nocolor", action="store_true", help="print without colours")


def _add_workers(group: Any) -> None:
    group.add_argument(
        "-n", "--num_workers", type=_from(1), default=1, metavar="N", help="how many workers train (default: 1)"
    )
    group.add_argument(
        "-ew", "--evaluation_worker", action="store_true", help="with -n: start one more worker, which only evaluates"
    )


def _add_distribution(group: Any) -> None:
    group.add_argument(
        "-dc",
        "--distributed_coach",
        action="store_true",
        help="train with rollout workers (-n), on this machine or on a cluster",
    )
    group.add_argument(
        "-dcp",
        "--distributed_coach_config_path",
        metavar="FILE",
        help="the settings of -dc: an INI file with orchestrator, image, data_store, resources",
    )
    group.add_argument(
        "--dry_run", action="store_true", help="on Kubernetes: print the manifests as YAML and do nothing else"
    )
    group.add_argument("--attach", action="store_true", help="on Kubernetes: follow the existing run with this name")
    group.add_argument("--keep", action="store_true", help="on Kubernetes: do not remove the run at its end")
    group.add_argument("--memory_backend_params", metavar="JSON", help=argparse.SUPPRESS)
    group.add_argument("--data_store_params", metavar="JSON", help=argparse.SUPPRESS)
    group.add_argument("--distributed_coach_run_type", choices=RUN_TYPES, help=argparse.SUPPRESS)
    group.add_argument("--dump_worker_logs", action="store_true", help="with -dc: keep the output of each worker")


def _directory(text: str) -> str:
    """A converter for directories that must be named: an empty text is a variable of the shell that is not set."""
    if not text:
        raise argparse.ArgumentTypeError("'' is not a directory")
    return text


def _from(smallest: int) -> Any:
    """A converter for whole numbers from ``smallest`` up."""

    def whole_number(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
        if number < smallest:
            raise argparse.ArgumentTypeError(f"{number} is too small: it must be {smallest} or more")
        return number

    return whole_number


def seeds_of(text: str) -> tuple[int, ...]:
    """The seeds that ``5``, ``1-5`` or ``0,3,7-9`` means.

    :raises ArgumentTypeError: it means none, or one of them twice
    """
    parts = [range(int(text))] if text.isdecimal() else [_range_of(part.strip(), text) for part in text.split(",")]
    if any(part.stop - part.start > MOST_SEEDS for part in parts) or sum(map(len, parts)) > MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"'{text}' has more than {MOST_SEEDS:,} seeds")
    seeds = [seed for part in parts for seed in part]
    if not seeds:
        raise argparse.ArgumentTypeError(f"'{text}' means no seeds: 1 trains with seed 0")
    twice = next((seed for seed in seeds if seeds.count(seed) > 1), None)
    if twice is not None:
        raise argparse.ArgumentTypeError(f"'{text}' contains seed {twice} twice")
    return tuple(seeds)


def _range_of(part: str, text: str) -> range:
    first, dash, last = part.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of seeds: give 5 (seeds 0 to 4), 1-5, or 0,3,7")
    if dash and int(last) < int(first):
        raise argparse.ArgumentTypeError(f"'{part}' goes backwards: write {last}-{first}")
    return range(int(first), int(last if dash else first) + 1)


def free_experiment_path(args: argparse.Namespace) -> str:
    """A directory for a run that nobody has chosen one for, below ``args.experiment_path``; not made yet."""
    from rl_coach import logger
    from rl_coach.command_line import preset_catalogue

    of_preset = preset_catalogue.name_of(args.preset).strip() if args.preset else ""
    name = logger.get_experiment_name(args.experiment_name, default=of_preset or "experiment")
    return os.path.abspath(logger.get_experiment_path(name, args.experiment_path or None, create_path=False))


def keywords() -> frozenset[str]:
    """The long names of the flags that ``CoachInterface`` takes as keywords: all but those that only print, and those
    of several runs, which are processes of ``coach``."""
    actions = get_argument_parser()._actions
    return frozenset(action.dest for action in actions) - _NO_KEYWORDS


_OF_THE_WHOLE_RUN = {
    "experiment_name", "experiment_path", "resume", "trust", "num_workers", "evaluation_worker", "distributed_coach",
    "distributed_coach_config_path", "memory_backend_params", "data_store_params", "distributed_coach_run_type",
    "dump_worker_logs", "open_dashboard", "dry_run", "attach", "keep",
}  # fmt: skip


def arguments_of_a_process(args: argparse.Namespace, defaults: dict[str, Any]) -> list[str]:
    """The flags that trainer and workers of a distributed run build their graphs by.

    :param args: the flags of the run
    :param defaults: their values where they are not given
    """
    given = {name: vars(args)[name] for name in keywords() - _OF_THE_WHOLE_RUN}
    given["framework"] = getattr(given["framework"], "name", given["framework"])
    changed = {name: value for name, value in sorted(given.items()) if value != defaults[name]}
    return arguments_from_keywords(changed)


def arguments_from_keywords(keywords: dict[str, Any]) -> list[str]:
    """Keywords such as ``preset="CartPole_DQN", render=True`` as the arguments of a command line.

    True stands for the flag alone; False and None leave it out, but a flag that is on by default is switched off by
    False.
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
