"""Self-play: an agent learns against its own past policies (Silver et al. 2017; Bansal et al. 2018, section 4.2)."""

from __future__ import annotations

import pathlib
import tempfile
from dataclasses import dataclass, field
from typing import Any, Sequence

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.base_parameters import Parameters
from rl_coach.core_types import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    RunPhase,
    StateType,
    StepMethod,
    TrainingSteps,
)
from rl_coach.policy import files
from rl_coach.policy.export import own_policy, policy_of
from rl_coach.policy.policy import Policy
from rl_coach.utilities import plain_data
from rl_coach.utilities.requirements import FRACTION, TEXT, steps, whole
from rl_coach.utils import CoachError

ELO_STEP = 16.0
"""The largest change of a rating by one game."""
_ELO_SCALE = 400.0


class SelfPlayParameters(Parameters):
    """Settings of self-play.

    :param learner: the name of the agent that learns; its past policies play the other players
    :param every: number of the learner's steps, episodes or updates between two additions of its policy to the pool
    :param pool_size: number of policies in the pool; a new policy replaces the oldest policy. While the pool is empty,
        opponents act at random
    :param newest_share: the share of games against the newest policy, 0 to 1; in all other games, opponents are drawn
        from the whole pool
    """

    constraints = {
        "learner": TEXT,
        "every": steps(EnvironmentSteps, EnvironmentEpisodes, TrainingSteps, low=1),
        "pool_size": whole(1),
        "newest_share": FRACTION,
    }

    def __init__(
        self,
        learner: str = "agent_0",
        every: StepMethod | None = None,
        pool_size: int = 20,
        newest_share: float = 0.5,
    ):
        self.learner = learner
        self.every = TrainingSteps(1000) if every is None else every
        self.pool_size = pool_size
        self.newest_share = newest_share


@dataclass
class FrozenPlayer:
    """A player of one episode that acts with a past policy.

    :param member: the number of the policy, counted from the first that joined the pool; None acts at random
    :param state: the state in which the player acts next
    """

    member: int | None
    state: StateType = field(default_factory=dict)


plain_data.register(FrozenPlayer)


@dataclass
class PastPolicy:
    """A member of the pool.

    :param number: the number of the policy, counted from the first that joined the pool
    :param rating: the learner's Elo rating when the policy joined the pool; it does not change later
    :param files: the bytes of the policy's files as uint8 arrays, by name
    """

    number: int
    rating: float
    files: dict[str, np.ndarray]


