"""Decision Transformer (Chen et al. 2021, "Decision Transformer: reinforcement learning via sequence modeling")."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.batches import BatchSource
from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.agents.core.episode_replay import ContextPass, ContextReplay
from rl_coach.agents.core.requirements import HeadRequirement, MemoryRequirement, NetworkRequirement
from rl_coach.agents.imitation_agent import ImitationAgent
from rl_coach.agents.rules.decision_transformer import trajectory_rule
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.trajectory import (
    ACTION,
    RETURN,
    ActionOfStepHeadParameters,
    TimeEmbedderParameters,
    TokenEmbedderParameters,
    TrajectoryMiddlewareParameters,
)
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, EmbeddingMergerType, NetworkParameters
from rl_coach.core_types import Batch, StateType, Transition
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import (
    ActionMaskSpace,
    DiscreteActionSpace,
    ImageObservationSpace,
    Space,
    SpacesDefinition,
    StateSpace,
    TensorObservationSpace,
)
from rl_coach.utilities.requirements import exactly, number, optional, whole

RETURNS, ACTIONS, TIMESTEPS = "return_to_go", "actions", "timestep"


class DecisionTransformerNetworkParameters(NetworkParameters):
    """A causal transformer over returns to go, states and actions. The agent makes its embedders, one for each
    observation of the environment."""

    def __init__(self) -> None:
        super().__init__()
        self.middleware_parameters = TrajectoryMiddlewareParameters()
        self.heads_parameters = [ActionOfStepHeadParameters()]
        self.embedding_merger_type = EmbeddingMergerType.Sum
        self.batch_size = 64
        self.learning_rate = LinearSchedule(0.0, 1e-4, 10000)
        self.adam_optimizer_beta2, self.optimizer_epsilon = 0.999, 1e-8
        self.clip_gradients = 0.25


class DecisionTransformerAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of Decision Transformer.

    :ivar context_length: K, the number of steps that the network reads. With 1, it reads only the present step
    :ivar target_return: the return that the agent asks for when it acts; None asks for the best return of the episodes
        that it has learned from
    :ivar return_scale: divides the returns that the network reads
    :ivar max_timestep: number of steps of an episode that have their own embedding. Later steps share the last
        embedding
    """

    constraints = {
        "context_length": whole(1),
        "target_return": optional(number(-np.inf)),
        "return_scale": number(above=0),
        "max_timestep": whole(1),
        "discount": exactly(1.0),
    }

    def __init__(self) -> None:
        super().__init__()
        self.context_length = 20
        self.target_return: float | None = None
        self.return_scale = 1000.0
        self.max_timestep = 1000
        self.discount = 1.0


class DecisionTransformerAgentParameters(AgentParameters):
    """Decision Transformer, which learns from the episodes of its memory."""

    path = "rl_coach.agents.decision_transformer_agent:DecisionTransformerAgent"
    algorithm: DecisionTransformerAlgorithmParameters

    def __init__(self) -> None:
        exploration = EGreedyParameters()
        exploration.evaluation_epsilon = 0
        exploration.continuous_exploration_policy_parameters.evaluation_noise = 0
        super().__init__(
            algorithm=DecisionTransformerAlgorithmParameters(),
            exploration=exploration,
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": DecisionTransformerNetworkParameters()},
        )


class ContextEpisode(EpisodeInProgress):
    """An episode that also keeps its last ``context_length`` steps.

    :ivar context: for each of these steps, a dict from the name of a network input to its values
    """

    def __init__(self, algorithm: AlgorithmParameters):
        super().__init__(algorithm)
        self.context: list[dict[str, np.ndarray]] = []


