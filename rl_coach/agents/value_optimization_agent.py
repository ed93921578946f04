"""Base class of the agents that learn the values of actions."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.batches import BatchSource
from rl_coach.agents.core.compiled_acting import Exploration, at_level, epsilon_greedy, schedule_ahead
from rl_coach.agents.core.compiled_replay import CompiledReplay, why_replay_is_not_compiled
from rl_coach.agents.core.inference import StateColumns
from rl_coach.agents.core.overrides import is_replaced
from rl_coach.agents.core.sequence_replay import SequenceReplay
from rl_coach.architectures.compiled_loop import CompiledAgent
from rl_coach.architectures.update import NetworkView
from rl_coach.core_types import ActionInfo, Batch, RunPhase, StateType
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.exploration_policies.exploration_policy import deployed_choice
from rl_coach.logger import screen
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.spaces import ActionSpace, DiscreteActionSpace, MultiDiscreteActionSpace
from rl_coach.utils import Signal


class ValueOptimizationAgent(Agent):
    """Predicts Q(s, a) with the network ``main`` and lets the exploration policy choose among the actions."""

    predicts_values = True
    is_on_policy = False

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.q_values = self.register_signal("Q")
        self.q_value_for_action: dict[int, Signal] = {}
        self._q_outputs: list[str] | None = None
        if is_replaced(self, "learns_from_stored_states"):
            self.learns_from_stored_states = False

    def unmet_by_networks(self) -> Iterator[str]:
        yield from super().unmet_by_networks()
        middleware, n_step = self.ap.network_wrappers["main"].middleware_parameters, self.ap.algorithm.n_step
        if self.is_recurrent and not self.memory.samples_sequences:
            yield (
                f"agent '{self.name}' learns with a recurrent network from sequences of whole episodes: "
                f"set memory to EpisodicExperienceReplayParameters()"
            )
        if self.is_recurrent and n_step > 1:
            yield (
                f"algorithm.n_step is {n_step}, and agent '{self.name}' learns with a recurrent network from sequences "
                f"of single steps: set it to 1"
            )
        if self.is_recurrent and middleware.burn_in > (length := middleware.sequence_length):
            yield (
                f"middleware_parameters.burn_in is {middleware.burn_in} and sequence_length {length}: "
                f"the second sequence of an episode has only {length} steps before it; set burn_in to {length} at most"
            )
        chosen_among, heads = self.exploration_policy.num_heads, len(self.networks["main"].outputs_named("q")) or 1
        if chosen_among != heads:
            yield (
                f"exploration of agent '{self.name}' chooses among {chosen_among} Q heads "
                f"(architecture_num_q_heads of BootstrappedParameters or UCBParameters; 1 in all others), and network "
                f"'main' has {heads} (num_output_head_copies): set both to the same number"
            )

    def make_batches(self) -> BatchSource:
        if not self.is_recurrent:
            return super().make_batches()
        return SequenceReplay(self.memory, self.ap.network_wrappers["main"].middleware_parameters, self.recurrent_state)

    def init_environment_dependent_modules(self) -> None:
        super().init_environment_dependent_modules()
        main = self.networks["main"]
        names = list(main.outputs_named("q"))
        self._q_outputs = None if not names or names == main.online_network.output_names else names
        space = self.spaces.action
        for action in range(space.num_actions if isinstance(space, DiscreteActionSpace) else 0):
            self.q_value_for_action[action] = self.register_signal(
                f"Q for action {action}", dump_one_value_per_episode=False, dump_one_value_per_step=True
            )

    @property
    def loss_settings(self) -> tuple[bool, str | None, float]:
        """``is_huber``, ``mask_name`` and ``loss_weight``: arguments of the rules of Q-learning."""
        main = self.ap.network_wrappers["main"]
        return main.replace_mse_with_huber_loss, self.spaces.action_mask_name, main.heads_parameters[0].loss_weight

    def get_all_q_values_for_states(self, states: StateType | list[StateType]) -> np.ndarray:
        """[B, A], Q(s, .) for one state or a list of states."""
        inputs = self.prepare_batch_for_inference(states, "main")
        return self.networks["main"].online_network.predict(inputs, outputs=self._q_outputs)

    def get_all_q_values_for_states_and_softmax_probabilities(
        self, states: StateType | list[StateType]
    ) -> tuple[np.ndarray, np.ndarray]:
        """[B, A] each: Q(s, .), and the softmax of Q(s, .) / ``softmax_temperature``."""
        q_values = self.get_all_q_values_for_states(states)
        logits = q_values / self.ap.network_wrappers["main"].softmax_temperature
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return q_values, weights / weights.sum(axis=-1, keepdims=True)

    def get_prediction(self, states: StateType | list[StateType], outputs: list[str] | None = None) -> Any:
        """The network's outputs for one state or a list of states."""
        inputs = self.prepare_batch_for_inference(states, "main")
        return self.networks["main"].online_network.predict(inputs, outputs=outputs)

    def predict_states(self, states: list[StateType] | StateColumns) -> Any:
        return self.get_all_q_values_for_states(states)

    def update_transition_priorities_and_get_weights(self, TD_errors: np.ndarray, batch: Batch) -> np.ndarray | None:
        """Set the priorities of the batch in a prioritized memory.

        :param TD_errors: [B]
        :return: [B] importance weights; None if the memory has no priorities
        """
        if not self.memory.has_priorities:
            return None
        if "idx" in batch.info_columns:  # a batch from the user has no idx
            self.memory.update_priorities(batch.info("idx"), np.abs(TD_errors))
        return batch.info("weight")

    def get_reward_model_loss(self, batch: Batch) -> float:
        """Train the network ``reward_model`` on the rewards of a batch, for off-policy evaluation. The network has an
        output for each action; only the output of the action taken learns.

        :return: the loss before the update
        """
        return self.regress("reward_model", batch.state_columns, batch.actions(), batch.rewards())

    def regress(
        self, network_name: str, states: dict[str, np.ndarray], actions: np.ndarray, values: np.ndarray
    ) -> float:
        """Train a network that has an output for each action. The targets are the values [B] of the actions [B] in the
        states [B, ...].

        :return: the loss before the update
        """
        network = self.networks[network_name]
        inputs = {name: states[name] for name in network.input_names}
        targets = network.online_network.predict(inputs)
        targets[np.arange(len(actions)), actions] = values
        return float(network.train_and_sync_networks(inputs, targets)[0])

    def improve_reward_model(self, epochs: int) -> None:
        """Train the network ``reward_model`` on the rewards of the memory's training episodes.

        :param epochs: number of passes over the transitions
        """
        self._fit_to_memory("reward_model", epochs, self.get_reward_model_loss)

    def _fit_to_memory(self, network_name: str, epochs: int, learn: Callable[[Batch], float]) -> None:
        """Train a network on the memory's training episodes, and print its loss.

        :param epochs: number of passes over the transitions
        :param learn: makes an update on a batch, which has passed the agent's filters, and returns the loss
        """
        size, what = self.ap.network_wrappers[network_name].batch_size, network_name.replace("_", " ")
        with screen.waiting_for(f"training the {what}"):
            for _ in range(epochs):
                batches = self.call_memory("get_shuffled_training_data_generator", size)
                losses = [learn(self.update_loop.filtered(batch, may_update=False)) for batch in batches]
                self.stop_if_asked()
        if epochs:
            screen.announce(f"{self.name}: the {what} is trained, its loss is {np.mean(losses):.6g}")

    def policy_description(self) -> PolicyDescription | None:
        outputs = self.networks["main"].outputs_named("q")
        choice = deployed_choice(self.exploration_policy)
        return None if len(outputs) != 1 or choice is None else PolicyDescription("main", outputs, choice)

    def why_not_compiled(self, num_copies: int, actions: ActionSpace, heats_up: bool) -> str | None:
        return why_replay_is_not_compiled(self, num_copies, actions, EGreedyParameters)

    def make_compiled(self, random: Any, num_copies: int) -> CompiledAgent:
        return CompiledReplay(self, random, num_copies, self.compiled_exploration(random, num_copies))

    def compiled_exploration(self, random: Any, num_copies: int) -> Exploration:
        """The agent's choice of actions in a compiled loop."""

        def values(networks: dict[str, NetworkView], states: dict[str, Any]) -> Any:
            return networks["main"].online(states, training=False)[0]["q"]

        act = epsilon_greedy(self.update_loop.learner.ops, random, values, self.spaces.action_mask_name)
        evaluate = at_level(act, self.exploration_policy.evaluation_epsilon)
        return Exploration(act, lambda ahead, steps: self._epsilons(ahead, steps, num_copies), evaluate)

    def _epsilons(self, ahead: int, steps: int, num_copies: int) -> np.ndarray:
        """[steps, num_copies] float32, epsilon in the next steps. :param ahead: earlier steps not counted yet"""
        if not self.acts_by_networks:
            return np.ones((steps, num_copies), np.float32)
        schedule = self.exploration_policy.epsilon_schedule
        return schedule_ahead(schedule, ahead, steps, num_copies, self._phase is RunPhase.TRAIN)

    def choose_actions(self, states: StateColumns) -> np.ndarray:
        def values() -> np.ndarray:
            q_values = self.predict_states(states)
            self.q_values.add_sample(q_values)
            return q_values

        count = len(next(iter(states.values())))
        return self.exploration_policy.get_actions(values, count, self.spaces.action_mask(states))

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        policy, mask_name = self.actor.exploration_policy, self.spaces.action_mask_name
        mask = () if mask_name is None else (np.asarray(curr_state[mask_name]),)
        prediction = self.acting_prediction(curr_state) if policy.requires_action_values() else None
        action, probabilities = policy.get_action(prediction, *mask)
        if prediction is None:
            return ActionInfo(action, all_action_probabilities=probabilities)
        if isinstance(self.spaces.action, MultiDiscreteActionSpace):  # values of each part, [K, M]
            self.q_values.add_sample(prediction)
            return ActionInfo(action, all_action_probabilities=probabilities)
        q_values = prediction if prediction.ndim == 1 else prediction.mean(axis=0)  # over the heads of an ensemble
        self.q_values.add_sample(q_values)
        if self.ap.visualization.dump_in_episode_signals:
            for index, value in enumerate(q_values):
                self.q_value_for_action[index].add_sample(value)
        return ActionInfo(
            action,
            all_action_probabilities=probabilities,
            action_value=float(q_values[action]),
            max_action_value=float(q_values.max()),
        )
