"""Agents of every kind, split into a trainer and a worker: what arrives is what was played."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.acer_agent import ACERAgentParameters
from rl_coach.agents.actor_critic_agent import ActorCriticAgent
from rl_coach.agents.categorical_dqn_agent import CategoricalDQNAgentParameters
from rl_coach.agents.ppo_agent import PPOAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Conv2d
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import MiddlewareScheme
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.data_stores.data_store import SyncFiles
from rl_coach.exploration_policies.parameter_noise import ParameterNoiseParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.reward.reward_return_scaling_filter import RewardReturnScalingFilter
from rl_coach.memories.backend.wire import pack, unpack
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.rollout_worker import should_stop, wait_for_checkpoint
from rl_coach.spaces import ActionMaskSpace, DiscreteActionSpace, ImageObservationSpace
from rl_coach.utils import CoachError
from tests.frameworks import agents_of_zoo
from tests.zoo import continuous, parameters
from tests.zoo.agents import Pretrained, of_class
from tests.zoo.environments import Bandit, Lottery, SmallEnvironmentParameters, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.split import SplitRun, run_split

HEATUP = 24


class Pictures(Bandit):
    """The bandit's light as a picture, whose corner counts the steps."""

    def observations(self) -> dict[str, Any]:
        return {"observation": ImageObservationSpace(np.array([12, 12]), high=255)}

    def first_state(self) -> dict[str, np.ndarray]:
        picture = self.rng.integers(0, 100, (12, 12)).astype(np.uint8)
        self.lit = int(self.rng.integers(2))
        picture[:, 6 * self.lit : 6 * self.lit + 6] += 100
        return {"observation": picture}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward = float(action == self.lit)
        self.state = self.first_state()
        return reward, False, self.steps >= 10


class SlowBandit(Bandit):
    """A bandit whose arms take 4 ms."""

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        time.sleep(0.004)
        return super().outcome(action)


class LongBandit(Bandit):
    """A bandit whose episodes are longer than a chunk."""

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward, terminated, _ = super().outcome(action)
        return reward, terminated, self.steps >= 70


