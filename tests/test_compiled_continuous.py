"""SAC, TD3 and DDPG in a loop that is compiled as a whole: the same rows and noise give the updates of the ordinary
loop."""

from __future__ import annotations

import copy
from typing import Any, Callable, NamedTuple

import numpy as np
import pytest

from rl_coach.agents.core.overrides import acts_or_learns_otherwise
from rl_coach.agents.cql_agent import CQLAgent
from rl_coach.agents.ddpg_agent import DDPGAgent
from rl_coach.agents.drq_agent import DrQv2Agent
from rl_coach.agents.hac_ddpg_agent import HACDDPGAgent
from rl_coach.agents.iql_agent import IQLAgent
from rl_coach.agents.naf_agent import NAFAgent
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgent
from rl_coach.agents.td3_agent import TD3Agent
from rl_coach.agents.td3_exploration_agent import TD3ExplorationAgent
from rl_coach.agents.td3_goal_based_agent import TD3GoalBasedAgent
from rl_coach.agents.wolpertinger_agent import WolpertingerAgent
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, Frameworks
from rl_coach.compiled_level_manager import CompiledLevelManager
from rl_coach.core_types import Batch, EnvironmentSteps, RunPhase, Transition
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.exploration_policies.state_dependent_noise import StateDependentNoiseParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.presets.tuned import Pendulum_SAC, Pendulum_TD3
from rl_coach.presets.tuned._networks import two_layers
from rl_coach.schedules import LinearSchedule
from rl_coach.vector_level_manager import VectorLevelManager
from tests.frameworks import FRAMEWORK
from tests.samples import one_in
from tests.zoo import continuous
from tests.zoo.graphs import compiled, graph, next_phase, schedule
from tests.zoo.parameters import soft_actor_critic
from tests.zoo.states import differences, samples_and_leaves, weights_of

pytestmark = pytest.mark.skipif(
    FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX (COACH_TEST_FRAMEWORK)"
)


def replaying(make: Callable[[], AgentParameters], training: int = 1, **algorithm: Any) -> AgentParameters:
    """The agent on uniform replay, which learns after every four steps."""
    parameters = make()
    size = parameters.memory.max_size
    parameters.memory = ExperienceReplayParameters()
    parameters.memory.max_size = size
    parameters.algorithm.act_for_full_episodes = False
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
    parameters.algorithm.num_consecutive_training_steps = training
    for name, value in algorithm.items():
        setattr(parameters.algorithm, name, value)
    return parameters


def ddpg(**settings: Any) -> AgentParameters:
    parameters = replaying(continuous.ddpg, **settings)
    parameters.exploration = AdditiveNoiseParameters()
    parameters.exploration.noise_schedule = LinearSchedule(0.5, 0.1, 400)
    return parameters


def td3(**settings: Any) -> AgentParameters:
    return replaying(continuous.td3, **settings)


def sac(**settings: Any) -> AgentParameters:
    return replaying(continuous.maximum_entropy, **settings)


def simba_v2(**settings: Any) -> AgentParameters:
    parameters = replaying(continuous.simba_v2, **settings)
    parameters.input_filter = None  # the filter of rewards has no compiled form
    return parameters


AGENTS = {
    "sac": sac,
    "sac-with-v": lambda **settings: replaying(soft_actor_critic, **settings),
    "td3": td3,
    "ddpg": ddpg,
    "redq": lambda **settings: replaying(continuous.redq, **settings),
    "droq": lambda **settings: replaying(continuous.droq, **settings),
    "tqc": lambda **settings: replaying(continuous.tqc, **settings),
    "crossq": lambda **settings: replaying(continuous.crossq, **settings),
    "simba-v2": simba_v2,
}


class Drawn(NamedTuple):
    """The rows and the noise of a phase, as the ordinary loop draws them.

    :param batch: the rows of its updates, one after the other
    :param noise: standard normal, [rows, D] each, in the order in which the agent draws them
    """

    batch: Batch
    noise: list[np.ndarray]
    critics: np.ndarray | None