class DecisionTransformerAgent(ImitationAgent):
    """Learns to predict recorded actions from the returns that followed them. To act, it predicts the action for a high
    return."""

    network_requirements = {
        "main": NetworkRequirement(
            (HeadRequirement("ActionOfStepHeadParameters", ("probabilities", "log_probabilities"), ("mean",)),)
        )
    }
    memory_requirement = MemoryRequirement.EPISODES
    max_n_step = 0
    reason_to_act_alone = "only one process knows the best return in the data: leave out -dc and -n"
    episode_class = ContextEpisode
    episode: ContextEpisode
    counters = (*Agent.counters, "best_return")

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.best_return: float | None = None

    def unmet_by_settings(self) -> Iterator[str]:
        if self.memory.relabels:
            yield (
                f"agent '{self.name}' learns from returns, and {type(self.memory).__name__} adds transitions with "
                f"other goals, which have no returns: set memory to EpisodicExperienceReplayParameters()"
            )
        yield from super().unmet_by_settings()
        middleware = self.ap.network_wrappers["main"].middleware_parameters
        if not isinstance(middleware, TrajectoryMiddlewareParameters):
            yield (
                f"agent '{self.name}' predicts an action for each step, but {type(middleware).__name__} cannot do it: "
                f"keep the default middleware_parameters, and change only their attributes, such as width"
            )
        for name, space in self._observations.items():
            if isinstance(space, ImageObservationSpace):
                yield f"agent '{self.name}' reads vectors, and '{name}' is an image: choose BC or MARWIL"
        for name, embedder in self.ap.network_wrappers["main"].input_embedders_parameters.items():
            if not isinstance(embedder, TokenEmbedderParameters):
                yield (
                    f"agent '{self.name}' reads '{name}' as tokens, and {type(embedder).__name__} makes no tokens: "
                    f"leave input_embedders_parameters empty"
                )

    @property
    def _observations(self) -> dict[str, Any]:
        spaces = self.spaces.state.sub_spaces.items()
        return {name: space for name, space in spaces if not isinstance(space, ActionMaskSpace)}

    def init_environment_dependent_modules(self) -> None:
        steps = self.ap.algorithm.context_length
        widths = {name: int(np.prod(space.shape)) for name, space in self._observations.items()}
        own, actions = self.spaces, self.spaces.action
        widths |= {RETURNS: 1, TIMESTEPS: 1, ACTIONS: getattr(actions, "num_actions", actions.num_elements)}
        contexts: dict[str, Space] = {name: TensorObservationSpace((steps, width)) for name, width in widths.items()}
        self.policy_spaces = SpacesDefinition(StateSpace(contexts), own.goal, own.action, own.reward)
        super().init_environment_dependent_modules()

    def create_networks(self) -> dict[str, NetworkWrapper]:
        network = self.ap.network_wrappers["main"]
        width = network.middleware_parameters.width
        network.input_embedders_parameters = {
            **{name: TokenEmbedderParameters(width=width) for name in self._observations},
            RETURNS: TokenEmbedderParameters(RETURN, width),
            ACTIONS: TokenEmbedderParameters(ACTION, width),
            TIMESTEPS: TimeEmbedderParameters(width, self.ap.algorithm.max_timestep),
        }
        return super().create_networks()

    def make_batches(self) -> BatchSource:
        source = ContextPass if self.ap.is_batch_rl_training else ContextReplay
        return source(self.memory, self.ap.algorithm.context_length)

    def make_update_rule(self) -> UpdateRule:
        return trajectory_rule(self.ap.network_wrappers["main"].heads_parameters[0].loss_weight)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        def contexts(column: Any) -> np.ndarray:
            return np.asarray(column).reshape(-1, self.ap.algorithm.context_length, *np.shape(column)[1:])

        def inputs(column: Any) -> np.ndarray:
            found = contexts(column)
            return found.reshape(*found.shape[:2], -1).astype(np.float32)

        returns, timesteps = np.asarray(batch.n_step_discounted_rewards()), batch.info("timestep")
        if len(whole_episodes := returns[timesteps == 0]):
            best = float(whole_episodes.max())
            self.best_return = best if self.best_return is None else max(best, self.best_return)
        columns = {f"states/{name}": inputs(batch.state_columns[name]) for name in self._observations}
        columns[f"states/{RETURNS}"] = inputs(returns / self.ap.algorithm.return_scale)
        columns[f"states/{TIMESTEPS}"] = inputs(timesteps)
        columns[f"states/{ACTIONS}"] = inputs(self._encoded(batch.action_column))
        columns["actions"] = contexts(batch.action_column)
        columns["extra/is_step"] = contexts(batch.info("is_step"))
        columns["weights"] = np.ones(len(columns["actions"]), np.float32)
        return columns

    def _encoded(self, actions: Any) -> np.ndarray:
        space = self.spaces.action
        actions = np.asarray(actions)
        return space.encoded(actions) if isinstance(space, DiscreteActionSpace) else actions.astype(np.float32)

    # acting

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        episode = self.episode
        state: Any = transition.state
        step = self._step(self.run_pre_network_filter_for_inference(state, False), transition.reward)
        step[ACTIONS] = self._encoded(transition.action).ravel()
        episode.context = [*episode.context, step][-self.ap.algorithm.context_length :]
        return transition

    def _step(self, state: StateType, reward: Any = 0.0) -> dict[str, np.ndarray]:
        """The network's inputs for one step, without the action of this step.

        :param state: the state after the agent's filters
        :param reward: the step's reward if the episode's total already includes it; 0 otherwise
        """
        algorithm, episode = self.ap.algorithm, self.episode
        target = (self.best_return or 0.0) if algorithm.target_return is None else algorithm.target_return
        step = {name: np.float32(state[name]).ravel() for name in self._observations}
        left = target - (episode.total_shaped_reward - reward)
        step[RETURNS] = np.array([left / algorithm.return_scale], np.float32)
        step[TIMESTEPS] = np.array([episode.steps - 1], np.float32)
        step[ACTIONS] = np.zeros(self.policy_spaces.state[ACTIONS].shape[1], np.float32)
        return step

    def acting_prediction(self, curr_state: StateType) -> list[np.ndarray]:
        """The outputs for the present step, from the last K steps of the episode."""
        count = self.ap.algorithm.context_length
        steps = [*self.episode.context, self._step(curr_state)][-count:]
        newest = len(steps) - 1
        # a later step does not change an earlier output, so zeros fill up the context
        inputs = {name: np.stack([step[name] for step in steps]) for name in steps[0]}
        filled = {name: np.pad(rows, ((0, count - len(rows)), (0, 0))) for name, rows in inputs.items()}
        return [output[0, newest] for output in self.policy_outputs(self.get_prediction(filled))]

    def policy_description(self) -> PolicyDescription | None:
        # the choice depends on the steps of the episode so far, and on their rewards
        return None
