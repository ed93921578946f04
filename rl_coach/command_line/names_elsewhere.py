"""Settings by the names that they have in other libraries."""

from __future__ import annotations

NAMES_HERE = {
    "buffer_size": "memory={'max_size': (MemoryGranularity.Transitions, N)}",
    "clip_range": "clip_likelihood_ratio_using_epsilon",
    "clip_range_vf": "clip_value_using_epsilon",
    "ent_coef": "beta_entropy",
    "exploration_fraction": "exploration={'epsilon_schedule': LinearSchedule(1, END, STEPS)}",
    "exploration_final_eps": "exploration={'epsilon_schedule': LinearSchedule(1, END, STEPS)}",
    "gamma": "discount",
    "gradient_steps": "num_consecutive_training_steps",
    "learning_starts": "heatup_steps",
    "max_grad_norm": "clip_gradients",
    "n_epochs": "optimization_epochs",
    "n_steps": "num_consecutive_playing_steps=EnvironmentSteps(N), for A2C num_steps_between_gradient_updates=N",
    "policy_kwargs": "middleware_parameters={'scheme': [Dense(N)]} and "
    "input_embedders_parameters={'observation': {'scheme': [Dense(N)]}}",
    "target_kl": "target_kl_divergence",
    "target_update_interval": "num_steps_between_copying_online_weights_to_target",
    "tau": "rate_for_copying_weights_to_target",
    "tensorboard_log": "experiment_path=DIRECTORY, where the signals are written as CSV",
    "train_freq": "num_consecutive_playing_steps=EnvironmentSteps(N)",
    "use_sde": "exploration of agent parameters: StateDependentNoiseParameters(agent_params)",
    "vf_coef": "network_wrappers['main'].heads_parameters[0].loss_weight",
}
"""Settings by the names that Stable-Baselines3 has for them, and what they are called here."""


def hint(name: str) -> str:
    """The end of a message that translates the name of a setting of Stable-Baselines3; empty for another name."""
    return f"; '{name}' of Stable-Baselines3 is {NAMES_HERE[name]} here" if name in NAMES_HERE else ""