def drawn_by(part: Any, key: Any, memory: Any) -> Drawn:
    import jax

    rows, own = (
        {name: np.asarray(column).reshape(-1, *column.shape[2:]) for name, column in columns.items()}
        for columns in (part._drawn_columns(jax.random.split(key)[0], memory, {})[0], part.columns(key, memory, {})[0])
    )
    transitions = [
        Transition(
            state={"observation": rows["states/observation"][row]},
            action=rows["actions"][row],
            reward=float(rows["rewards"][row]),
            next_state={"observation": rows["next_states/observation"][row]},
            game_over=False,
            terminated=bool(rows["discounts"][row] == 0.0),
        )
        for row in range(len(rows["rewards"]))
    ]
    noise = [own[name] for name in ("extra/noise", "extra/next_noise") if name in own]
    return Drawn(Batch(transitions), noise, own.get("extra/critics"))


class GivenNoise:
    """A random generator that gives what it was given."""

    def __init__(self, noise: list[np.ndarray]):
        self._noise = list(noise)

    def standard_normal(self, shape: Any, dtype: Any) -> np.ndarray:
        noise = self._noise.pop(0)
        assert noise.shape == tuple(shape) and noise.dtype == dtype
        return noise


@pytest.mark.parametrize(
    ("name", "settings"),
    one_in(
        2,
        [
            *((name, {"training": 3}) for name in AGENTS),
            ("td3", {"training": 1}),
            ("ddpg", {"training": 3, "use_non_zero_discount_for_terminal_states": True}),
            ("sac", {"training": 2, "update_policy_every_x_training_steps": 3}),
            ("sac", {"training": 2, "temperature": 0.1, "target_entropy": -1.0}),
        ],
    ),
)
def test_the_same_rows_and_noise_give_the_updates_of_the_ordinary_loop(name, settings, tmp_path, monkeypatch):
    import jax

    manager = compiled(AGENTS[name](**settings), tmp_path, "reach")
    agent, loop = manager.get_agent(), manager.level_managers[0]
    assert isinstance(loop, CompiledLevelManager)
    manager.heatup(EnvironmentSteps(60))
    manager.train_and_act(EnvironmentSteps(4))  # the number of the next update is not the first
    part, learner, memory = loop._part, agent.update_loop.learner, dict(loop._carry["memory"])
    memory["terminated"] = jax.random.bernoulli(jax.random.key(2), 0.3, memory["terminated"].shape)
    clock, key = agent.clock, jax.random.key(1)
    clock.steps += 4
    phase = next_phase(manager)
    state = {one: held.layout.unpack(learner.ops, held.variables) for one, held in learner.networks.items()}
    made = jax.jit(part.learn)(key, state, memory, loop._carry["statistics"], phase)

    drawn, updates = drawn_by(part, key, memory), clock.updates
    monkeypatch.setattr(agent.batches, "sample", lambda updates, batch_size: drawn.batch)
    monkeypatch.setattr(agent, "rng", GivenNoise(drawn.noise))
    if drawn.critics is not None:
        monkeypatch.setattr(agent, "_random_critics", lambda rows: drawn.critics)
    losses: list[Any] = []
    monkeypatch.setattr(agent.update_loop, "record", lambda result, is_counted: losses.append(result.losses))
    agent.update_loop.learn(settings["training"])
    assert clock.updates == updates + settings["training"]
    for network, held in learner.networks.items():
        for group in held.groups():
            for one, other in zip(made.state[network][group], held.arrays(group), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6, err_msg=f"{network} {group}")
    found = np.asarray(made.outputs)[:, : len(losses[0])].T
    np.testing.assert_allclose(found, [*losses[0].values()], rtol=1e-5, atol=1e-6)
    manager.close()


@pytest.mark.parametrize("name", ["sac", "td3", "redq"])
def test_a_policy_learns_in_some_of_the_updates_and_targets_move_in_theirs(name, tmp_path):
    period = {"sac": 1, "td3": 2, "redq": 2}[name]
    manager = compiled(
        AGENTS[name](training=3), tmp_path, "reach", steps=schedule(200, evaluate_every=100, evaluation=2, heatup=40)
    )
    manager.improve()
    agent = manager.get_agent()
    policy = "actor" if name == "td3" else "policy"
    critic = "critic" if name == "td3" else "q"
    assert agent.training_iteration == agent.networks[critic].state.updates == 150
    assert agent.networks[policy].state.updates == 150 // period
    assert manager.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps] == 200
    manager.close()


