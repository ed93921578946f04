"""Wolpertinger chooses among many discrete actions by a continuous "proto-action" (Dulac-Arnold et al. 2015, "Deep
reinforcement learning in large discrete action spaces").
"""

from __future__ import annotations

from functools import cached_property
from typing import Iterable, Iterator

import numpy as np

from rl_coach.agents.ddpg_agent import (
    DDPGActorNetworkParameters,
    DDPGAgent,
    DDPGAgentParameters,
    DDPGAlgorithmParameters,
    DDPGCriticNetworkParameters,
)
from rl_coach.agents.rules.action_embedding import ActionEmbedding, embedding_of
from rl_coach.agents.rules.deterministic_policy import NextValue, best_of_next_actions, value_of_target_policy
from rl_coach.architectures.head_parameters import WolpertingerActorHeadParameters
from rl_coach.core_types import ActionInfo, Batch, StateType
from rl_coach.filters.action.partial_discrete_action_space_map import PartialDiscreteActionSpaceMap
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, SpacesDefinition
from rl_coach.utilities.requirements import flags, whole


class WolpertingerCriticNetworkParameters(DDPGCriticNetworkParameters):
    """The critic network: Q(s, a), where a is the embedding of an action."""


class WolpertingerActorNetworkParameters(DDPGActorNetworkParameters):
    """The policy network. Its output is a proto-action: a point among the actions' embeddings."""

    def __init__(self, use_batchnorm: bool = False) -> None:
        super().__init__(use_batchnorm)
        self.heads_parameters = [WolpertingerActorHeadParameters(batchnorm=use_batchnorm)]


class WolpertingerAlgorithmParameters(DDPGAlgorithmParameters):
    """Hyperparameters of Wolpertinger.

    :ivar action_embedding_width: number of coordinates of an action's embedding
    :ivar k: the critic chooses among the k actions that are nearest to the proto-action. With 1, the nearest action is
        taken; with the number of all actions, the action with the largest value
    :ivar use_full_policy_in_target: True: the critic's target uses the best value of the k actions that are nearest to
        the target actor's proto-action, as in the paper. False: it uses the value of the proto-action itself, as in
        Coach 1.0.1
    """

    constraints = {
        **flags("use_full_policy_in_target"),
        "action_embedding_width": whole(1),
        "k": whole(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.action_embedding_width = 1
        self.k = 1
        self.use_full_policy_in_target = False


class WolpertingerAgentParameters(DDPGAgentParameters):
    """Wolpertinger with noise of an Ornstein-Uhlenbeck process on the proto-action.

    :param use_batchnorm: True: batch normalisation in both networks
    """

    path = "rl_coach.agents.wolpertinger_agent:WolpertingerAgent"
    algorithm: WolpertingerAlgorithmParameters

    def __init__(self, use_batchnorm: bool = False) -> None:
        super().__init__()
        self.algorithm = WolpertingerAlgorithmParameters()
        self.network_wrappers = {
            "actor": WolpertingerActorNetworkParameters(use_batchnorm),
            "critic": WolpertingerCriticNetworkParameters(use_batchnorm),
        }


class WolpertingerAgent(DDPGAgent):
    """DDPG for many discrete actions: its critic chooses among the actions nearest to the actor's output. The critic
    learns from the embeddings of the actions that were taken.
    """

    acting_networks = ("actor", "critic")
    supports_curiosity = True
    needs_bounded_actions = False  # the policy's actions are points among the embeddings

    def unmet_by_actions(self) -> Iterable[str]:
        return ()  # the networks' actions are continuous, although the environment's are not

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        space, k = self.spaces.action, self.ap.algorithm.k
        if not isinstance(space, DiscreteActionSpace):
            yield (
                f"agent '{self.name}' needs discrete actions, not {type(space).__name__}: "
                f"add a BoxDiscretization to its output_filter, or choose DDPG"
            )
        elif k > space.num_actions:
            yield f"k is {k}, and there are {space.num_actions} actions: choose a smaller k"

    @cached_property
    def embedding(self) -> ActionEmbedding:
        """The actions as points, from ``get_initialized_knn``."""
        return self.get_initialized_knn()

    def get_initialized_knn(self) -> ActionEmbedding:
        """The actions as points for the search of nearest neighbours. A subclass may embed the actions differently."""
        space = self.spaces.action
        maps = [one for one in self.output_filter.action_filters.values() if one.input_action_space is space]
        targets = [one.target_actions for one in maps if isinstance(one, PartialDiscreteActionSpaceMap)]
        return embedding_of(
            space, np.asarray(targets[0]) if targets else None, self.ap.algorithm.action_embedding_width
        )

    def init_environment_dependent_modules(self) -> None:
        width = self.embedding.points.shape[1]
        box = BoxActionSpace(width, low=np.full(width, -1.0), high=np.full(width, 1.0))
        self.policy_spaces = SpacesDefinition(self.spaces.state, self.spaces.goal, box, self.spaces.reward)
        super().init_environment_dependent_modules()

    @property
    def learns_one_by_one(self) -> bool:  # type: ignore[override]
        """True if updates cannot be compiled together, because each needs the neighbours of the target actor's newest
        proto-actions."""
        return self.ap.algorithm.use_full_policy_in_target

    @property
    def next_value(self) -> NextValue:
        return best_of_next_actions if self.ap.algorithm.use_full_policy_in_target else value_of_target_policy

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        columns["actions"] = self.embedding.points[np.asarray(batch.action_column, np.int64).reshape(-1)]
        return columns

    def columns_of_networks(self, batch: Batch) -> dict[str, np.ndarray]:
        """[B, k, width], the allowed actions nearest to the target actor's proto-actions for the next states."""
        # the search runs on the host, because a compiled step would compare each row with all of many actions
        actor = self.networks["actor"]
        inputs = {name: batch.next_state_columns[name] for name in actor.input_names}
        proto_actions = actor.target_network.predict(inputs, squeeze_output=False)[0]
        masks = self.spaces.action_mask(batch.next_state_columns)
        return {"extra/next_actions": self.embedding.nearest_to_each(proto_actions, self.ap.algorithm.k, masks)}

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        proto_action, mask = self.explored_action(curr_state), self.spaces.action_mask(curr_state)
        candidates = self.embedding.nearest(proto_action, self.ap.algorithm.k, mask)
        action = int(candidates[0] if len(candidates) == 1 else self._best_of(candidates, curr_state))
        self.action_signal.add_sample(action)
        return ActionInfo(action)

    def _best_of(self, candidates: np.ndarray, state: StateType) -> int:
        """The action with the highest value of the critic (algorithm 1)."""
        inputs = self.prepare_batch_for_inference(state, "critic")
        repeated = {name: np.repeat(column, len(candidates), axis=0) for name, column in inputs.items()}
        values = self.networks["critic"].online_network.predict(
            {**repeated, "action": self.embedding.points[candidates]}
        )
        return int(candidates[np.argmax(values)])

    def policy_description(self) -> PolicyDescription | None:  # type: ignore[override]
        """None: acting needs actor, embeddings and critic together, and a deployed policy is one network."""
        return None