class MaskedLottery(Lottery):
    """A lottery whose third action is never allowed, and is a mistake of the agent if it is ever taken."""

    def observations(self) -> dict[str, Any]:
        return {**super().observations(), "mask": ActionMaskSpace(3)}

    def actions(self) -> DiscreteActionSpace:
        return DiscreteActionSpace(3)

    def first_state(self) -> dict[str, np.ndarray]:
        return {**super().first_state(), "mask": np.array([1.0, 1.0, 0.0], np.float32)}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        assert action != 2, "a masked action was taken"
        return super().outcome(action)


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = EmbeddedRedis(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


def image():
    agent = parameters.dqn()
    main = agent.network_wrappers["main"]
    main.input_embedders_parameters = {"observation": InputEmbedderParameters(scheme=[Conv2d(4, 4, 4)])}
    agent.input_filter = InputFilter()
    agent.input_filter.add_observation_filter("observation", "stack", ObservationStackingFilter(3))
    return agent


def parameter_noise():
    agent = parameters.ddqn()
    agent.exploration = ParameterNoiseParameters(agent)
    return agent


def hindsight():
    preset = importlib.import_module("rl_coach.presets.BitFlip_DQN_HER")
    agent = preset.graph_manager.agent_params
    agent.algorithm.num_consecutive_playing_steps = EnvironmentEpisodes(2)
    agent.algorithm.num_consecutive_training_steps = 4
    return agent


def bit_flip():
    environment = importlib.import_module("rl_coach.presets.BitFlip_DQN_HER").env_params
    environment.additional_simulator_parameters = {"bit_length": 5, "mean_zero": True}
    return environment


def normalized_ppo():
    return parameters.with_normalized_observations(parameters.clipped_ppo())


def recurrent(agent=None):
    agent = agent or parameters.actor_critic()
    agent.algorithm.num_steps_between_gradient_updates = 4
    agent.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(
        number_of_lstm_cells=6, scheme=MiddlewareScheme.Empty
    )
    return agent


def recurrent_gradients():
    agent = recurrent(parameters.policy_gradients())
    agent.algorithm.apply_gradients_every_x_episodes = 3
    return agent


def acer():
    agent = parameters.shrink(ACERAgentParameters())
    agent.algorithm.num_transitions_to_start_replay = 50
    agent.algorithm.num_steps_between_gradient_updates = 4
    return agent


def penalized_ppo():
    agent = parameters.shrink(PPOAgentParameters())
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    return agent


def impala_with_single_transitions():
    """Its segments come from the steps that are played, whatever the memory keeps."""
    agent = parameters.impala()
    agent.memory = PrioritizedExperienceReplayParameters()
    return agent


SEGMENTS = {
    "recurrent": (recurrent, Lottery),
    "recurrent, policy gradients": (recurrent_gradients, Lottery),
    "actor-critic, masked": (parameters.actor_critic, MaskedLottery),
    "actor-critic, continuous": (parameters.actor_critic, Target),
    "policy gradients": (parameters.policy_gradients, Lottery),
    "n-step Q": (parameters.n_step_q, Lottery),
    "ACER": (acer, Lottery),
    "IMPALA": (parameters.impala, MaskedLottery),
    "APPO": (parameters.appo, MaskedLottery),
    "IMPALA, continuous": (parameters.impala, Target),
    "IMPALA, single transitions": (impala_with_single_transitions, Lottery),
    "IMPALA, recurrent": (lambda: recurrent(parameters.impala()), Lottery),
}
KINDS = {
    "DQN": (parameters.dqn, Lottery),
    "masked": (parameters.dqn, MaskedLottery),
    "images in stacks": (image, Pictures),
    "noisy layers": (parameters.rainbow, Lottery),
    "noisy parameters": (parameter_noise, Lottery),
    "goals": (hindsight, bit_flip),
    "bootstrapped": (parameters.bootstrapped, Lottery),
    "prioritized": (parameters.prioritized, Lottery),
    "whole episodes": (parameters.mixed_monte_carlo, Lottery),
    "continuous, SAC": (parameters.soft_actor_critic, Target),
    "continuous, DDPG": (continuous.ddpg, Target),
    "continuous, gSDE": (lambda: continuous.with_state_dependent_noise(continuous.td3()), Target),
    "continuous, NAF": (parameters.normalized_advantages, Target),
    "continuous, Wolpertinger": (continuous.wolpertinger, Target),
    "PQN": (parameters.pqn, Lottery),
    "PPO": (parameters.clipped_ppo, Lottery),
    "TRPO": (parameters.trpo, Lottery),
    "ARS": (parameters.ars, MaskedLottery),
    "PPO, normalized": (normalized_ppo, Lottery),
    "PPO, continuous": (parameters.clipped_ppo, Target),
    "PPO, masked": (parameters.clipped_ppo, MaskedLottery),
    "DQN, recurrent": (parameters.recurrent_dqn, Lottery),
    "dreamer": (parameters.dreamer, Lottery),
    "PPO, recurrent": (parameters.recurrent_ppo, Lottery),
    "PPO, penalized": (penalized_ppo, Lottery),
    "PPO, penalized, recurrent": (parameters.recurrent_penalized_ppo, Lottery),
    "C51, recurrent": (lambda: parameters.recurrent_dqn(CategoricalDQNAgentParameters()), Lottery),
    **SEGMENTS,
}
IN_EVERY_RUN = ("masked", "goals", "continuous, SAC", "recurrent", "IMPALA, single transitions", "dreamer")


# an update on each segment, each a call of its own; updates of a world model are long
STEPS = dict.fromkeys(KINDS, 400) | dict.fromkeys(SEGMENTS, 60) | {"dreamer": 100}


def split(kind: str, redis: EmbeddedRedis, directory: Any) -> SplitRun:
    make_agent, environment = KINDS[kind]
    return run_split(redis, directory, make_agent, environment, schedule(EnvironmentSteps(STEPS[kind]), heatup=HEATUP))


def check_policies_agree(run: SplitRun) -> None:
    """The policy that the trainer has now lets the worker act as the trainer would."""
    assert run.actor.training_iteration > 0, "policies arrived in the run"
    run.actor.take_policy(unpack(pack(run.learner.acting_policy())))
    for agent in (run.actor, run.learner):
        agent.phase = RunPhase.TEST
        agent.seed_evaluation(np.random.SeedSequence(1))
        agent.reset_internal_state()
    batch = run.trainer.received[-1].columns
    columns = batch.state_columns
    for row in range(min(5, len(batch))):
        state = {name: np.asarray(column)[row] for name, column in columns.items()}
        chosen = [
            agent.choose_action(agent.run_pre_network_filter_for_inference(state)) for agent in (run.actor, run.learner)
        ]
        for name in ("action", "all_action_probabilities", "action_value"):
            np.testing.assert_array_equal(getattr(chosen[0], name), getattr(chosen[1], name), err_msg=name)


def check_rows(run: SplitRun) -> None:
    """Actions, rewards and ends are those of the steps that were played."""
    algorithm, episodes = run.learner.ap.algorithm, run.learner.memory.stores_episodes
    for batch, row, step in run.rows():
        assert bool(batch.game_overs()[row]) or not step.response.game_over
        if algorithm.n_step > 1 and not episodes:
            continue  # rewards are sums, and the next state is a later one
        assert bool(batch.terminateds()[row]) == step.response.terminated


def check_segments(run: SplitRun) -> None:
    """Each segment says what the recurrent network remembered before it, and how far its episode was."""
    rows = iter(run.rows())
    firsts = []
    for played in run.trainer.received:
        assert len(played.segment_starts) == len(played.episode_lengths)
        for stretch, length in zip(played.segment_starts, played.episode_lengths):
            steps = [step for _, _, step in (next(rows) for _ in range(length))]
            known = stretch["states"]
            for name, state in steps[0].recurrent.items():
                np.testing.assert_array_equal(known.get(name, np.zeros_like(state)), state)
            assert stretch["is_complete"] == steps[-1].response.game_over
            firsts.append(stretch["first"])
    assert sum(map(len, (played.episode_lengths for played in run.trainer.received))) == len(firsts) > 5
    assert 0 in firsts


@pytest.mark.parametrize("kind", agents_of_zoo(KINDS, slow=KINDS.keys() - set(IN_EVERY_RUN)))
def test_what_arrives_is_what_was_played(kind, redis, tmp_path):
    run = split(kind, redis, tmp_path)
    check_rows(run)
    if run.learner.learning.segment_steps is not None:
        check_segments(run)
    assert run.learner.total_steps_counter == sum(played.steps for played in run.trainer.received)
    assert min(run.learner.total_steps_counter, run.player[0].acknowledged) >= HEATUP + STEPS[kind]
    check_policies_agree(run)


class MeanSoFar(ObservationFilter):
    """A user's filter: the mean of all observations of an episode."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def filter(self, observation: Any, update_internal_state: bool = True) -> Any:
        return np.mean([*self.seen, observation], axis=0)

    def reset(self) -> None:
        self.seen.clear()

    def get_state(self) -> dict[str, Any]:
        return {"seen": list(self.seen)}

    def set_state(self, state: dict[str, Any]) -> None:
        self.seen = list(state["seen"])

    def get_filtered_observation_space(self, input_observation_space: Any) -> Any:
        return input_observation_space


def test_a_new_policy_continues_the_episode_of_the_filters(tmp_path):
    agents = []
    for name in ("trainer", "worker"):
        made = parameters.dqn()
        made.input_filter = InputFilter()
        made.input_filter.add_observation_filter("observation", "mean", MeanSoFar())
        made.input_filter.add_observation_filter("observation", "stack", ObservationStackingFilter(2, stacking_axis=-1))
        made.input_filter.add_reward_filter("scale", RewardReturnScalingFilter(0.9))
        agents.append(graph(made, Lottery, tmp_path / name).get_agent())
    trainer, worker = agents
    mean, stack = worker.input_filter.observation_filters["observation"].values()
    scale = worker.input_filter.reward_filters["scale"]
    mean.seen = [np.ones(4)]
    stack.set_state({"stack": [np.ones(4), np.full(4, 2.0)]})
    scale.filter(3.0)
    trainer.input_filter.reward_filters["scale"].filter(5.0)
    worker.take_policy(unpack(pack(trainer.acting_policy())))
    assert [frame.tolist() for frame in mean.seen] == [[1.0] * 4]
    assert [frame.tolist() for frame in stack.stack] == [[1.0] * 4, [2.0] * 4]
    assert (scale.get_state()["running"], scale.get_state()["largest"]) == (3.0, 5.0)


def test_the_trainer_begins_the_training_and_no_worker_does(redis, tmp_path):
    run = run_split(
        redis,
        tmp_path,
        lambda: of_class(parameters.dqn(), Pretrained),
        Bandit,
        schedule(EnvironmentSteps(60), heatup=HEATUP),
    )
    assert len(run.learner.calls) == 1 and run.learner.calls[0][1] >= HEATUP and run.learner.training_has_begun
    assert run.actor.calls == []


def long_segments():
    agent = parameters.impala()
    agent.algorithm.num_steps_between_gradient_updates = 50
    return agent


@pytest.mark.parametrize("make_agent", [parameters.mixed_monte_carlo, long_segments])
def test_whole_episodes_and_segments_may_be_longer_than_a_chunk(make_agent, redis, tmp_path):
    run = run_split(redis, tmp_path, make_agent, LongBandit, schedule(EnvironmentSteps(300), heatup=HEATUP))
    lengths = [length for played in run.trainer.received for length in played.episode_lengths]
    assert max(lengths) == (70 if make_agent is parameters.mixed_monte_carlo else 50)
    assert run.learner.training_iteration > 0


def test_a_worker_plays_in_one_environment(redis, tmp_path):
    """Its steps are counted and cut into segments one by one."""

    def bandits():
        environment = SmallEnvironmentParameters(Bandit)
        environment.num_environments = 3
        return environment

    run = run_split(redis, tmp_path, parameters.actor_critic, bandits, schedule(EnvironmentSteps(60)))
    assert run.actor.parallel is None and run.learner.training_iteration > 0


def test_a_worker_of_four_leaves_the_others_their_shares_and_plays_on_alone_where_they_do_not(redis, tmp_path):
    phase, phases = 64, 3
    run = run_split(
        redis, tmp_path, parameters.clipped_ppo, SlowBandit, schedule(EnvironmentSteps(phase * phases)), num_workers=4
    )
    chunks = np.array([played.steps for played in run.trainer.received])
    played = np.cumsum(chunks)
    assert played[-1] == phase * phases, "nothing was played in vain"
    before = played - chunks
    shares = np.ceil((phase - before % phase) / 4)
    later = before >= phase  # in the first phase the worker does not know yet how long a step takes
    assert (chunks[later] <= np.maximum(shares[later], 20 / 4)).all()


def test_coachs_questions_about_a_directory_of_checkpoints(tmp_path):
    assert not should_stop(str(tmp_path))
    with pytest.raises(CoachError, match="without an answer"):
        wait_for_checkpoint(str(tmp_path), timeout=0.01)
    (tmp_path / "3_Step-10.ckpt").mkdir()
    wait_for_checkpoint(str(tmp_path), timeout=0.01)
    (tmp_path / SyncFiles.FINISHED.value).touch()
    assert should_stop(str(tmp_path))


class ActorCriticThatSaysHowItActed(ActorCriticAgent):
    """Sends the policy that acted with each step. The trainer notes it, and the policy that each update sees.

    :ivar acted: [A] of each step that updates were made of, in their order; ``learned`` likewise
    """

    def __init__(self, agent_parameters, parent=None):
        super().__init__(agent_parameters, parent)
        self.experience.remembers_action_info = True
        self.acted, self.learned = [], []

    def learning_columns(self, batch):
        self.acted.extend(batch.info("all_action_probabilities"))
        return super().learning_columns(batch)

    def make_update_rule(self):
        rule = super().make_update_rule()

        def rule_with_policy(ops, networks, batch):
            found, probabilities = rule(ops, networks, batch), networks["main"].online(batch.states)[1]["probabilities"]
            found.values.update({f"policy {action}": probabilities[:, action] for action in range(2)})
            return found

        return rule_with_policy

    def make_learning(self, **parts):
        update = self.update_loop.update

        def noted_update(columns, **how):
            result = update(columns, **how)
            policy = np.stack([result.values[f"policy {action}"][0] for action in range(2)], axis=1)
            self.learned.extend(policy[columns["weights"] > 0])
            return result

        self.update_loop.update = noted_update
        return super().make_learning(**parts)


@pytest.mark.parametrize("make_agent", [parameters.actor_critic, recurrent], ids=["plain", "recurrent"])
def test_segments_of_several_workers_are_learned_from_with_the_policy_that_played_them(make_agent, redis, tmp_path):
    """An update that came between two segments of a round would change the policy that the second is learned with."""

    def agent():
        made = of_class(make_agent(), ActorCriticThatSaysHowItActed)
        made.algorithm.num_steps_between_gradient_updates = 4
        return made

    run = run_split(redis, tmp_path, agent, Bandit, schedule(EnvironmentSteps(160)), num_workers=2, players=2)
    assert all(len(worker.steps) > 20 for worker in run.workers)
    learned = np.asarray(run.learner.learned)
    assert len(learned) > 100 and np.ptp(learned, axis=0).max() > 0.02, "the policy has changed"
    np.testing.assert_allclose(learned, run.learner.acted[: len(learned)], rtol=0, atol=1e-5)
    segments = sum(len(played.episode_lengths) for played in run.trainer.received)
    assert 0 < run.learner.training_iteration <= segments / 2, "a round's segments make one update"