@pytest.mark.parametrize("name", ["sac", "td3"])
def test_numbers_do_not_depend_on_the_division_into_calls(name, tmp_path):
    runs = []
    for steps_at_once in (200, 8):  # of one program: programs of other sizes may round otherwise
        manager = compiled(AGENTS[name](training=3), tmp_path / str(steps_at_once), "reach")
        manager.heatup(EnvironmentSteps(40))
        for _ in range(0, 200, steps_at_once):
            manager.train_and_act(EnvironmentSteps(steps_at_once))
        runs.append(weights_of(manager))
        manager.close()
    for one, other in zip(*runs):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["sac", "td3", "ddpg"])
def test_it_resumes_exactly(name, tmp_path):
    """Also between two updates of the policy."""
    whole = compiled(AGENTS[name](), tmp_path / "whole", "reach", checkpoint_save_steps=10**6)
    whole.heatup(EnvironmentSteps(40))
    whole.train_and_act(EnvironmentSteps(300))
    first = compiled(AGENTS[name](), tmp_path / "first", "reach", checkpoint_save_steps=10**6)
    first.heatup(EnvironmentSteps(40))
    first.train_and_act(EnvironmentSteps(132))
    assert first.get_agent().training_iteration == 33
    path = first.save_checkpoint()
    first.close()
    task = {"checkpoint_save_steps": 10**6, "checkpoint_restore_path": path, "resume": True}
    second = compiled(AGENTS[name](), tmp_path / "first", "reach", **task)
    assert isinstance(second.level_managers[0], CompiledLevelManager)
    second.train_and_act(EnvironmentSteps(300 - 132))
    one, other = (samples_and_leaves(manager) for manager in (whole, second))
    assert [path for path in differences(one, other) if not path.endswith("/seconds")] == []
    whole.close(), second.close()


# acting


def actions_in(manager: Any, states: np.ndarray, level: list[float]) -> np.ndarray:
    """The actions that the agent of a compiled loop draws in states [N, D]."""
    import jax

    part, learner = manager.level_managers[0]._part, manager.get_agent().update_loop.learner
    state = {name: one.layout.unpack(learner.ops, one.variables) for name, one in learner.networks.items()}
    views = learner.views(state)
    level, states = np.asarray(level, np.float32), {"observation": states}
    return np.asarray(part.act(jax.random.key(3), views, states, {}, level)[0])


STATES = np.tile(np.array([[0.3, -0.2]], np.float32), (4000, 1))


def test_sac_draws_from_its_policy(tmp_path):
    manager = compiled(sac(), tmp_path, "reach")
    mean, log_deviation = manager.get_agent().get_prediction([{"observation": STATES[0]}])
    drawn = np.arctanh(actions_in(manager, STATES, [0.0]).astype(np.float64))
    np.testing.assert_allclose(drawn.mean(axis=0), np.ravel(mean), atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0), np.exp(np.ravel(log_deviation)), rtol=0.1)
    manager.close()


@pytest.mark.parametrize("is_share", [True, False])
@pytest.mark.parametrize("uses_target", [True, False])
def test_ddpg_adds_noise_in_units_of_the_range_and_stays_within_it(is_share, uses_target, tmp_path):
    parameters = ddpg(use_target_network_for_evaluation=uses_target)
    parameters.exploration.noise_as_percentage_from_action_space = is_share
    manager = compiled(parameters, tmp_path, "reach")
    agent = manager.get_agent()
    agent.networks["actor"].online_network.set_weights(
        [0.1 * weights for weights in agent.networks["actor"].online_network.get_weights()]
    )
    action = agent.predict_states([{"observation": STATES[0]}])[0]
    small = actions_in(manager, STATES, [*[0.02] * 4000, 0.0])
    np.testing.assert_allclose(small.mean(axis=0), action, atol=0.01)
    np.testing.assert_allclose(small.std(axis=0), 0.02 * (2.0 if is_share else 1.0), rtol=0.1)
    large = actions_in(manager, STATES, [*[2.0] * 4000, 0.0])
    assert (large.min(), large.max()) == (-1.0, 1.0)
    manager.close()


