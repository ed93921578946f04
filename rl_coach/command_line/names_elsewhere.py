"""The names of settings in other libraries, and the names of these settings in Coach."""

from __future__ import annotations

from typing import Callable, Sequence

NAMES_HERE = {
    "buffer_size": "memory={'max_size': (MemoryGranularity.Transitions, N)}",
    "clip_range": "clip_likelihood_ratio_using_epsilon",
    "clip_range_vf": "clip_value_using_epsilon",
    "ent_coef": "beta_entropy (for SAC: temperature)",
    "exploration_fraction": "exploration={'epsilon_schedule': LinearSchedule(1, END, STEPS)}",
    "exploration_final_eps": "exploration={'epsilon_schedule': LinearSchedule(1, END, STEPS)}",
    "gamma": "discount",
    "gradient_steps": "num_consecutive_training_steps",
    "learning_starts": "heatup_steps",
    "lr": "learning_rate",
    "max_grad_norm": "clip_gradients",
    "n_envs": "num_envs",
    "n_epochs": "optimization_epochs",
    "n_steps": "num_consecutive_playing_steps=EnvironmentSteps(N) (for A2C: num_steps_between_gradient_updates=N)",
    "policy_kwargs": "middleware_parameters={'scheme': [Dense(N)]} and "
    "input_embedders_parameters={'observation': {'scheme': [Dense(N)]}}",
    "target_kl": "target_kl_divergence (for TRPO: max_kl_divergence)",
    "target_update_interval": "num_steps_between_copying_online_weights_to_target",
    "tau": "rate_for_copying_weights_to_target",
    "tensorboard_log": "experiment_path=DIRECTORY, where the signals are written as CSV",
    "train_freq": "num_consecutive_playing_steps=EnvironmentSteps(N) (for TD3 also act_for_full_episodes=False)",
    "use_sde": "exploration: agent_params.exploration = StateDependentNoiseParameters(agent_params)",
    "vf_coef": "network_wrappers['main'].heads_parameters[0].loss_weight",
}
"""The names of settings in Coach, by their names in Stable-Baselines3 and other libraries."""
_NETWORK = "agent_params.network_wrappers['main']"
_EPSILON = "agent_params.exploration.epsilon_schedule=LinearSchedule(1, END, STEPS)"
_ALGORITHM = "agent_params.algorithm"
_PLAYING = f"{_ALGORITHM}.num_consecutive_playing_steps=EnvironmentSteps(N)"
ON_THE_COMMAND_LINE = {
    "buffer_size": "agent_params.memory.max_size=(MemoryGranularity.Transitions, N)",
    "ent_coef": f"{_ALGORITHM}.beta_entropy (for SAC: {_ALGORITHM}.temperature)",
    "exploration_fraction": _EPSILON,
    "exploration_final_eps": _EPSILON,
    "learning_starts": "heatup_steps=EnvironmentSteps(N)",
    "n_envs": "env_params.num_environments",
    "n_steps": f"{_PLAYING} (for A2C: {_ALGORITHM}.num_steps_between_gradient_updates=N)",
    "policy_kwargs": f"{_NETWORK}.middleware_parameters.scheme=[Dense(N)] and "
    f"{_NETWORK}.input_embedders_parameters['observation'].scheme=[Dense(N)]",
    "target_kl": f"{_ALGORITHM}.target_kl_divergence (for TRPO: {_ALGORITHM}.max_kl_divergence)",
    "tensorboard_log": "the flag --tensorboard",
    "train_freq": f"{_PLAYING} (for TD3 also {_ALGORITHM}.act_for_full_episodes=False)",
    "use_sde": "the flag -ept rl_coach.exploration_policies.state_dependent_noise:StateDependentNoiseParameters",
    "vf_coef": f"{_NETWORK}.heads_parameters[0].loss_weight",
}
"""Settings of ``NAMES_HERE`` that have another form in ``-cp``, or are flags of ``coach``."""
_FROM_ANYWHERE = ("lr",)
_NOT_HERE = {
    "device": "a GPU is used if the framework finds one, and CUDA_VISIBLE_DEVICES=-1 hides it",
    "policy": "the networks are made for the spaces; middleware_parameters={'scheme': [Dense(N)]} sets their layers",
    "verbose": "make_agent prints nothing, and experiment_path=DIRECTORY writes the signals",
}
_NOT_ON_THE_COMMAND_LINE = {
    "device": "a GPU is used if the framework finds one, and the flag -c switches it off",
    "policy": f"the networks are made for the spaces; {_NETWORK}.middleware_parameters.scheme=[Dense(N)] sets their "
    "layers",
    "verbose": "the flag -v high shows more messages",
}


def hint(name: str) -> str:
    """The end of an error message of ``make_agent`` with Coach's name for a setting of another library; empty for an
    unknown name."""
    return _hint(name, NAMES_HERE.get(name), _NOT_HERE.get(name))


def hint_on_the_command_line(name: str, paths: Callable[[str], Sequence[str]] = lambda name: [name]) -> str:
    """The result of ``hint`` for an error message of ``coach``.

    :param paths: a function of Coach's name for the setting. It returns the paths that the user can write
    """
    here = ON_THE_COMMAND_LINE.get(name, NAMES_HERE.get(name))
    if here is not None and here.isidentifier():
        here = " or ".join(list(paths(here))[:3]) or here
    return _hint(name, here, _NOT_ON_THE_COMMAND_LINE.get(name))


def _hint(name: str, here: str | None, why_not: str | None) -> str:
    if why_not is not None:
        return f"; leave out '{name}': {why_not}"
    origin = "other libraries" if name in _FROM_ANYWHERE else "Stable-Baselines3"
    return f"; in Coach, '{name}' of {origin} is {here}" if here is not None else ""
