"""Callbacks that send a run's values and files to an experiment tracker."""

from __future__ import annotations

import logging
import math
import netrc
import os
import pathlib
import tempfile
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

from rl_coach.callbacks.callback import Callback, RunView
from rl_coach.installation import is_installed, missing_package
from rl_coach.logger import screen
from rl_coach.runs import record, run_group
from rl_coach.runs.documents import read_document
from rl_coach.runs.evaluation import EvaluationStatistics
from rl_coach.utilities.user_code import in_one_line
from rl_coach.utils import CoachError

MOST_BYTES_OF_CHECKPOINT = 500_000_000
"""The largest size of a checkpoint that is sent. A checkpoint with a large replay memory may be larger."""
_VIDEOS = {"gifs": ".gif", "videos": ".mp4"}
_SECONDS_BETWEEN_LOGS = 5.0
_LONGEST_REASON = 200
_MOST_METRICS = 1000  # limit of metrics in one call to MLflow
_STEPS = "Total steps"
_EVALUATION = ("mean", "minimum", "maximum", "confidence_low", "confidence_high", "episodes")


class Tracker(Callback):
    """Base class of the trackers. If a service cannot be reached, the tracker prints a warning, and training continues
    without the tracker.

    The x-axis of signals is ``Total steps``, the environment steps of heatup and training.

    :param project: the project of the runs; empty for the preset's name
    :param name: name of the run; empty for the name of its directory
    :param group: name for runs that belong together; empty for the experiment's name
    :param tags: further tags, in addition to preset, agent and environment
    :param artifacts: True also sends videos, the policy, and the last checkpoint
    """

    service = package = ""

    def __init__(
        self,
        project: str = "",
        name: str = "",
        group: str = "",
        tags: Sequence[str] = (),
        artifacts: bool = True,
    ):
        self.project, self.name, self.group, self.tags, self.artifacts = project, name, group, list(tags), artifacts
        self._id: str | None = None
        self._is_on = False
        self._sent: set[str] = set()

    # a subclass implements these methods for a service

    def begin(self, about: About, run_id: str | None) -> str:
        """Begin or continue a run in the service.

        :param about: the description of the run
        :param run_id: the id of the run to continue; None begins a new run
        :return: the run's id
        """
        raise NotImplementedError

    def log(self, values: Mapping[str, float], steps: int) -> None:
        """Send values by name, with the environment steps at their time."""
        raise NotImplementedError

    def log_video(self, path: pathlib.Path, steps: int) -> None:
        """Send a video (MP4 or GIF), with the environment steps at its time."""
        raise NotImplementedError

    def log_folder(self, folder: pathlib.Path, name: str) -> None:
        """Send a folder. :param name: the name in the service, ``policy`` or ``checkpoint``"""
        raise NotImplementedError

    def end(self) -> None:
        """End the run in the service. A resumed run may continue it later."""
        raise NotImplementedError

    # called by the run

    def on_creation(self, graph_manager: Any) -> None:
        if graph_manager.is_first_trainer and not is_installed(self.package):
            raise CoachError(missing_package(ModuleNotFoundError(name=self.package)))

    def on_run_start(self, run: RunView) -> None:
        about = About.of(run, self)
        self._is_on = True
        self._try(lambda: self._begin(about))

    def _begin(self, about: About) -> None:
        with screen.waiting_for(f"connecting to {self.service}"):
            self._id = self.begin(about, self._id)

    def on_row(self, run: RunView) -> None:
        numbers = {name: value for name, value in run.row.items() if _is_number(value)}
        steps = next((int(value) for name, value in numbers.items() if name.endswith(_STEPS)), run.total_steps)
        self._try(lambda: self.log(numbers, steps))

    def on_evaluation_end(self, run: RunView) -> None:
        found = EvaluationStatistics.of(run.evaluation_rewards)
        values = {f"evaluation/{name}": getattr(found, name) for name in _EVALUATION}
        known = {name: value for name, value in values.items() if value is not None}
        self._try(lambda: self.log(known, run.total_steps))
        self._send_videos(run)

    def on_run_end(self, run: RunView) -> None:
        self._send_videos(run)
        if self.artifacts and run.checkpoint is not None:
            self._try(lambda: self._send_policy(run))
            self._try(lambda: self._send_checkpoint(pathlib.Path(str(run.checkpoint))))
        self._try(self.end)
        self._is_on = False

    def get_state(self) -> dict[str, Any]:
        return {"id": self._id, "sent": sorted(self._sent)}

    def set_state(self, state: dict[str, Any]) -> None:
        self._id, self._sent = state["id"], set(state["sent"])

    def _send_videos(self, run: RunView) -> None:
        for folder, ending in _VIDEOS.items() if self.artifacts else ():
            for path in sorted((pathlib.Path(run.experiment_path) / folder).glob(f"*{ending}")):
                if path.name not in self._sent:
                    self._sent.add(path.name)
                    self._try(lambda path=path: self.log_video(path, run.total_steps))  # type: ignore[misc]

    def _send_policy(self, run: RunView) -> None:
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory) / "policy"
            try:
                run.export_policy(str(folder))
            except CoachError:  # several agents: their policies are in the checkpoint
                return
            self.log_folder(folder, "policy")

    def _send_checkpoint(self, path: pathlib.Path) -> None:
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        if size > MOST_BYTES_OF_CHECKPOINT:
            most = f"{MOST_BYTES_OF_CHECKPOINT:,}"
            screen.warning(f"{self.service}: the checkpoint has {size:,} bytes and is not sent; the limit is {most}")
            return
        self.log_folder(path, "checkpoint")

    def _try(self, send: Callable[[], Any]) -> None:
        """Call a function that sends data, unless the service has failed before. After a failure, print a warning and
        send no more data. The training continues."""
        if not self._is_on:
            return
        try:
            send()
        except Exception as error:  # clients raise many kinds of errors, and none must end the training
            self._is_on = False
            screen.warning(f"no more data are sent to {self.service}; the run continues: {_shortened(error)}")


