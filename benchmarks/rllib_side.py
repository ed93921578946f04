"""Measures RLlib on CartPole with steps of 10 ms: ``python -m benchmarks.rllib_side ALGORITHM ENV_RUNNERS SECONDS``.

Use a Python interpreter that has Ray; Coach is not needed. The script prints the steps per second as JSON. Networks,
batches and updates per step are the same as in Coach's presets in ``slow_runs``.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from benchmarks.asynchronous import SlowCartPole

LEVEL = "slow-cart-pole"
PPO_STEPS, WARM_UP = 512, 1056
"""The same numbers as in ``slow_runs``. The interpreter cannot import that module, because it has no Coach."""


def configuration(algorithm: str, runners: int) -> Any:
    """RLlib's configuration of an algorithm, with ``runners`` environment runners of one environment each."""
    from ray.rllib.algorithms.dqn import DQNConfig
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    config: Any
    if algorithm == "ppo":
        config = PPOConfig().training(
            train_batch_size_per_learner=PPO_STEPS, minibatch_size=64, num_epochs=10, lr=3e-4, entropy_coeff=0.0
        )
        network = DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=True)
    else:
        config = DQNConfig().training(
            train_batch_size_per_learner=32, training_intensity=32.0, lr=2.5e-4, target_network_update_freq=100,
            num_steps_sampled_before_learning_starts=32,
            replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": 40_000},
        )  # fmt: skip
        config = config.reporting(min_sample_timesteps_per_iteration=100)
        network = DefaultModelConfig(fcnet_hiddens=[256, 512], fcnet_activation="relu")
    return (
        config.environment(LEVEL)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=1)
        .rl_module(model_config=network)
        .reporting(min_time_s_per_iteration=0)
        .debugging(log_level="ERROR")
    )


def measure(algorithm: str, runners: int, seconds: float) -> dict[str, Any]:
    """Measure environment steps per second, learning included, after a warm-up."""
    import ray
    from ray.tune.registry import register_env

    ray.init(logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False, num_cpus=runners + 1)
    register_env(LEVEL, lambda _: SlowCartPole())
    trainer = configuration(algorithm, runners).build_algo()
    try:
        while (before := _steps(trainer.train())) <= WARM_UP:
            pass
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            after = _steps(trainer.train())
        return {"steps_per_second": (after - before) / (time.perf_counter() - began), "version": ray.__version__}
    finally:
        trainer.stop()
        ray.shutdown()


def _steps(result: dict[str, Any]) -> int:
    return int(result["env_runners"]["num_env_steps_sampled_lifetime"])


def main() -> None:
    """Measure, and print the result as the last line."""
    algorithm, runners, seconds = sys.argv[1:]
    print(json.dumps(measure(algorithm, int(runners), float(seconds))))


if __name__ == "__main__":
    main()
