"""An agent's networks: they are built, and asked about states."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.coach_methods import CoachMethods
from rl_coach.architectures.network_wrapper import NetworkWrapper, predictions_of
from rl_coach.core_types import PredictionType, RunPhase, StateType


class AgentNetworks(CoachMethods):
    """Builds an agent's networks, makes their inputs of states, and gives their predictions.

    :ivar networks: by name
    :ivar policy_spaces: the spaces that the networks see
    :ivar pre_network_filter: changes states on their way into the networks
    """

    pre_network_filter: Any
    policy_spaces: Any
    _seeds: np.random.SeedSequence

    def create_networks(self) -> dict[str, NetworkWrapper]:
        """The agent's networks by name."""
        return {
            name: NetworkWrapper(
                self.ap,
                has_target=parameters.create_target_network,
                has_global=False,
                name=name,
                spaces=self.policy_spaces,
                rng=np.random.default_rng(self._seeds.spawn(1)[0]),
            )
            for name, parameters in self.ap.network_wrappers.items()
        }

    def predict_states(self, states: list[StateType]) -> Any:
        """The networks' predictions that ``choose_action`` needs, for each of several states."""
        raise NotImplementedError(f"{type(self).__name__} does not predict")

    def prepare_batch_for_inference(
        self, states: StateType | list[StateType], network_name: str
    ) -> dict[str, np.ndarray]:
        """The inputs of a network for one state or a list of them, [B, ...] by name."""
        states = states if isinstance(states, list) else [states]
        names = [name for name in self.networks[network_name].input_names if name in states[0]]
        if len(states) == 1:
            return {name: np.asarray(states[0][name])[None] for name in names}
        return {name: np.stack([np.asarray(state[name]) for state in states]) for name in names}

    def get_state_embedding(self, state: StateType | list[StateType]) -> np.ndarray:
        """[B, D], the output of the middleware of network ``main`` for one state or a list of them."""
        return self.networks["main"].embedding(self.prepare_batch_for_inference(state, "main"))

    def run_pre_network_filter_for_inference(
        self, state: StateType, update_filter_internal_state: bool = True
    ) -> StateType:
        """The state as networks see it."""
        if self.pre_network_filter.is_empty:
            return state
        update = (
            update_filter_internal_state
            and self.ap.algorithm.update_pre_network_filters_state_on_inference
            and self._phase is not RunPhase.TEST
        )
        columns = {name: np.asarray(observation)[None] for name, observation in state.items()}
        return {name: column[0] for name, column in self.pre_network_filter.filter_columns(columns, update).items()}

    def get_predictions(self, states: dict[str, np.ndarray], prediction_type: type[PredictionType]) -> Any:
        """The predictions of this agent's networks for states [B, ...], for another agent.

        :raises CoachError: no network predicts that
        """
        return predictions_of(self.networks, states, prediction_type)
