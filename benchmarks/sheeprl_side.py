"""SheepRL's DreamerV3, trained with the model, the sequences and the number of updates of a preset of ours.

``train`` starts this program in SheepRL's environment:

    python -m benchmarks.sheeprl_side SETTINGS SEED EPISODES

The program prints the score and the learning curve as one line of JSON. SheepRL makes no evaluations during a training.
The program therefore plays episodes with each checkpoint after the training.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import Any, Callable

from benchmarks.pages import REPOSITORY
from benchmarks.works import SEQUENCE as STEPS_OF_SEQUENCE
from benchmarks.works import Work

HEATUP, STEPS_PER_UPDATE, SEQUENCE, EPISODES_OF_POINT = 1_000, 4, 16, 3


@dataclass(frozen=True)
class PeerSettings:
    """A training of ``dreamer_v3_5_1M``, which follows version 2 of the paper, with a smaller recurrent state.

    :param environment: settings of the environment, as on SheepRL's command line
    :param steps: number of steps in the environment, with the first ``HEATUP`` steps before training
    :param period: number of steps between two points of the learning curve
    :param sees_images: whether the model observes images of 64 x 64 pixels; otherwise it observes vectors
    """

    environment: tuple[str, ...]
    steps: int
    period: int
    sees_images: bool = False


COMMON = (
    "exp=dreamer_v3_5", "algo=dreamer_v3_5_1M", "env.num_envs=1", "env.sync_env=True", "env.capture_video=False",
    "algo.run_test=False", "buffer.memmap=False", "buffer.checkpoint=False", "metric.log_level=0", "root_dir=runs",
    "run_name=one", "model_manager.disabled=True",
)  # fmt: skip
"""Settings of all trainings."""

SWINGUP = (
    "env=dmc", "env.wrapper.domain_name=cartpole", "env.wrapper.task_name=swingup", "env.max_episode_steps=-1"
)  # fmt: skip
SETTINGS = {
    "CartPole_DreamerV3": PeerSettings(("env=gym", "env.id=CartPole-v1"), 6_000, 1_000),
    "ControlSuite_DreamerV3": PeerSettings(
        (*SWINGUP, "env.action_repeat=4", "env.wrapper.from_pixels=False"), 11_000, 2_500
    ),
    "ControlSuitePixels_DreamerV3": PeerSettings(
        (*SWINGUP, "env.wrapper._target_=benchmarks.sheeprl_side.with_one_image", "env.wrapper.from_vectors=False"),
        6_000,
        1_250,
        sees_images=True,
    ),
    "MiniGridMemory_DreamerV3": PeerSettings(
        ("env=gym", "env.id=MiniGrid-MemoryS7-v0", "env.wrapper._target_=benchmarks.sheeprl_side.memory"),
        11_000,
        2_500,
    ),
}


def train(settings: PeerSettings, seed: int, episodes: int) -> tuple[float, list[tuple[int, float]]]:
    """Train in SheepRL's environment.

    :param episodes: number of evaluation episodes after the last step
    :return: the score, and steps and mean return of each point of the learning curve
    :raises MissingEnvironment: if SheepRL's Python environment does not exist
    """
    from benchmarks.peers import interpreter_in  # SheepRL's environment does not have its imports

    command = [interpreter_in("sheeprl", "sheeprl"), "-m", __name__, json.dumps(asdict(settings))]
    done = subprocess.run([*command, str(seed), str(episodes)], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE)
    score, curve = json.loads(done.stdout)
    return score, curve


def _train_here(settings: PeerSettings, seed: int, folder: pathlib.Path) -> None:
    """Train with SheepRL's command. :param folder: directory for the checkpoints"""
    images, vectors = ("[rgb]", "[]") if settings.sees_images else ("[]", "[state]")
    command = [
        str(pathlib.Path(sys.executable).with_name("sheeprl")), *COMMON, *settings.environment,
        f"algo.cnn_keys.encoder={images}", f"algo.mlp_keys.encoder={vectors}",
        "algo.world_model.recurrent_model.recurrent_state_size=128", "algo.optimizer.lr=0.001",
        "algo.optimizer.warmup=100",
        f"algo.per_rank_sequence_length={SEQUENCE}", f"algo.replay_ratio={1 / STEPS_PER_UPDATE}",
        f"algo.total_steps={settings.steps}", f"algo.learning_starts={HEATUP}", f"buffer.size={settings.steps}",
        f"checkpoint.every={settings.period}", "checkpoint.keep_last=null", f"seed={seed}", f"log_root={folder}",
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    subprocess.run(command, check=True, cwd=folder, stdout=sys.stderr, env=environment)


class _Over(BaseException):
    """Raised to end SheepRL's training loop. SheepRL catches an ``Exception`` and makes the environment again."""


_is_over: Callable[[int], bool]
"""Whether the training must end after a number of steps. SheepRL makes the environment, so this is no argument."""


def timed_cart_pole(id: str, render_mode: str) -> Any:  # names of SheepRL's settings
    """CartPole-v1 that calls the function of ``train_until`` at each step."""
    import gymnasium

    class Timed(gymnasium.Wrapper):
        steps = 0

        def step(self, action: Any) -> Any:
            if _is_over(self.steps):
                raise _Over
            self.steps += 1
            return super().step(action)

    return Timed(gymnasium.make(id))


def train_until(work: Work, tick: Callable[[int], bool]) -> None:
    """Train the published model ``size1m`` in this process until ``tick`` returns True.

    :param work: a work of ``dreamer_v3``
    :param tick: is called with the number of steps after the random ones
    """
    global _is_over
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf
    from sheeprl.cli import check_configs, run_algorithm
    from sheeprl.utils.utils import dotdict

    random_steps = 4 * work.batch_size

    def is_over(steps: int) -> bool:
        return tick(max(0, steps - random_steps))

    _is_over = is_over
    with tempfile.TemporaryDirectory() as folder, initialize_config_module("sheeprl.configs", version_base="1.3"):
        overrides = [
            *COMMON, "env=gym", f"env.id={work.level}",
            "env.wrapper._target_=benchmarks.sheeprl_side.timed_cart_pole", "algo.cnn_keys.encoder=[]",
            "algo.mlp_keys.encoder=[state]", f"algo.per_rank_sequence_length={STEPS_OF_SEQUENCE}",
            f"algo.per_rank_batch_size={work.batch_size // STEPS_OF_SEQUENCE}",
            f"algo.replay_ratio={1 / work.steps_per_update}", f"algo.learning_starts={random_steps}",
            f"buffer.size={work.memory}", "fabric.accelerator=cpu", f"log_root={folder}",
        ]  # fmt: skip
        config = compose("config", overrides)
        config = dotdict(OmegaConf.to_container(config, resolve=True, throw_on_missing=True))
        check_configs(config)
        with contextlib.suppress(_Over), contextlib.redirect_stdout(sys.stderr):
            run_algorithm(config)


def with_one_image(**settings: Any) -> Any:
    """A task of the control suite that repeats each action four times and draws only the last image.

    SheepRL's ``env.action_repeat`` draws all four. :param settings: arguments of SheepRL's ``DMCWrapper``
    """
    from sheeprl.envs.dmc import DMCWrapper

    class DrawnOnce(DMCWrapper):
        def step(self, action: Any) -> Any:
            total = 0.0
            for is_last in (False, False, False, True):
                self._from_pixels = is_last
                observation, reward, *ends = super().step(action)
                total += float(reward)
            return observation, total, *ends

    return DrawnOnce(**settings)


def memory(id: str, render_mode: str) -> Any:  # names of SheepRL's settings
    """The environment of our preset ``MiniGridMemory_DreamerV3``. The parameters of SheepRL have no effect."""
    from rl_coach.environments.toy_problems.minigrid_memory import minigrid_memory

    return minigrid_memory()


def evaluate(checkpoint: pathlib.Path, episodes: int) -> float:
    """The mean return of episodes in which a trained model takes the most probable actions."""
    import torch
    from lightning import Fabric
    from omegaconf import OmegaConf
    from sheeprl.algos.dreamer_v3.utils import prepare_obs
    from sheeprl.algos.dreamer_v3_5.agent import build_agent
    from sheeprl.utils.env import make_env
    from sheeprl.utils.utils import dotdict

    config = dotdict(OmegaConf.to_container(OmegaConf.load(checkpoint.parents[1] / "config.yaml"), resolve=True))
    fabric = Fabric(devices=1, accelerator="cpu")
    state = fabric.load(str(checkpoint))
    env = make_env(config, 0, 0)()
    space = env.action_space
    is_continuous = not hasattr(space, "n")
    player = build_agent(
        fabric, tuple(space.shape) if is_continuous else (int(space.n),), is_continuous, config,
        env.observation_space, state["world_model"], state["actor"],
    )[-1]  # fmt: skip
    player.num_envs = 1

    def act(observation: dict[str, Any]) -> Any:
        seen = prepare_obs(fabric, observation, cnn_keys=config.algo.cnn_keys.encoder)
        chosen = player.get_actions(seen, greedy=True)
        parts = torch.stack(chosen, -1) if is_continuous else torch.stack([one.argmax(dim=-1) for one in chosen], -1)
        return parts.numpy().reshape(space.shape)

    returns = []
    with torch.no_grad():
        for episode in range(episodes):
            observation, ended, total = env.reset(seed=1000 + episode)[0], False, 0.0
            player.init_states()
            while not ended:
                observation, reward, terminated, truncated, _ = env.step(act(observation))
                ended, total = terminated or truncated, total + float(reward)
            returns.append(total)
    env.close()
    return statistics.mean(returns)


def main(settings: str, seed: str, episodes: str) -> None:
    """Train, evaluate all checkpoints, and print the result."""
    how = PeerSettings(**json.loads(settings))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        _train_here(how, int(seed), folder)
        saved = {int(file.stem.split("_")[1]): file for file in folder.rglob("ckpt_*.ckpt")}
        trained = [steps for steps in sorted(saved) if steps > HEATUP]
        curve = [[steps - HEATUP, evaluate(saved[steps], EPISODES_OF_POINT)] for steps in trained]
        print(json.dumps([evaluate(saved[max(saved)], int(episodes)), curve]))


if __name__ == "__main__":
    main(*sys.argv[1:])
