"""SheepRL's DreamerV3, trained with the model, the sequences and the number of updates of a tuned preset of ours.

python -m benchmarks.sheeprl_side PRESET SEED EPISODES

runs in SheepRL's environment and prints one line of JSON: the score and the learning curve. SheepRL has no evaluations
during a training, so this program plays episodes with each checkpoint after the training.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PeerSettings:
    """A training of ``dreamer_v3_5_1M``, which follows version 2 of the paper, with a smaller recurrent state.

    :param environment: settings of the environment, as on SheepRL's command line
    :param steps: of the environment, heatup included
    :param steps_per_update: of the environment
    :param period: steps between two points of the curve
    :param length: steps of a sequence; a batch has 16 sequences
    :param episodes: for each point of the curve
    :param keys: settings of the observations
    """

    environment: tuple[str, ...]
    steps: int
    steps_per_update: int
    period: int
    length: int = 16
    episodes: int = 3
    keys: tuple[str, ...] = ("algo.cnn_keys.encoder=[]", "algo.mlp_keys.encoder=[state]")


SWINGUP = ("env=dmc", "env.wrapper.domain_name=cartpole", "env.wrapper.task_name=swingup", "env.action_repeat=4")
SETTINGS = {
    "CartPole_DreamerV3": PeerSettings(("env=gym", "env.id=CartPole-v1"), 6_000, 4, 1_000),
    "ControlSuite_DreamerV3": PeerSettings(
        (*SWINGUP, "env.wrapper.from_pixels=False", "env.max_episode_steps=-1"), 11_000, 4, 2_500
    ),
}
HEATUP = 1_000


def train(preset: str, seed: int, folder: pathlib.Path) -> None:
    """Train with SheepRL's command.

    :param folder: that gets the checkpoints
    """
    how = SETTINGS[preset]
    subprocess.run(
        [
            str(pathlib.Path(sys.executable).with_name("sheeprl")), "exp=dreamer_v3_5", "algo=dreamer_v3_5_1M",
            *how.environment, *how.keys, "env.num_envs=1", "env.sync_env=True", "env.capture_video=False",
            "algo.world_model.recurrent_model.recurrent_state_size=128", "algo.optimizer.lr=0.001",
            "algo.optimizer.warmup=100",
            f"algo.per_rank_sequence_length={how.length}", f"algo.replay_ratio={1 / how.steps_per_update}",
            f"algo.total_steps={how.steps}", f"algo.learning_starts={HEATUP}", "algo.run_test=False",
            f"buffer.size={how.steps}", "buffer.memmap=False", "buffer.checkpoint=False",
            f"checkpoint.every={how.period}", "checkpoint.keep_last=null", "metric.log_level=0", f"seed={seed}",
            f"log_root={folder}", "root_dir=runs", "run_name=one", "model_manager.disabled=True",
        ],
        check=True, cwd=folder, stdout=sys.stderr,
    )  # fmt: skip


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


def main(preset: str, seed: str, episodes: str) -> None:
    """Train, evaluate all checkpoints, and print the result."""
    how = SETTINGS[preset]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        train(preset, int(seed), folder)
        saved = {int(file.stem.split("_")[1]): file for file in folder.rglob("ckpt_*.ckpt")}
        curve = [[steps - HEATUP, evaluate(saved[steps], how.episodes)] for steps in sorted(saved) if steps > HEATUP]
        print(json.dumps([evaluate(saved[max(saved)], int(episodes)), curve]))


if __name__ == "__main__":
    main(*sys.argv[1:])
