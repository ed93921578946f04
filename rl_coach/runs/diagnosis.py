"""Names the problem of a run from its signals and settings: ``coach doctor DIR``.

    >>> for run, problem in diagnose("experiments/CartPole_DQN").items():
    ...     print(run, problem)

Each check looks for one kind of failure in the rows after heatup, and returns one sentence with its evidence. Causes
are checked before their effects: a learning rate of 0 also explains a reward that does not rise, so the learning rate
is checked first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, Mapping

import numpy as np
import pandas as pd

from rl_coach.runs.experiments import EVALUATION_REWARD, TRAINING_REWARD, load
from rl_coach.runs.signal_file import TOTAL_STEPS, TRAINING_ITERATION

FEWEST_EPISODES = 10
"""Shorter runs have too little evidence for a verdict on rewards."""
_SHAPED_REWARD, _IN_HEATUP, _EPSILON = "Shaped Training Reward", "In Heatup", "Epsilon"
_VALUES = ("Q", "Q1", "Values", "V")
_USUAL_KL = 0.05
_LARGEST_KL = 0.2


@dataclass(frozen=True)
class Evidence:
    """The rows of one run, a column for each signal, and every setting by its dotted name."""

    rows: pd.DataFrame
    settings: Mapping[str, Any]

    def column(self, name: str, after_heatup: bool = True) -> np.ndarray:
        """The finite values of a signal in the order of play; empty if the run has no such signal."""
        rows = self._trained if after_heatup else self.rows
        values = rows[name].to_numpy(np.float64) if name in rows else np.empty(0)
        return values[np.isfinite(values)]

    def mean(self, signal: str) -> np.ndarray:
        """The column ``<signal>/Mean``, the mean of a signal in each row."""
        return self.column(f"{signal}/Mean")

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting of the agent. :param name: the end of its dotted name"""
        return self.settings.get(f"agent.{name}", default)

    @property
    def _trained(self) -> pd.DataFrame:
        return self.rows[self.rows[_IN_HEATUP] == 0] if _IN_HEATUP in self.rows else self.rows

    @property
    def steps(self) -> int:
        """Environment steps of the run."""
        steps = self.column(TOTAL_STEPS, after_heatup=False)
        return int(steps.max()) if steps.size else 0


def _no_update(run: Evidence) -> str | None:
    updates = run.column(TRAINING_ITERATION, after_heatup=False)
    if updates.size and updates.max() == 0:
        heatup = run.settings.get("schedule.heatup_steps")
        told = f" ({heatup})" if heatup else ""
        return f"the agent made no update in {run.steps:,} steps: train longer; updates begin after the heatup{told}"
    return None


def _learning_rate_of_zero(run: Evidence) -> str | None:
    rates = run.mean("Learning Rate")
    share = float(np.mean(rates == 0)) if rates.size else 0.0
    # a schedule may end at 0, so a few rows with 0 are no evidence
    if share > 0.5:
        return f"the learning rate was 0 in {share:.0%} of the rows with updates: the weights did not change"
    return None


def _no_gradient(run: Evidence) -> str | None:
    norms = run.column("Grads (unclipped)/Max")
    if norms.size and norms.max() == 0:
        return f"every gradient was 0 in {norms.size:,} rows: the loss does not depend on the weights"
    return None


def _collapsed_advantage(run: Evidence) -> str | None:
    factor = np.abs(run.mean("L"))
    if factor.size < 2 or not factor.max() > 0 or _late(factor) > 0.05 * factor.max() or _is_at_best(run):
        return None
    return (
        f"NAF's advantage collapsed: its factor L fell from {factor.max():.3g} to {_late(factor):.3g}, so the chosen "
        "action gets no gradient; limit L with diagonal_bounds of the head's parameters, or lower the learning rate"
    )


def _exploding_values(run: Evidence) -> str | None:
    scale = _largest_return(run)
    for signal in _VALUES:
        values = np.abs(run.mean(signal))
        if values.size and scale > 0 and _late(values) > 3 * scale:
            return (
                f"{signal} explodes: the size of its mean is {_late(values):.3g} at the end, and with the rewards of "
                f"the run no return can be larger than {scale:.3g}; lower the learning rate, update the target network "
                "less often, or clip gradients"
            )
    return None


def _largest_return(run: Evidence) -> float:
    """A bound of the discounted return: the largest total reward, or the return with the largest mean reward per
    step."""
    # rows of evaluations have an episode length, but no training reward
    episodes = run.rows.reindex(columns=[_SHAPED_REWARD, "Episode Length"]).dropna()
    if episodes.empty:
        return 0.0
    rewards = episodes[_SHAPED_REWARD].abs()
    per_step = float((rewards / episodes["Episode Length"].clip(lower=1)).max())
    discount = float(run.setting("algorithm.discount", 0.99))
    return max(float(rewards.max()), per_step / max(1 - discount, 1e-3))


def _large_policy_steps(run: Evidence) -> str | None:
    divergence = run.mean("KL Divergence")
    middle = float(np.median(divergence)) if divergence.size else 0.0
    if middle > _LARGEST_KL:
        return (
            f"each training phase moves the policy too far: the median KL divergence is {middle:.3g}, and "
            f"{_USUAL_KL} is usual; lower the learning rate, or train fewer epochs"
        )
    return None