@dataclass(frozen=True)
class About:
    """The description of a run for a service.

    :param project: the project's name
    :param name: the run's name
    :param group: the name for runs that belong together
    :param tags: preset, agent, environment and the user's tags
    :param settings: all parameters and the seed, by their dotted names
    :param directory: the run's directory
    """

    project: str
    name: str
    group: str
    tags: Sequence[str]
    settings: Mapping[str, Any]
    directory: str

    @classmethod
    def of(cls, run: RunView, tracker: Tracker) -> About:
        """Make the description of a run. :param tracker: supplies names and tags that the user has set"""
        directory = pathlib.Path(run.experiment_path)
        settings = _settings_of(directory)
        preset = str(settings.get("task.preset") or "")
        agent = str(settings.get("agent.__class__") or "").removesuffix("AgentParameters")
        environment = str(settings.get("environment.level") or settings.get("environment.level.selected_level") or "")
        is_in_group = run_group.is_group(directory.parent)
        experiment = record.experiment_name(directory.parent if is_in_group else directory) or directory.parent.name
        tags = [text for text in dict.fromkeys((preset, agent, environment, *tracker.tags)) if text]
        return cls(
            tracker.project or preset or "coach",
            tracker.name or directory.name,
            tracker.group or (f"{experiment}/{directory.parent.name}" if is_in_group else experiment),
            tags,
            {**settings, "seed": run.seed},
            str(directory),
        )


class TrackWandb(Tracker):
    """Sends a run to Weights & Biases. Without a network or an account, writes a folder that ``wandb sync`` can send
    later.

    The environment variables of W&B, such as ``WANDB_MODE`` and ``WANDB_ENTITY``, also apply.
    """

    service, package = "W&B", "wandb"

    def begin(self, about: About, run_id: str | None) -> str:
        os.environ.setdefault("WANDB_SILENT", "true")  # W&B's messages would appear between the run's lines
        mode = os.environ.get("WANDB_MODE") or ("online" if _has_wandb_account() else "offline")
        try:
            self._run = self._init(about, run_id, mode)
        except Exception as error:  # the client raises its own errors and errors of its transport
            if mode == "offline":
                raise
            screen.warning(f"W&B cannot be reached: {_shortened(error)}")
            mode = "offline"
            self._run = self._init(about, run_id, mode)
        if mode == "offline":
            screen.print(f"W&B is offline; send the run later: wandb sync {pathlib.Path(self._run.dir).parent}")
        self._run.define_metric(_STEPS)
        self._run.define_metric("*", step_metric=_STEPS)
        return str(self._run.id)

    @staticmethod
    def _init(about: About, run_id: str | None, mode: Any) -> Any:
        import wandb

        settings = wandb.Settings(silent=True, console="off", init_timeout=30)
        return wandb.init(
            project=about.project.replace("/", "-"),
            name=about.name,
            group=about.group[:128],
            tags=[tag[:64] for tag in about.tags],
            config=dict(about.settings),
            dir=about.directory,
            id=run_id,
            resume="allow",
            mode=mode,
            settings=settings,
            reinit="finish_previous",
        )

    def log(self, values: Mapping[str, float], steps: int) -> None:
        self._run.log({**values, _STEPS: steps})

    def log_video(self, path: pathlib.Path, steps: int) -> None:
        import wandb

        kind: Any = path.suffix[1:]
        self._run.log({"video": wandb.Video(str(path), format=kind), _STEPS: steps})

    def log_folder(self, folder: pathlib.Path, name: str) -> None:
        import wandb

        artifact = wandb.Artifact(f"{self._run.id}-{name}", type="model" if name == "policy" else name)
        artifact.add_dir(str(folder))
        self._run.log_artifact(artifact)

    def end(self) -> None:
        self._run.finish()


