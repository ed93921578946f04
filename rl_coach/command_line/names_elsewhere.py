"""The names of settings in other libraries, and the names of these settings in Coach."""

from __future__ import annotations

NAMES_HERE = {
    "buffer_size": "memory={'max_size': (MemoryGranularity.Transitions, N)}",
    "clip_range": "clip_likelihood_ratio_using_epsilon",
    "clip_range_vf": "clip_value_using_epsilon",
    "ent_coef": "beta_entropy, for SAC temperature",
    "exploration_fraction": "exploration={'epsilon_schedule': LinearSchedule(1, END, STEPS)}",
    "exploration_final_eps": "exploration={'epsilon_schedule': LinearSchedule(1, END, STEPS)}",
    "gamma": "discount",
    "gradient_steps": "num_consecutive_training_steps",
    "learning_starts": "heatup_steps",
    "lr": "learning_rate",
    "max_grad_norm": "clip_gradients",
    "n_envs": "num_envs",
    "n_epochs": "optimization_epochs",
    "n_steps": "num_consecutive_playing_steps=EnvironmentSteps(N), for A2C num_steps_between_gradient_updates=N",
    "policy_kwargs": "middleware_parameters={'scheme': [Dense(N)]} and "
    "input_embedders_parameters={'observation': {'scheme': [Dense(N)]}}",
    "target_kl": "target_kl_divergence, for TRPO max_kl_divergence",
    "target_update_interval": "num_steps_between_copying_online_weights_to_target",
    "tau": "rate_for_copying_weights_to_target",
    "tensorboard_log": "experiment_path=DIRECTORY, where the signals are written as CSV",
    "train_freq": "num_consecutive_playing_steps=EnvironmentSteps(N), for TD3 also act_for_full_episodes=False",
    "use_sde": "exploration of agent parameters: StateDependentNoiseParameters(agent_params)",
    "vf_coef": "network_wrappers['main'].heads_parameters[0].loss_weight",
}
"""The names of settings in Coach, by their names in Stable-Baselines3 and other libraries."""
_FROM_ANYWHERE = ("lr",)
_NOT_HERE = {
    "device": "a GPU is used if the framework finds one, and CUDA_VISIBLE_DEVICES=-1 hides it",
    "policy": "the networks are made for the spaces; middleware_parameters={'scheme': [Dense(N)]} sets their layers",
    "verbose": "make_agent prints nothing, and experiment_path=DIRECTORY writes the signals",
}


def hint(name: str) -> str:
    """The end of an error message with Coach's name for a setting of another library; empty for an unknown name."""
    if name in _NOT_HERE:
        return f"; leave out '{name}': {_NOT_HERE[name]}"
    origin = "other libraries" if name in _FROM_ANYWHERE else "Stable-Baselines3"
    return f"; '{name}' of {origin} is {NAMES_HERE[name]} here" if name in NAMES_HERE else ""