def _collapsed_entropy(run: Evidence) -> str | None:
    entropy, deviation = run.mean("Entropy"), run.mean("Policy Standard Deviation")
    name, spread = ("standard deviation", deviation) if deviation.size else ("entropy", entropy)
    # the entropy of a density is negative for small deviations, so its size is no evidence
    if spread.size and spread.min() < 0:
        return None
    if spread.size < 2 or spread[0] <= 0 or _late(spread) > 0.01 * spread[0] or _is_at_best(run):
        return None
    has_bonus = run.setting("algorithm.beta_entropy") is not None
    return (
        f"the policy's {name} fell from {spread[0]:.3g} to {_late(spread):.3g} before its rewards were good: it no "
        "longer explores; lower the learning rate" + (", or raise beta_entropy" if has_bonus else "")
    )


def _is_at_best(run: Evidence) -> bool:
    """True if the last quarter of the episodes is near the best quarter."""
    rewards = run.column(TRAINING_REWARD)
    if rewards.size < FEWEST_EPISODES:
        return True
    quarters = [float(part.mean()) for part in np.array_split(rewards, 4)]
    return quarters[-1] > quarters[0] and quarters[-1] >= max(quarters) - 0.1 * float(np.ptp(rewards))


def _epsilon_still_high(run: Evidence) -> str | None:
    epsilon = run.column(_EPSILON)
    schedule = "exploration.epsilon_schedule"
    final = run.setting(f"{schedule}.final_value")
    if not epsilon.size or final is None or epsilon[-1] < 0.5 or epsilon[-1] <= final:
        return None
    if run.setting("exploration.architecture_num_q_heads") is not None:
        return None  # with several heads, the column has the number of a head or their deviation
    steps = run.setting(f"{schedule}.decay_steps")
    needed = "more" if steps is None else f"{steps:,.0f}"
    return (
        f"epsilon was still {epsilon[-1]:.2g} at the end, after {run.steps:,} steps: its schedule needs {needed} steps "
        f"to reach {final}; train longer, or shorten the schedule"
    )


def _no_reward(run: Evidence) -> str | None:
    rewards = run.column(TRAINING_REWARD, after_heatup=False)
    if rewards.size < FEWEST_EPISODES or np.ptp(rewards) > 0:
        return None
    seen = "saw no reward" if rewards[0] == 0 else f"got the same total reward, {rewards[0]:g},"
    return (
        f"the agent {seen} in all {rewards.size:,} episodes, so it has nothing to learn from: explore more, or shape "
        "the reward"
    )


def _target_never_updated(run: Evidence) -> str | None:
    moved, updates = run.column("Update Target Network"), run.column(TRAINING_ITERATION)
    has_target = run.setting("network_wrappers.main.create_target_network", False)
    period = run.setting("algorithm.num_steps_between_copying_online_weights_to_target")
    if not has_target or period is None or not moved.size or moved.sum() > 0 or updates.max() < 1000:
        return None
    return (
        f"the target network was not updated in {int(updates.max()):,} updates: lower "
        f"num_steps_between_copying_online_weights_to_target, which is {period}"
    )


def _few_episodes_in_evaluations(run: Evidence) -> str | None:
    length = str(run.settings.get("schedule.evaluation_steps", ""))
    rewards = run.column(EVALUATION_REWARD)[-5:]
    if length != "EnvironmentEpisodes(1)" or rewards.size < 3:
        return None
    jump = float(np.mean(np.abs(np.diff(rewards))))
    if jump <= 0.25 * float(np.max(np.abs(rewards))):
        return None
    shown = ", ".join(f"{reward:.4g}" for reward in rewards)
    return (
        f"an evaluation is one episode, so its reward depends on luck ({shown}): set evaluation_steps to "
        f"EnvironmentEpisodes(10)"
    )


CHECKS: tuple[Callable[[Evidence], str | None], ...] = (
    _no_update, _learning_rate_of_zero, _no_gradient, _no_reward, _collapsed_advantage, _exploding_values,
    _large_policy_steps, _collapsed_entropy, _target_never_updated, _epsilon_still_high, _few_episodes_in_evaluations,
)  # fmt: skip


def _late(values: np.ndarray) -> float:
    """The mean of the last quarter."""
    return float(values[-max(1, len(values) // 4) :].mean())


def problem_of(run: Evidence) -> str | None:
    """The first problem that a check finds, in one sentence with its evidence; None if no check finds one.

    A run that only evaluates has no problem. Its rows all have the same number of updates, above 0.
    """
    updates = run.column(TRAINING_ITERATION, after_heatup=False)
    if updates.size and updates.min() == updates.max() > 0:
        return None
    return next((found for found in (check(run) for check in CHECKS) if found is not None), None)


def diagnose(path: str | os.PathLike) -> dict[str, str | None]:
    """The problem of each run below a directory, by the run's id; None if no check finds one.

    :raises CoachError: if there is no run
    """
    experiments = load(path)
    rows = experiments.signals.groupby("run")
    settings = experiments.parameters
    return {
        str(run): problem_of(Evidence(rows.get_group(run), settings.loc[run].dropna().to_dict()))
        for run in experiments.runs.index
    }