def test_actions_of_the_heatup_are_uniform_unless_the_networks_decide(tmp_path):
    manager = compiled(ddpg(), tmp_path, "reach")
    part, agent = manager.level_managers[0]._part, manager.get_agent()
    uniform = actions_in(manager, STATES, [*[0.0] * 4000, 1.0])
    assert uniform.min() < -0.99 and uniform.max() > 0.99
    np.testing.assert_allclose(uniform.std(axis=0), 2 / 12**0.5, rtol=0.05)
    with manager.phase_context(RunPhase.HEATUP):
        np.testing.assert_array_equal(part.levels(0, 3)[:, -1], [1.0] * 3)
        agent.ap.algorithm.heatup_using_network_decisions = True
    with manager.phase_context(RunPhase.HEATUP):
        np.testing.assert_allclose(part.levels(0, 3), [[0.5] * 4 + [0.0]] * 3)
    manager.close()


def test_noise_follows_its_schedule_and_the_memory_keeps_what_was_played(tmp_path):
    manager = compiled(ddpg(), tmp_path, "reach")
    loop, agent = manager.level_managers[0], manager.get_agent()
    with manager.phase_context(RunPhase.TRAIN):
        levels = loop._part.levels(8, 2)
    np.testing.assert_allclose(levels[:, :4].ravel(), [0.5 - 0.4 * step / 400 for step in range(8, 16)], rtol=1e-5)
    np.testing.assert_array_equal(levels[:, 4], 0.0)
    manager.heatup(EnvironmentSteps(40))
    assert agent.exploration_policy.noise_schedule.num_steps == 0
    manager.train_and_act(EnvironmentSteps(100))
    assert agent.exploration_policy.noise_schedule.num_steps == 100
    memory = {name: np.asarray(column)[:35] for name, column in loop._carry["memory"].items() if name == "actions"}
    states, following = (
        np.asarray(loop._carry["memory"][name]["observation"])[:35] for name in ("states", "next_states")
    )
    assert np.abs(memory["actions"]).max() == 1.0
    np.testing.assert_allclose(following - states, 0.2 * memory["actions"], atol=1e-5)
    manager.close()


def test_redq_takes_as_many_critics_as_it_is_told_and_others_in_each_update(tmp_path):
    import jax

    manager = compiled(AGENTS["redq"](training=8), tmp_path, "reach")
    manager.heatup(EnvironmentSteps(40))
    part, memory = manager.level_managers[0]._part, manager.level_managers[0]._carry["memory"]
    critics = np.asarray(part.columns(jax.random.key(4), memory, {})[0]["extra/critics"])
    assert critics.shape == (8, 16, 4)
    assert (critics.sum(axis=2) == 2).all() and (critics == critics[:, :1]).all()
    assert len({tuple(row) for row in critics[:, 0].tolist()}) > 1
    manager.close()


# where the ordinary loop is used


def state_dependent(parameters: AgentParameters) -> None:
    parameters.exploration = StateDependentNoiseParameters(parameters)


class OwnActions(TD3Agent):
    """Explores in a way of its own."""

    def explored_action(self, curr_state: Any) -> Any:
        return -super().explored_action(curr_state)


@pytest.mark.parametrize(
    ("make", "change", "reason"),
    [
        (sac, state_dependent, "StateDependentNoiseParameters has no compiled form"),
        (sac, lambda p: setattr(p.algorithm, "act_beside_learning", True), "algorithm.act_beside_learning is True"),
        (sac, lambda p: setattr(p, "memory", PrioritizedExperienceReplayParameters()), "PrioritizedExperienceReplay"),
        (sac, lambda p: setattr(p.algorithm, "n_step", 3), "n_step is 3"),
        (lambda: replaying(continuous.simba_v2), lambda p: None, "the filter RewardReturnScalingFilter"),
        (ddpg, lambda p: setattr(p, "exploration", OUProcessParameters()), "OUProcessParameters has no compiled form"),
        (td3, lambda p: setattr(p.algorithm, "act_for_full_episodes", True), "the agent waits for whole episodes"),
        (continuous.td3, lambda p: None, "EpisodicExperienceReplayParameters has no compiled form"),
    ],
    ids=["gsde", "beside", "prioritized", "n-step", "simba-v2", "ou", "full-episodes", "episodic"],
)
def test_a_line_says_why_the_ordinary_loop_is_used(make, change, reason, tmp_path, capsys):
    parameters = make()
    change(parameters)
    manager = compiled(parameters, tmp_path, "reach")
    assert type(manager.level_managers[0]) is VectorLevelManager
    said = capsys.readouterr().out
    assert "the loop is not compiled as a whole: " in said and reason in said
    manager.close()