class TrackMlflow(Tracker):
    """Sends a run to the MLflow server at ``MLFLOW_TRACKING_URI``. Without this environment variable, MLflow writes to
    a database in the working directory.
    """

    service, package = "MLflow", "mlflow"

    def begin(self, about: About, run_id: str | None) -> str:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # MLflow's default waits minutes for a server
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._waiting: list[Any] = []
        self._logged_at = time.monotonic()
        self._client = MlflowClient()
        if run_id is not None:
            self._client.update_run(run_id, status="RUNNING")
            return run_id
        experiment = self._client.get_experiment_by_name(about.project)
        number = experiment.experiment_id if experiment else self._client.create_experiment(about.project)
        tags = {"group": about.group, "tags": ", ".join(about.tags), "directory": about.directory}
        self._id = self._client.create_run(number, tags=tags, run_name=about.name).info.run_id
        settings = [Param(_mlflow_name(name), str(value)[:500]) for name, value in about.settings.items()]
        for first in range(0, len(settings), 100):
            self._client.log_batch(self._id, params=settings[first : first + 100])
        screen.print(f"MLflow: run {self._id} in {self._client.tracking_uri}")
        return str(self._id)

    def log(self, values: Mapping[str, float], steps: int) -> None:
        from mlflow.entities import Metric
        from mlflow.utils.time import get_current_time_millis

        now = get_current_time_millis()
        self._waiting += [Metric(_mlflow_name(name), float(value), now, steps) for name, value in values.items()]
        # do not call the service for each episode: the call would take longer than a short episode
        if time.monotonic() - self._logged_at > _SECONDS_BETWEEN_LOGS:
            self._send()

    def _send(self) -> None:
        for first in range(0, len(self._waiting), _MOST_METRICS):
            self._client.log_batch(str(self._id), metrics=self._waiting[first : first + _MOST_METRICS])
        self._waiting, self._logged_at = [], time.monotonic()

    def log_video(self, path: pathlib.Path, steps: int) -> None:
        self._client.log_artifact(str(self._id), str(path), "videos")

    def log_folder(self, folder: pathlib.Path, name: str) -> None:
        self._client.log_artifacts(str(self._id), str(folder), name)

    def end(self) -> None:
        self._send()
        self._client.set_terminated(str(self._id), "FINISHED")


def _has_wandb_account() -> bool:
    """True if there is a key of W&B, in the environment or in ``.netrc`` (written by ``wandb login``)."""
    import wandb

    host = urllib.parse.urlparse(wandb.Settings().base_url).hostname or ""
    try:
        return bool(os.environ.get("WANDB_API_KEY")) or netrc.netrc().authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def _shortened(error: Exception) -> str:
    text = in_one_line(error)
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"


def _mlflow_name(name: str) -> str:
    """A name for MLflow: characters that MLflow does not allow are replaced by ``_``."""
    return "".join(letter if letter.isalnum() or letter in "_-. /" else "_" for letter in name)[:250]


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, str) and math.isfinite(value)
    except TypeError:
        return False


def _settings_of(directory: pathlib.Path) -> dict[str, Any]:
    """The run's parameters, by their dotted names; empty if the run does not write its parameters."""
    from rl_coach.runs.experiments import flatten, settings_for

    path = next(iter(sorted(directory.glob("worker_*.json"))), None)
    return {} if path is None else flatten(settings_for(path, read_document(path)))


TRACKERS: dict[str, type[Tracker]] = {"wandb": TrackWandb, "mlflow": TrackMlflow}
"""The trackers by their names in ``--track``."""
