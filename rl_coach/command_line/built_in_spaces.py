"""The search spaces of ``coach tune`` without ``--space``: settings and values for each family of agents, similar to
the search spaces of rl-baselines3-zoo."""

from __future__ import annotations

from typing import Any, Sequence

from rl_coach.command_line import search_space
from rl_coach.command_line.search_space import Dimension
from rl_coach.utils import CoachError

_LEARNING_RATES = (
    "learning_rate = log_uniform(1e-5, 1e-2)",
    "learning_rate = ConstantSchedule(log_uniform(1e-5, 1e-2))",
)
"""The dimension for presets with a number as learning rate, and for presets with a schedule."""
_COMMON = ("agent_params.algorithm.discount = choice(0.9, 0.95, 0.98, 0.99, 0.995, 0.999)",)
_SMALL_NETWORKS = (
    "middleware_parameters.scheme = "
    "choice([Dense(64)], [Dense(64), Dense(64)], [Dense(256)], [Dense(256), Dense(256)])",
)
_REPLAY = ("batch_size = choice(16, 32, 64, 128, 256)",)
_FAMILIES: dict[str, tuple[str, ...]] = {
    "values": (
        *_REPLAY,
        "agent_params.algorithm.num_steps_between_copying_online_weights_to_target = {unit}(log_integers(10, 2000))",
        "agent_params.exploration.epsilon_schedule = "
        "LinearSchedule(1.0, choice(0.01, 0.05, 0.1), log_integers({steps} // 50, {steps} // 2))",
        *_SMALL_NETWORKS,
    ),
    "continuous": (
        *_REPLAY,
        "agent_params.algorithm.rate_for_copying_weights_to_target = choice(0.001, 0.005, 0.01, 0.02, 0.05)",
    ),
    "proximal": (
        "batch_size = choice(32, 64, 128, 256)",
        "agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(choice(256, 512, 1024, 2048))",
        "agent_params.algorithm.optimization_epochs = choice(3, 5, 10, 20)",
        "agent_params.algorithm.gae_lambda = choice(0.8, 0.9, 0.95, 0.98, 1.0)",
        "agent_params.algorithm.clip_likelihood_ratio_using_epsilon = choice(0.1, 0.2, 0.3, 0.4)",
        "agent_params.algorithm.beta_entropy = log_uniform(1e-8, 0.1)",
    ),
    "policy gradients": (
        "agent_params.algorithm.num_steps_between_gradient_updates = choice(5, 10, 20, 50, 100)",
        "agent_params.algorithm.gae_lambda = choice(0.8, 0.9, 0.95, 0.98, 1.0)",
        "agent_params.algorithm.beta_entropy = log_uniform(1e-6, 0.1)",
    ),
}


_MAIN_NETWORK = "agent_params.network_wrappers['main']."


def family_of(agent_params: Any) -> str:
    """The name of an agent's family in ``_FAMILIES``. It depends on the settings that the agent has."""
    algorithm = agent_params.algorithm
    if hasattr(algorithm, "optimization_epochs"):
        return "proximal"
    if hasattr(algorithm, "num_steps_between_gradient_updates"):
        return "policy gradients"
    return "values" if algorithm.rate_for_copying_weights_to_target == 1 else "continuous"


def built_in_space(graph_manager: Any, steps: int) -> list[Dimension]:
    """The search space for a preset: the settings of its agent's family that the preset has.

    :param steps: environment steps of a trial
    :raises CoachError: if the preset has several agents, or has none of the settings
    """
    agent_params = getattr(graph_manager, "agent_params", None)
    if agent_params is None or hasattr(graph_manager, "agents_params"):
        raise CoachError("there is no search space for presets with several agents: set --space")
    unit = type(agent_params.algorithm.num_steps_between_copying_online_weights_to_target).__name__
    lines = (line.format(steps=steps, unit=unit) for line in (*_COMMON, *_FAMILIES[family_of(agent_params)]))
    found = [_first_that_fits(graph_manager, texts) for texts in (_LEARNING_RATES, *((line,) for line in lines))]
    dimensions = [one for one in found if one is not None]
    if not dimensions:
        raise CoachError("there is no search space for this preset: set --space")
    return dimensions


def _first_that_fits(graph_manager: Any, texts: Sequence[str]) -> Dimension | None:
    """The first dimension that fits the preset: the preset has the setting and accepts all values. If the setting does
    not fit all networks, the main network is tried. None if no dimension fits.
    """
    for text in (*texts, *(f"{_MAIN_NETWORK}{text}" for text in texts)):
        (dimension,) = search_space.parse(text, "search space")
        try:
            search_space.check_each_value(graph_manager, [dimension])
            return dimension
        except CoachError:  # the preset does not have this setting, or refuses a value
            continue
    return None
