"""Each agent plays five episodes with each kind of action, in the form in which these systems test their agents."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.own_loop import tensorforce
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.samples import one_in

SETTINGS = {"framework": FRAMEWORK.name, "seed": 1}


class MinimalTest:
    """An environment of four steps, with a state and an action for each kind that is asked for.

    :param kinds: of ``bool``, ``int``, ``float`` and ``bounded``, each with the shape of its actions
    """

    def __init__(self, **kinds):
        self.kinds = kinds

    def _single(self, found):
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def states(self):
        return self._single({kind: {"type": "float", "shape": (2,)} for kind in self.kinds})

    @property
    def actions(self):
        settings = {"int": {"num_actions": 2}, "bounded": {"min_value": -0.5, "max_value": 1.5}}
        types = {"bounded": "float"}
        return self._single(
            {
                kind: {"type": types.get(kind, kind), "shape": shape, **settings.get(kind, {})}
                for kind, shape in self.kinds.items()
            }
        )

    def reset(self):
        self.step = 0
        return self._single({kind: np.array([1.0, 0.0]) for kind in self.kinds})

    def execute(self, action):
        actions = action if len(self.kinds) > 1 else {next(iter(self.kinds)): action}
        total = 0.0
        for kind, shape in self.kinds.items():
            assert np.shape(actions[kind]) == shape and np.all(np.isfinite(actions[kind]))
            total += float(np.mean(actions[kind]))
        self.step += 1
        return self._single({kind: np.array([0.0, 1.0]) for kind in self.kinds}), self.step == 4, total

    def close(self):
        pass

    def __str__(self):
        return "MinimalTest"


ADAM = {"type": "adam", "learning_rate": 0.01}
REPLAY = {"type": "replay", "include_next_states": True, "capacity": 100}
LATEST = {"type": "latest", "include_next_states": False, "capacity": 100}
TIMESTEPS = {"unit": "timesteps", "batch_size": 8, "frequency": 4}
EPISODES = {"unit": "episodes", "batch_size": 2, "frequency": 2}
SEQUENCES = {"unit": "sequences", "batch_size": 4, "frequency": 2, "length": 2}
VALUES = {"update_mode": TIMESTEPS, "memory": REPLAY, "optimizer": ADAM, "target_sync_frequency": 10}
STEPS = {"type": "multi_step", "optimizer": ADAM, "num_steps": 5}
POLICY = {"update_mode": EPISODES, "memory": LATEST, "optimizer": ADAM}
BASELINE = {
    "baseline_mode": "states", "baseline": {"type": "mlp", "sizes": [32, 32]}, "baseline_optimizer": STEPS,
    "gae_lambda": 0.97,
}  # fmt: skip
LAYERS = [{"type": "dense", "size": 32}, {"type": "dense", "size": 32}]
CHOICES, NUMBERS = ("bool", "int"), ("float", "bounded")
OLD_VALUES = {"memory": REPLAY, "optimizer": ADAM, "target_sync_frequency": 10, "batch_size": 8, "first_update": 5,
              "update_frequency": 2, "repeat_update": 1}  # fmt: skip
CONFIGS = {
    "random": ("RandomAgent", {}, CHOICES + NUMBERS),
    "constant": ("ConstantAgent", {"action_values": {"action": 1}}, CHOICES + NUMBERS),
    "dqn": ("DQNAgent", {**VALUES, "actions_exploration": {
        "type": "epsilon_decay", "initial_epsilon": 0.5, "final_epsilon": 0.0, "timesteps": 10}}, CHOICES),
    "dqn-0.3": ("DQNAgent", {**OLD_VALUES, "huber_loss": None, "double_q_model": True}, CHOICES),
    "dqn-prioritized": ("DQNAgent", {**VALUES, "memory": {
        "type": "prioritized_replay", "include_next_states": True, "capacity": 100, "buffer_size": 20,
        "prioritization_weight": 1.0}}, CHOICES),
    "dqn-clipped": ("DQNAgent", {**VALUES, "optimizer": {
        "type": "clipped_step", "clipping_value": 0.1, "optimizer": ADAM}}, CHOICES),
    "ddqn": ("DDQNAgent", VALUES, CHOICES),
    "dqn-nstep": ("DQNNstepAgent", {**VALUES, "update_mode": {"unit": "timesteps", "batch_size": 4},
                                    "memory": LATEST}, CHOICES),
    "dqn-nstep-episodes": ("DQNNstepAgent", {"update_mode": EPISODES, "memory": {**LATEST, "include_next_states": True},
                                             "optimizer": ADAM}, CHOICES),
    "dqfd": ("DQFDAgent", {**VALUES, "demo_memory_capacity": 100, "demo_sampling_ratio": 0.2}, CHOICES),
    "naf": ("NAFAgent", {**VALUES, "actions_exploration": {"type": "ornstein_uhlenbeck"}}, NUMBERS),
    "naf-0.3": ("NAFAgent", {**OLD_VALUES, "explorations_spec": {"type": "ornstein_uhlenbeck"}}, NUMBERS),
    "ddpg": ("DDPGAgent", {**VALUES, "critic_network": {"size_t0": 32, "size_t1": 32}, "critic_optimizer": ADAM},
             NUMBERS),
    "vpg": ("VPGAgent", POLICY, CHOICES + NUMBERS),
    "vpg-0.3": ("VPGAgent", {"batch_size": 8, "optimizer": ADAM}, CHOICES + NUMBERS),
    "vpg-timesteps": ("VPGAgent", {**POLICY, "update_mode": TIMESTEPS, "memory": REPLAY}, CHOICES),
    "vpg-sequences": ("VPGAgent", {**POLICY, "update_mode": SEQUENCES}, CHOICES),
    "vpg-subsampling": ("VPGAgent", {**POLICY, "optimizer": {
        "type": "subsampling_step", "optimizer": ADAM, "fraction": 0.33}}, CHOICES),
    "vpg-baseline": ("VPGAgent", {**POLICY, **BASELINE}, CHOICES + NUMBERS),
    "vpg-baseline-sequences": ("VPGAgent", {**POLICY, **BASELINE, "update_mode": SEQUENCES}, CHOICES),
    "vpg-network-baseline": ("VPGAgent", {**POLICY, "baseline_mode": "network", "baseline": {
        "type": "mlp", "sizes": [32, 32]}, "gae_lambda": 0.97, "baseline_optimizer": ADAM}, CHOICES + NUMBERS),
    "vpg-evolutionary": ("VPGAgent", {**POLICY, "optimizer": {"type": "evolutionary", "learning_rate": 0.01}}, CHOICES),
    "vpg-natural-gradient": ("VPGAgent", {**POLICY, "optimizer": {
        "type": "natural_gradient", "learning_rate": 0.01, "cg_max_iterations": 5}}, CHOICES),
    "vpg-optimized-step": ("VPGAgent", {**POLICY, "optimizer": {
        "type": "optimized_step", "optimizer": ADAM, "ls_max_iterations": 10}}, CHOICES),
    "vpg-multi-step": ("VPGAgent", {**POLICY, "optimizer": STEPS}, CHOICES),
    "trpo": ("TRPOAgent", {"update_mode": EPISODES, "memory": LATEST, "learning_rate": 0.01}, CHOICES + NUMBERS),
    "trpo-0.3": ("TRPOAgent", {"batch_size": 8, "learning_rate": 0.01}, CHOICES + NUMBERS),
    "ppo": ("PPOAgent", {"update_mode": EPISODES, "memory": LATEST, "step_optimizer": ADAM, "subsampling_fraction": 0.3,
                         "optimization_steps": 20}, CHOICES + NUMBERS),
    "ppo-baseline": ("PPOAgent", {"update_mode": EPISODES, "memory": LATEST, "step_optimizer": ADAM,
                                  "optimization_steps": 20, **BASELINE}, CHOICES + NUMBERS),
    "ppo-sequences": ("PPOAgent", {"update_mode": SEQUENCES, "memory": LATEST, "step_optimizer": ADAM}, CHOICES),
    "trpo-frequency": ("TRPOAgent", {"update_mode": TIMESTEPS, "memory": LATEST}, NUMBERS),
    "ppo-0.3": ("PPOAgent", {"batch_size": 8, "step_optimizer": ADAM, "optimization_steps": 10}, CHOICES + NUMBERS),
}  # fmt: skip


def play(environment, name, network):
    kind, config, _ = CONFIGS[name]
    agent = getattr(tensorforce, kind)(
        states=environment.states, actions=environment.actions, network=network, **config, **SETTINGS
    )
    runner = tensorforce.Runner(agent=agent, environment=environment)
    if name == "dqfd":
        state = environment.reset()
        step = {"states": state, "internals": [], "actions": agent.act(state), "terminal": True, "reward": 1.0}
        agent.reset()
        agent.import_demonstrations([step] * 50)
        agent.pretrain(steps=3)
    runner.run(num_episodes=5, episode_finished=lambda r: r.episode < 100)
    assert runner.episode == 5 and runner.episode_timesteps == [4] * 5 and agent.episode >= 5
    runner.close()


PATHS = [
    *[[{"type": "input", "names": kind}, {"type": "dense", "size": 16}, {"type": "output", "name": f"{kind}-output"}]
      for kind in ("bool", "int", "float", "bounded")],
    [{"type": "input", "names": ["bool-output", "int-output", "float-output", "bounded-output"],
      "aggregation_type": "product"}, {"type": "dense", "size": 16}],
]  # fmt: skip


@pytest.mark.parametrize("network", [LAYERS, PATHS], ids=["layers", "paths"])
@pytest.mark.parametrize("name", ["random", "vpg", "vpg-baseline", "ppo", "trpo"])
def test_several_actions_and_states_by_name(name, network):
    play(MinimalTest(bool=(), int=(2,), float=(), bounded=(1, 2)), name, network)


@pytest.mark.parametrize("name", ["dqn", "dqfd", "naf", "ddpg"])
def test_several_actions_of_one_kind_by_name(name):
    kinds = {"float": (), "bounded": (2,)} if name in ("naf", "ddpg") else {"bool": (), "int": (2,)}
    play(MinimalTest(**kinds), name, LAYERS)


@pytest.mark.parametrize("name", ["dqn", "vpg", "vpg-baseline", "ppo", "trpo"])
def test_a_network_with_an_lstm(name):
    play(MinimalTest(int=()), name, [{"type": "dense", "size": 8}, {"type": "internal_lstm", "size": 8}])


@pytest.mark.parametrize(
    ("name", "action"),
    one_in(3, [(name, action) for name, (_, _, actions) in CONFIGS.items() for action in actions]),
)
def test_an_agent_of_tensorforce_plays(name, action):
    play(MinimalTest(**{action: ()}), name, LAYERS)


BOUNDED = {"type": "float", "shape": (1, 1), "min_value": -0.5, "max_value": 1.5}


@pytest.mark.parametrize(
    ("actions", "values", "expected"),
    [
        ({"type": "float"}, {"action": 1.5}, 1.5),
        ({"type": "int", "num_actions": 3}, 2, 2),
        ({"type": "bool"}, None, False),
        ({"type": "float", "min_value": 0.25}, None, 0.25),
        ({"choice": {"type": "int", "num_actions": 3, "shape": (2,)}, "number": BOUNDED}, {"choice": [2, 1]},
         {"choice": [2, 1], "number": [[0.0]]}),
    ],
)  # fmt: skip
def test_a_constant_agent_acts_as_it_is_told(actions, values, expected):
    agent = tensorforce.ConstantAgent({"type": "float", "shape": 2}, actions, action_values=values, **SETTINGS)
    for step in range(3):
        np.testing.assert_equal(agent.act(np.zeros(2)), expected)
        agent.observe(terminal=step == 2, reward=1.0)
    np.testing.assert_equal(agent.act(np.ones(2), independent=True), expected)
    assert agent.timestep == 3 and agent.total_updates == 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [({"a": 3}, "'action_values' 3 is not an action"), ({"c": 1}, "has 'c'; the actions are a, b"),
     ({"a": [1, 2]}, "does not have the shape"), ({"a": "up"}, "does not have the shape"),
     ({"a": float("nan")}, "not an action")],
)  # fmt: skip
def test_a_constant_that_is_no_action_is_one_line(values, reason):
    actions = {"a": {"type": "int", "num_actions": 2}, "b": {"type": "int", "num_actions": 2}}
    with pytest.raises(CoachError, match=reason) as caught:
        tensorforce.ConstantAgent({"type": "float", "shape": 2}, actions, action_values=values, **SETTINGS)
    assert len(str(caught.value).splitlines()) == 1
