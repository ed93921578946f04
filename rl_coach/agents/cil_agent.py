"""Conditional imitation learning (Codevilla et al. 2018, "End-to-end driving via conditional imitation learning"), with
a branch of the network for each command (section IV)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterator

import numpy as np

from rl_coach.agents.bc_agent import BCAgentParameters, BCAlgorithmParameters
from rl_coach.agents.core.requirements import HeadRequirement, NetworkRequirement
from rl_coach.agents.imitation_agent import ImitationAgent
from rl_coach.agents.rules.imitation import branched_imitation_rule
from rl_coach.architectures.head_parameters import RegressionHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import ActionInfo, Batch, StateType
from rl_coach.memories.non_episodic.balanced_experience_replay import BalancedExperienceReplayParameters
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.spaces import BoxActionSpace
from rl_coach.utils import CoachError, did_you_mean


class CILAlgorithmParameters(BCAlgorithmParameters):
    """Hyperparameters of conditional imitation learning. With ``num_consecutive_playing_steps`` of
    ``EnvironmentSteps(0)``, the agent learns only from demonstrations.

    :ivar state_key_with_the_class_index: the observation with the command, a number from 0 to the number of branches -
        1
    """

    def __init__(self) -> None:
        super().__init__()
        self.state_key_with_the_class_index = "high_level_command"


class CILNetworkParameters(FullyConnectedParameters):
    """A network with a branch for each command. A branch is a copy of the head (``num_output_head_copies``)."""

    def __init__(self) -> None:
        super().__init__(RegressionHeadParameters())


class CILAgentParameters(BCAgentParameters):
    """Conditional imitation of the demonstrations in ``memory.load_memory_from_file_path``. Each command is sampled
    equally often."""

    path = "rl_coach.agents.cil_agent:CILAgent"
    algorithm: CILAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = CILAlgorithmParameters()
        self.memory = BalancedExperienceReplayParameters()
        self.network_wrappers = {"main": CILNetworkParameters()}


class CILAgent(ImitationAgent):
    """Imitates demonstrated actions. A command, which is part of the state, chooses the branch that learns and acts."""

    network_requirements = {"main": NetworkRequirement((HeadRequirement("RegressionHeadParameters", ("values",)),))}

    def unmet_by_settings(self) -> Iterator[str]:
        key, known = self.ap.algorithm.state_key_with_the_class_index, list(self.spaces.state.sub_spaces)
        if key not in known:
            yield (
                f"agent '{self.name}' reads the command from an observation '{key}', but the observations are {known}"
                f"{did_you_mean(key, known)}: set state_key_with_the_class_index of algorithm and memory to the "
                f"observation that contains the command"
            )
        yield from super().unmet_by_settings()
        if not isinstance(self.spaces.action, BoxActionSpace):
            kind = type(self.spaces.action).__name__
            yield f"agent '{self.name}' imitates continuous actions, not {kind}: use BCAgentParameters()"

    @cached_property
    def _branches(self) -> tuple[str, ...]:
        return self.networks["main"].outputs_named("values")

    def make_update_rule(self) -> UpdateRule:
        main = self.ap.network_wrappers["main"]
        return branched_imitation_rule(main.replace_mse_with_huber_loss, main.heads_parameters[0].loss_weight)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        states = batch.state_columns[self.ap.algorithm.state_key_with_the_class_index]
        return {**super().learning_columns(batch), "extra/commands": self._commands(states)}

    def _commands(self, column: Any) -> np.ndarray:
        """The commands, [B] int32. :param column: [B] or [B, 1], the number of each row's command"""
        commands = np.asarray(column).reshape(len(column), -1)
        is_known = (commands >= 0) & (commands < len(self._branches)) & (commands == np.floor(commands))
        if commands.shape[1] != 1 or not is_known.all():
            key, odd = self.ap.algorithm.state_key_with_the_class_index, commands[~is_known.all(axis=1)]
            raise CoachError(
                f"the command '{key}' is {(odd if len(odd) else commands)[0].tolist()} in a state, but agent "
                f"'{self.name}' has only the branches 0 to {len(self._branches) - 1}: set num_output_head_copies of "
                f"the head to the number of commands"
            )
        return commands[:, 0].astype(np.int32)

    def predict_states(self, states: list[StateType]) -> list[list[np.ndarray]]:
        """The actions [A] of all branches, for each state."""
        inputs = self.prepare_batch_for_inference(states, "main")
        network, names = self.networks["main"].online_network, list(self._branches)
        branches = network.predict(inputs, outputs=names, squeeze_output=False)
        return [[branch[row] for branch in branches] for row in range(len(states))]

    def extract_action_values(self, prediction: list[np.ndarray]) -> list[np.ndarray]:
        """The action of the branch of the present command. :param prediction: the actions [A] of all branches"""
        command = self.episode.curr_state[self.ap.algorithm.state_key_with_the_class_index]
        return [prediction[self._commands([command])[0]]]

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        values = self.extract_action_values(self.acting_prediction(curr_state))
        return ActionInfo(np.atleast_1d(self._draw(values, None)))

    def policy_description(self) -> PolicyDescription | None:
        """None, because a deployed policy does not know the command."""
        return None