class OwnNumbers(TD3Agent):
    """Gives its rule a number that changes."""

    def learning_scalars(self) -> dict[str, float]:
        return {"updates": float(self.clock.updates)}


@pytest.mark.parametrize(
    "kind",
    [
        CQLAgent, DrQv2Agent, HACDDPGAgent, IQLAgent, NAFAgent, OwnActions, OwnNumbers, TD3ExplorationAgent,
        TD3GoalBasedAgent, WolpertingerAgent,
    ],
)  # fmt: skip
def test_relatives_that_act_or_learn_in_ways_of_their_own_are_not_compiled(kind):
    assert acts_or_learns_otherwise(kind)


@pytest.mark.parametrize("kind", [SoftActorCriticAgent, TD3Agent, DDPGAgent])
def test_the_agents_themselves_are(kind):
    assert not acts_or_learns_otherwise(kind)


def test_a_relative_on_discrete_actions_says_so(tmp_path, capsys):
    parameters = continuous.wolpertinger(1)
    parameters.output_filter = None
    parameters.memory, parameters.exploration = ExperienceReplayParameters(), AdditiveNoiseParameters()
    manager = compiled(parameters, tmp_path)
    assert type(manager.level_managers[0]) is VectorLevelManager
    assert "WolpertingerAgent has no compiled form" in capsys.readouterr().out
    manager.close()


# learning


@pytest.mark.parametrize("name", ["sac", "td3", "ddpg"])
def test_it_learns_to_reach_the_middle(name, tmp_path):
    parameters = AGENTS[name](training=4)
    parameters.algorithm.discount = 0.5
    manager = compiled(
        parameters, tmp_path, "reach", steps=schedule(1200, evaluate_every=1200, evaluation=20, heatup=100)
    )
    assert isinstance(manager.level_managers[0], CompiledLevelManager)
    manager.improve()
    assert np.mean(manager.evaluation_rewards) > -2.5, manager.evaluation_rewards  # actions of 0 give about -6
    manager.close()


def on_small_networks(parameters: AgentParameters) -> AgentParameters:
    """A tuned preset's agent on networks with which a test takes seconds."""
    parameters = copy.deepcopy(parameters)
    for name, network in parameters.network_wrappers.items():
        network.batch_size = 64
        if name in ("policy", "actor", "critic"):
            two_layers(network, (64, 64))
    if "q" in parameters.network_wrappers:
        parameters.network_wrappers["q"].heads_parameters[0].network_layers_sizes = (64, 64)
    else:
        action = parameters.network_wrappers["critic"].input_embedders_parameters["action"]
        action.scheme = EmbedderScheme.Empty
    return parameters


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "steps"), [(Pendulum_SAC, 8000), (Pendulum_TD3, 14000)], ids=["sac", "td3"])
def test_a_pendulum_is_swung_up(preset, steps, tmp_path):
    pytest.importorskip("gymnax")
    manager = graph(
        on_small_networks(preset.agent_params), GymVectorEnvironment("gymnax:Pendulum-v1"), tmp_path,
        schedule(steps, evaluate_every=steps, evaluation=10, heatup=1000), 3,
    )  # fmt: skip
    assert isinstance(manager.level_managers[0], CompiledLevelManager)
    manager.improve()
    assert np.mean(manager.evaluation_rewards) > -300.0, manager.evaluation_rewards  # random actions give about -1200
    manager.close()
