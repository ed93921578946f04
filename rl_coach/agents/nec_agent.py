"""Neural episodic control (Pritzel et al. 2017, "Neural episodic control")."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.requirements import HeadRequirement, MemoryRequirement, NetworkRequirement
from rl_coach.agents.rules.nec import neural_episodic_control_rule
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.head_parameters import DNDQHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.policies import MASKED_LOGIT, allows
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import Batch, EnvironmentSteps, Episode, RunPhase, StateType
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.differentiable_neural_dictionary import QDND, gradients_of_squared_errors
from rl_coach.schedules import ConstantSchedule
from rl_coach.utilities.requirements import FLAG, FRACTION, flags, number, whole


class NECNetworkParameters(FullyConnectedParameters):
    """A network that computes embeddings of states."""

    constraints = {"should_get_softmax_probabilities": FLAG}

    def __init__(self) -> None:
        super().__init__(DNDQHeadParameters())
        self.should_get_softmax_probabilities = False


class NECAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of neural episodic control.

    :ivar dnd_size: number of entries in the dictionary of each action; a full dictionary drops the least recently used
        entries
    :ivar l2_norm_added_delta: added to squared distances; near 0 only the nearest entry counts, with a large number all
        entries count equally
    :ivar new_value_shift_coefficient: if the key exists already, its value moves towards the new value by this share; 1
        replaces the old value
    :ivar number_of_knn: number of nearest entries in the weighted mean that gives a value
    :ivar DND_key_error_threshold: keys within this distance are the same key; with 0, keys must be equal
    :ivar propagate_updates_to_DND: True: updates also change the keys and values that were looked up
    :ivar n_step: number of rewards before the bootstrapped value
    :ivar bootstrap_total_return_from_old_policy: True adds the bootstrapped value to the ``n_step`` rewards; False does
        not bootstrap
    """

    constraints = {
        **flags("propagate_updates_to_DND", "bootstrap_total_return_from_old_policy"),
        "dnd_size": whole(1),
        "l2_norm_added_delta": number(above=0),
        "new_value_shift_coefficient": FRACTION,
        "number_of_knn": whole(1),
        "DND_key_error_threshold": number(0),
    }

    def __init__(self) -> None:
        super().__init__()
        self.dnd_size = 500000
        self.l2_norm_added_delta = 0.001
        self.new_value_shift_coefficient = 0.1
        self.number_of_knn = 50
        self.DND_key_error_threshold: float = 0
        self.num_consecutive_playing_steps = EnvironmentSteps(4)
        self.propagate_updates_to_DND = False
        self.n_step = 100
        self.bootstrap_total_return_from_old_policy = True

    def unmet(self) -> Iterator[str]:
        if self.number_of_knn > self.dnd_size:
            yield f"number_of_knn is {self.number_of_knn}; it must be at most dnd_size ({self.dnd_size})"


class NECMemoryParameters(EpisodicExperienceReplayParameters):
    """A memory of episodes, from which the embeddings are learned."""

    def __init__(self) -> None:
        super().__init__()
        self.max_size = (MemoryGranularity.Transitions, 100000)


class NECAgentParameters(AgentParameters):
    """Neural episodic control with epsilon-greedy exploration."""

    path = "rl_coach.agents.nec_agent:NECAgent"
    algorithm: NECAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=NECAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=NECMemoryParameters(),
            networks={"main": NECNetworkParameters()},
        )
        self.exploration.epsilon_schedule = ConstantSchedule(0.1)
        self.exploration.evaluation_epsilon = 0.01


