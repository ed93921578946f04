"""Augmented random search (Mania et al. 2018, "Simple random search provides a competitive approach to reinforcement
learning")."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Sequence

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.agents.core.learning import PhaseLearning
from rl_coach.agents.core.requirements import HeadRequirement, MemoryRequirement, NetworkRequirement
from rl_coach.agents.rules.random_search import direction_of, random_search_gradient, shaped
from rl_coach.architectures.head_parameters import RegressionHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, EmbedderScheme, MiddlewareScheme
from rl_coach.core_types import ActionInfo, EnvironmentEpisodes, PlayUnit, StateType, Transition
from rl_coach.exploration_policies.greedy import GreedyParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.policy.action_choice import DeterministicChoice, GreedyChoice, PolicyDescription
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utilities.requirements import flags, number, optional, whole
from rl_coach.utils import CoachError

DIRECTION = "direction"
"""The key of a transition's ``info`` for the direction of its episode; see ``ARSEpisode``."""


class ARSNetworkParameters(FullyConnectedParameters):
    """A linear policy. It has an output for each discrete action, or for each element of a continuous action."""

    def __init__(self) -> None:
        super().__init__(RegressionHeadParameters(scheme=[]))
        self.input_embedders_parameters["observation"].scheme = EmbedderScheme.Empty
        self.middleware_parameters.scheme = MiddlewareScheme.Empty
        self.optimizer_type = "SGD"
        self.learning_rate = 0.02


class ARSAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of augmented random search. The step size alpha is the network's ``learning_rate``.

    :ivar num_directions: N, the number of directions in an update. For each direction, one episode is played with the
        weights plus the direction, and one episode with the weights minus the direction
    :ivar num_top_directions: b, the number of best directions that the update uses; None uses all
    :ivar noise: nu, the standard deviation of the changes of the weights
    :ivar starts_at_zero: begin with weights of 0, as the paper does; False for the initial weights of the network,
        which a network with hidden layers needs
    """

    constraints = {
        **flags("starts_at_zero"),
        "num_directions": whole(1),
        "num_top_directions": optional(whole(1)),
        "noise": number(above=0),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_directions = 8
        self.num_top_directions: int | None = None
        self.noise = 0.05
        self.starts_at_zero = True
        self.num_consecutive_playing_steps = EnvironmentEpisodes(1)
        self.update_pre_network_filters_state_on_train = True
        self.update_pre_network_filters_state_on_inference = False

    def unmet(self) -> Iterator[str]:
        if (self.num_top_directions or 0) > self.num_directions:
            yield f"num_top_directions is {self.num_top_directions}; set at most {self.num_directions} (num_directions)"


class ARSAgentParameters(AgentParameters):
    """Augmented random search, V2 of the paper.

    :param normalizes: False for V1, which does not normalise observations
    """

    path = "rl_coach.agents.ars_agent:ARSAgent"
    algorithm: ARSAlgorithmParameters

    def __init__(self, normalizes: bool = True) -> None:
        super().__init__(
            algorithm=ARSAlgorithmParameters(),
            exploration=GreedyParameters(),
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": ARSNetworkParameters()},
        )
        if normalizes:
            self.pre_network_filter = InputFilter()
            self.pre_network_filter.add_observation_filter(
                "observation", "normalize", ObservationNormalizationFilter(name="normalize")
            )


class ARSEpisode(EpisodeInProgress):
    """An episode with one set of weights.

    :ivar direction: three numbers: updates before the episode, the seed of the direction, and the side: 1 (the
        direction is added to the weights) or -1 (subtracted). All are 0 if the episode began in heatup; then it does
        not count
    :ivar weights: the policy's weights, changed by the direction; None as long as the policy has not acted
    """

    def __init__(self, algorithm: AlgorithmParameters):
        super().__init__(algorithm)
        self.direction: tuple[int, int, int] = (0, 0, 0)
        self.weights: list[np.ndarray] | None = None


class DirectionLearning(PhaseLearning):
    """Makes an update when enough directions have been played on both sides.

    Episodes that began before the last update do not count, because their weights come from an older policy.
    """

    def __init__(self, agent: Any):
        super().__init__(agent)
        self._unpaired: tuple[int, int] | None = None
        self._updates = 0  # number of updates of the policy that had these returns
        self._returns: dict[int, dict[int, float]] = {}

    def next_direction(self) -> tuple[int, int, int]:
        """The ``direction`` of the next episode: the last direction on its other side, or a new direction."""
        updates, last = self._agent.clock.updates, self._unpaired
        if last is not None and last[0] == updates:
            self._unpaired = None
            return updates, last[1], -1
        self._unpaired = updates, int(self._agent.rng.integers(1, 2**62))
        return *self._unpaired, 1

    def note(self, direction: Sequence[int], total: float) -> None:
        """Keep the return of an episode that has ended, if its weights come from the present policy."""
        updates, seed, side = direction
        if side and updates == self._agent.clock.updates:
            if updates != self._updates:
                self._updates, self._returns = updates, {}
            self._returns.setdefault(seed, {})[side] = total

    def take_in(self, played: ExperienceChunk) -> None:
        columns: Any = played.columns
        starts = np.cumsum([0, *played.episode_lengths[:-1]])
        totals = np.add.reduceat(columns.reward_column.astype(np.float64), starts)
        for direction, total in zip(columns.info(DIRECTION)[starts].tolist(), totals.tolist()):
            self.note(direction, total)

    @property
    def _present(self) -> dict[int, dict[int, float]]:
        """The returns of the present policy: dicts from the seed of a direction, and then from its side."""
        return self._returns if self._updates == self._agent.clock.updates else {}

    @property
    def _pairs(self) -> dict[int, dict[int, float]]:
        """The returns of the directions that have been played on both sides; see ``_present``."""
        return {seed: sides for seed, sides in self._present.items() if len(sides) == 2}

    def is_due(self) -> bool:
        return len(self._pairs) >= self._agent.ap.algorithm.num_directions

    def learn(self, updates_left: int | None = None) -> float:
        agent = self._agent
        # updates the statistics that normalise the observations of the next episodes
        agent.update_loop.filtered(agent.memory.get_all_complete_episodes_transitions())
        agent.search(self._pairs)
        agent.clock.updates += 1
        agent.update_loop.close_phase()
        agent.memory.clean()
        return 0.0

    def left_to_play(self) -> tuple[int, PlayUnit]:
        left = self._agent.ap.algorithm.num_directions - len(self._pairs)
        return max(0, 2 * left), PlayUnit.EPISODES

    def require_fitting(self, played: ExperienceChunk) -> None:
        column = None if played.columns is None else played.columns.info_columns.get(DIRECTION)
        if column is None or np.shape(column)[1:] != (3,) or np.asarray(column).dtype.kind != "i":
            raise CoachError(
                f"agent '{self._agent.name}' got steps without info['{DIRECTION}']: start all workers with this agent"
            )

    def get_state(self) -> dict[str, Any]:
        returns = [[seed, side, total] for seed, sides in self._present.items() for side, total in sides.items()]
        return {"unpaired": self._unpaired, "returns": returns}

    def set_state(self, state: dict[str, Any]) -> None:
        self._unpaired = state["unpaired"] and tuple(state["unpaired"])
        self._updates, self._returns = self._agent.clock.updates, {}
        for seed, side, total in state["returns"]:
            self._returns.setdefault(seed, {})[side] = total


class ARSAgent(Agent):
    """Plays each episode with small random changes of the policy's weights, and moves the weights towards the better
    changes. An evaluation plays with the unchanged weights."""

    network_requirements = {"main": NetworkRequirement((HeadRequirement("RegressionHeadParameters", ("values",)),))}
    memory_requirement = MemoryRequirement.EPISODES
    episode_class = ARSEpisode
    episode: ARSEpisode
    max_n_step = 0
    is_on_policy = True
    explores_by_parameter = False
    learns_from_recorded_steps = False
    learning: DirectionLearning

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.played_returns = self.register_signal("Returns of Directions")

    def init_environment_dependent_modules(self) -> None:
        super().init_environment_dependent_modules()
        main = self.networks["main"].online_network
        if self.ap.algorithm.starts_at_zero:
            main.set_weights([np.zeros_like(array) for array in main.get_weights()])

    def unmet_by_settings(self) -> Iterable[str]:
        yield from super().unmet_by_settings()
        task = self.ap.task_parameters
        if task is not None and task.num_devices not in (None, 1):
            yield f"agent '{self.name}' has no batches that devices could share: leave out num_devices"

    def make_learning(self) -> DirectionLearning:
        return DirectionLearning(self)

    # acting

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        inputs = self.prepare_batch_for_inference(curr_state, "main")
        main, space = self.networks["main"].online_network, self.spaces.action
        values = main.predict(inputs) if self.is_in_evaluation else main.predict_with(self._weights(), inputs)
        if not isinstance(space, DiscreteActionSpace):
            return ActionInfo(np.asarray(space.clip_action_to_space(self.exploration_policy.get_action(values[0]))))
        action, probabilities = self.exploration_policy.get_action(values[0], self.spaces.action_mask(curr_state))
        return ActionInfo(action, all_action_probabilities=probabilities)

    def _weights(self) -> list[np.ndarray]:
        """The weights of the present episode."""
        episode = self.episode
        if episode.weights is None:
            weights = self.networks["main"].online_network.get_weights()
            if episode.steps > 1:  # heatup has begun this episode, so its return does not belong to a direction
                episode.weights = weights
                return weights
            episode.direction = _, seed, side = self.learning.next_direction()
            changes = shaped(side * self.ap.algorithm.noise * direction_of(seed, weights), weights)
            episode.weights = [array + change for array, change in zip(weights, changes)]
        return episode.weights

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        """Store the direction with the step."""
        transition.info[DIRECTION] = np.asarray(self.episode.direction, np.int64)
        return transition

    def handle_episode_ended(self) -> None:
        if not self.is_in_evaluation:
            self.learning.note(self.episode.direction, float(self.episode.total_shaped_reward))
        super().handle_episode_ended()

    def policy_description(self) -> PolicyDescription:
        choice = GreedyChoice() if isinstance(self.spaces.action, DiscreteActionSpace) else DeterministicChoice()
        return PolicyDescription("main", self.networks["main"].outputs_named("values"), choice)

    # learning

    def search(self, pairs: dict[int, dict[int, float]]) -> None:
        """Make an update. The optimizer applies the gradient of random search.

        :param pairs: dicts from the seed of a direction to the returns of its sides 1 and -1
        """
        main = self.networks["main"].online_network
        weights = main.get_weights()
        plus, minus = (np.array([sides[side] for sides in pairs.values()]) for side in (1, -1))
        directions = np.stack([direction_of(seed, weights) for seed in pairs])
        top = self.ap.algorithm.num_top_directions or len(pairs)
        main.apply_gradients(shaped(random_search_gradient(directions, plus, minus, top), weights))
        self.played_returns.add_sample(np.concatenate([plus, minus]))