class SelfPlay:
    """The past policies of a learner, and the choice of its opponents.

    In each episode the learner plays one player, drawn at random. Past policies are drawn for the other players
    (opponents) between episodes. Opponents draw their actions from their policy, and do not learn. In evaluations,
    opponents act at random, so that the evaluations of a run can be compared. Ratings are Elo ratings. Random play has
    the rating 0.

    :param parameters: the settings of self-play
    :param seed: the seed of the random numbers

    :ivar rating: the learner's Elo rating
    """

    def __init__(self, parameters: SelfPlayParameters, seed: np.random.SeedSequence):
        self.learner = parameters.learner
        self.rating = 0.0
        self._parameters = parameters
        self._rng = self._evaluation_rng = np.random.default_rng(seed)
        self._pool: list[PastPolicy] = []
        self._loaded: dict[int, Policy] = {}
        self._num_frozen = 0
        self._next_at = parameters.every.num_steps
        self._agent: Any = None
        self._elo: Any = None

    def connect(self, learner: AgentInterface) -> None:
        """Set the agent that learns. Its networks must exist."""
        self._agent = learner
        self._elo = self._agent.register_signal("Elo")

    def seed_evaluation(self, seed: np.random.SeedSequence) -> None:
        """Seed a separate random stream for the evaluation in progress."""
        self._evaluation_rng = np.random.default_rng(seed)

    # games

    def opponents(self, players: Sequence[str], phase: RunPhase) -> dict[str, FrozenPlayer]:
        """Opponents for an episode, one for each player except the learner's player.

        :param players: the players that the learner could play
        """
        rng = self._stream(phase)
        seat = int(rng.integers(len(players)))
        is_pool_used = phase is not RunPhase.TEST and bool(self._pool)
        return {
            player: FrozenPlayer(self._drawn() if is_pool_used else None)
            for index, player in enumerate(players)
            if index != seat
        }

    def _stream(self, phase: RunPhase) -> np.random.Generator:
        return self._evaluation_rng if phase is RunPhase.TEST else self._rng

    def _drawn(self) -> int:
        if self._rng.random() < self._parameters.newest_share:
            return self._pool[-1].number
        return self._pool[int(self._rng.integers(len(self._pool)))].number

    def begin_episode(self, player: FrozenPlayer) -> None:
        """Begin an episode for an opponent."""
        if player.member is not None:
            self._policy(player.member).reset()

    def act(self, player: FrozenPlayer, phase: RunPhase) -> Any:
        """Choose the action of an opponent in its present state."""
        space = self._agent.environment_spaces.action
        if player.member is not None:
            return space.from_raw(self._policy(player.member).act_in(player.state, deterministic=False))
        mask = self._agent.environment_spaces.action_mask(player.state)
        return space.sample() if mask is None else int(self._stream(phase).choice(np.flatnonzero(mask)))

    def _policy(self, number: int) -> Policy:
        if number not in self._loaded:
            policy = _load(next(member for member in self._pool if member.number == number))
            policy.seed(self._rng)
            self._loaded[number] = policy
        return self._loaded[number]

    def record(self, reward: float, opponents: Sequence[FrozenPlayer], phase: RunPhase) -> None:
        """Update the learner's rating after a training game.

        :param reward: the learner's reward in the whole game; above 0 for a victory, 0 for a draw
        """
        if phase is not RunPhase.TRAIN or not opponents:
            return
        ratings = {member.number: member.rating for member in self._pool}
        theirs = float(np.mean([0.0 if one.member is None else ratings[one.member] for one in opponents]))
        expected = 1.0 / (1.0 + 10.0 ** ((theirs - self.rating) / _ELO_SCALE))
        self.rating += ELO_STEP * (0.5 * (1.0 + float(np.sign(reward))) - expected)
        self._elo.add_sample(self.rating)

    # the pool

    def freeze_if_due(self) -> None:
        """Add the learner's present policy to the pool, if this is due.

        :raises CoachError: if the agent has no description of its policy
        """
        clock = self._agent.clock
        counts = {TrainingSteps: clock.updates, EnvironmentSteps: clock.steps, EnvironmentEpisodes: clock.episodes}
        done = counts[type(self._parameters.every)]
        if done < self._next_at:
            return
        self._next_at = done + self._parameters.every.num_steps
        described = policy_of(self._agent, {})
        if described is None:
            raise CoachError(
                f"agent '{self.learner}' cannot play against itself: its class must define policy_description"
            )
        arrays = {name: np.frombuffer(data, np.uint8) for name, data in described.items()}
        self._pool.append(PastPolicy(self._num_frozen, self.rating, arrays))
        self._num_frozen += 1

    def forget_oldest(self) -> None:
        """Remove the oldest policies from a pool that is too large. Call it between episodes, when no opponent uses
        them."""
        for member in self._pool[: -self._parameters.pool_size]:
            self._loaded.pop(member.number, None)
        del self._pool[: -self._parameters.pool_size]

    @property
    def remembers_episodes(self) -> bool:
        """True if a policy in the pool keeps a state during an episode. Then an episode in progress cannot be saved."""
        return any(policy.remembers_episode for policy in self._loaded.values())

    def get_state(self) -> dict[str, Any]:
        """The pool, the ratings and the random stream."""
        return {
            "pool": [dict(vars(member)) for member in self._pool],
            "rating": float(self.rating),
            "num_frozen": self._num_frozen,
            "next_at": self._next_at,
            "rng": self._rng.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that ``get_state`` returned."""
        self._loaded = {}
        self._pool = [PastPolicy(**one) for one in state["pool"]]
        self.rating, self._num_frozen, self._next_at = state["rating"], state["num_frozen"], state["next_at"]
        self._rng.bit_generator.state = state["rng"]


def _load(member: PastPolicy) -> Policy:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in member.files.items():
            pathlib.Path(folder, name).write_bytes(data.tobytes())
        return own_policy(*files.read(folder))