class NECAgent(ValueOptimizationAgent):
    """Looks values up in a dictionary of embeddings and returns. The entries of an episode are added when the episode
    ends. The newest weights compute their embeddings.
    """

    memory_requirement = MemoryRequirement.RETURNS
    network_requirements = {"main": NetworkRequirement((HeadRequirement("DNDQHeadParameters", ("embedding",)),))}
    predicts_values = True
    learns_one_by_one = True  # each update changes which entries are nearest
    learns_from_recorded_steps = False  # the dictionary gets its entries as the agent plays
    reason_to_act_alone = "it acts with its dictionary, which only this process has: leave out -dc and -n"
    dnd: QDND

    def init_environment_dependent_modules(self) -> None:
        super().init_environment_dependent_modules()
        algorithm, main = self.ap.algorithm, self.networks["main"]
        (name,) = main.outputs_named("embedding")
        self.dnd = QDND(
            algorithm.dnd_size,
            main.exported().output_shapes[name][0],
            self.spaces.action.num_actions,
            algorithm.new_value_shift_coefficient,
            algorithm.DND_key_error_threshold,
            num_neighbors=algorithm.number_of_knn,
            override_existing_keys=True,
        )

    def make_update_rule(self) -> UpdateRule:
        is_huber, _, loss_weight = self.loss_settings
        return neural_episodic_control_rule(self.ap.algorithm.l2_norm_added_delta, is_huber, loss_weight)

    def should_train(self) -> bool:
        return super().should_train() and self.dnd.has_enough_entries(self.ap.algorithm.number_of_knn)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        main = self.networks["main"]
        states = {name: batch.state_columns[name] for name in self.update_loop.input_names}
        actions, returns = batch.action_column, np.asarray(batch.n_step_discounted_rewards(), np.float32)
        embeddings = main.online_network.predict({name: states[name] for name in main.input_names})
        keys, values, indices = self.dnd.query_each(embeddings, actions, self.ap.algorithm.number_of_knn)
        if self.ap.algorithm.propagate_updates_to_DND:
            self.dnd.learning_rate = main.optimizer.learning_rate(self.clock.updates)
            delta = self.ap.algorithm.l2_norm_added_delta
            by_keys, by_values = gradients_of_squared_errors(embeddings, keys, values, returns, delta)
            self.dnd.update_keys_and_values(actions, by_keys, by_values, indices)
        return {
            **{f"states/{name}": column for name, column in states.items()},
            "extra/keys": keys,
            "extra/values": values,
            "extra/returns": returns,
            "weights": np.ones(len(batch), np.float32),
        }

    def get_all_q_values_for_states(self, states: StateType | list[StateType]) -> np.ndarray:
        return self._values(super().get_all_q_values_for_states(states))

    def get_prediction_and_update_embeddings(self, states: StateType | list[StateType]) -> np.ndarray:
        """The values Q(s, .) [B, A]; the name is from Coach 1.0.1. This method does not store embeddings: the agent
        adds them to the dictionary at the end of the episode.
        """
        return self.get_all_q_values_for_states(states)

    def _values(self, embeddings: np.ndarray) -> np.ndarray:
        """The values [B, A] that the dictionary has for embeddings [B, F]. An evaluation does not change the
        dictionary."""
        algorithm, touch = self.ap.algorithm, self._phase is not RunPhase.TEST
        return self.dnd.action_values(embeddings, algorithm.number_of_knn, algorithm.l2_norm_added_delta, touch)

    def handle_episode_ended(self) -> None:
        buffer = self.episode.buffer
        if self._phase is RunPhase.TEST or buffer.is_empty():
            super().handle_episode_ended()
            return
        embeddings = self._embeddings_and_bootstrap_values(buffer)
        super().handle_episode_ended()
        steps = buffer.transitions
        self.dnd.add(embeddings, [step.action for step in steps], [step.n_step_discounted_rewards for step in steps])

    def _embeddings_and_bootstrap_values(self, buffer: Episode) -> np.ndarray:
        """The embeddings [T, F] of an episode's states. Also store, in the steps, the values from which returns
        bootstrap."""
        states = [self.run_pre_network_filter_for_inference(step.state or {}, False) for step in buffer.transitions]
        embeddings = super().get_all_q_values_for_states(states)
        later = buffer.transitions[buffer.n_step :] if buffer.n_step > 0 else []
        if later:
            values = self._values(embeddings[-len(later) :])
            if self.spaces.action_mask_name is not None:
                masks = np.stack([self.spaces.action_mask(state) for state in states[-len(later) :]])
                values = np.where(allows(np, masks), values, MASKED_LOGIT)
            for step, value in zip(later, values.max(axis=1)):
                step.info["max_action_value"] = float(value)
        return embeddings

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "dnd": self.dnd.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.dnd.set_state(state["dnd"])
