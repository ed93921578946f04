"""The callback of a trial of ``coach tune``."""

from __future__ import annotations

from typing import Any

from rl_coach.callbacks.callback import Callback, RunView
from rl_coach.utilities.safe_reading import read_text

PRUNED = "pruned"
"""The attribute that marks a pruned trial in the study."""
SECRET_MARK = "@"
"""The mark before the path of a file that contains the URL of a storage. Such a file is used if the URL contains a
password."""


def url_of(storage: str) -> str:
    """The URL of a study's storage.

    :param storage: the URL, or ``@`` and the path of a file that contains the URL
    :raises CoachError: if the file does not exist
    """
    if not storage.startswith(SECRET_MARK):
        return storage
    return read_text(storage.removeprefix(SECRET_MARK)).strip()


class ReportTrial(Callback):
    """Reports evaluations to a study of Optuna. Stops the run if the study's pruner prunes the trial.

    :param storage: the URL of the study's storage, or ``@`` and the path of a file that contains the URL
    :param study: the study's name
    :param trial: the trial's id in the storage
    :param pruner: one of ``coach tune --pruner``
    :param evaluations: number of evaluations of a whole trial
    :param window: a report is the mean of the last ``window`` evaluations; 1 reports each evaluation
    """

    def __init__(self, storage: str, study: str, trial: int, pruner: str, evaluations: int, window: int = 3):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        loaded = optuna.load_study(study_name=study, storage=url_of(storage), pruner=pruner_of(pruner, evaluations))
        self._trial = optuna.trial.Trial(loaded, trial)
        self._window = window
        self._rewards: list[float] = []
        self._is_pruned = False

    def on_evaluation_end(self, run: RunView) -> None:
        if self._is_pruned or run.last_evaluation is None:  # do not report the evaluation at the end of a pruned run
            return
        self._rewards.append(run.last_evaluation)
        last = self._rewards[-self._window :]
        mean = sum(last) / len(last)
        # The step of a report is the number of reports, not of environment steps: a pruner compares trials at the same
        # step, but evaluations wait for the end of an episode.
        self._trial.report(mean, len(self._rewards))
        if self._trial.should_prune():
            self._is_pruned = True
            self._trial.set_user_attr(PRUNED, True)
            run.stop(f"the trial is pruned: other trials were better after {run.steps:,} steps than {mean:,.6g}")

    def get_state(self) -> dict[str, Any]:
        return {"rewards": self._rewards, "is_pruned": self._is_pruned}

    def set_state(self, state: dict[str, Any]) -> None:
        self._rewards, self._is_pruned = state["rewards"], state["is_pruned"]


def pruner_of(name: str, evaluations: int) -> Any:
    """A pruner of Optuna.

    :param name: ``median``, ``hyperband`` or ``none``
    :param evaluations: number of evaluations of a whole trial. ``median`` prunes no trial in the first fifth of them,
        and ``hyperband`` prunes no trial before a ninth of them
    """
    from optuna import pruners

    if name == "median":
        return pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=evaluations // 5)
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=max(1, evaluations // 9), max_resource=evaluations)
    return pruners.NopPruner()
