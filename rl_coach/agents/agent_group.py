"""Several agents that a level treats as one agent."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, SupportsFloat

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.core_types import RunPhase
from rl_coach.saver import SaverCollection
from rl_coach.utils import LazyArray, Signal


class AgentGroup(AgentInterface):
    """Agents that change phases, learn and are saved together.

    A subclass defines how they act: ``CompositeAgent`` makes one action from the choices of its agents, and ``Players``
    returns an action for each player.

    :ivar agents: the agents by name
    """

    def __init__(self) -> None:
        super().__init__()
        self.agents: dict[str, AgentInterface] = {}

    @property
    def phase(self) -> RunPhase:
        """Current phase of the run."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        self._phase = value
        for agent in self.agents.values():
            agent.phase = value

    @property
    def is_on_policy(self) -> bool:
        return any(agent.is_on_policy for agent in self.agents.values())

    @property
    def can_train(self) -> bool:  # type: ignore[override]
        return any(agent.can_train for agent in self.agents.values())

    @property
    def training_iteration(self) -> int:  # type: ignore[override]
        """The updates of all agents together."""
        return sum(agent.training_iteration for agent in self.agents.values())

    @property
    def optimizer_steps(self) -> int:
        return sum(agent.optimizer_steps for agent in self.agents.values())

    @property
    def path_of_members(self) -> tuple[str, ...]:
        """The names that come between ``owners`` and an agent's own name in the full name of the agent."""
        return ()

    def connect(
        self, owners: tuple[str, ...], run_parameters: Callable[[], dict[str, Any]], stop_if_asked: Callable[[], None]
    ) -> None:
        super().connect(owners, run_parameters, stop_if_asked)
        for agent in self.agents.values():
            agent.connect((*owners, *self.path_of_members), run_parameters, stop_if_asked)

    def setup_logger(self) -> None:
        for agent in self.agents.values():
            agent.setup_logger()

    def listen_to_rows(self, listener: Callable[[dict[str, Any]], None]) -> None:
        """Call ``listener`` with each row of each agent. The names of the signals begin with the agent's name."""
        for name, agent in self.agents.items():
            agent.listen_to_rows(partial(_pass_row, listener, name))

    def register_signal(self, *arguments: Any) -> Signal:
        """Create a signal of the first agent; see ``Agent.register_signal``."""
        first: Any = next(iter(self.agents.values()))
        return first.register_signal(*arguments)

    def should_train(self) -> bool:
        return any(agent.should_train() for agent in self.agents.values())

    def train(self) -> SupportsFloat:
        """Train each agent. :return: the sum of the losses; reading it waits for the updates"""
        losses = []
        for agent in self.agents.values():
            before = agent.training_iteration
            agent.updates_left = self.updates_left
            losses.append(agent.train())
            if self.updates_left is not None:
                self.updates_left = max(0, self.updates_left - (agent.training_iteration - before))
        return LazyArray(lambda: sum(map(float, losses)))

    def handle_episode_ended(self) -> None:
        for agent in self.agents.values():
            agent.handle_episode_ended()

    def seed_evaluation(self, seed: np.random.SeedSequence) -> None:
        for agent, own in zip(self.agents.values(), seed.spawn(len(self.agents))):
            agent.seed_evaluation(own)

    def reset_evaluation_state(self, val: RunPhase) -> None:
        for agent in self.agents.values():
            agent.reset_evaluation_state(val)

    def get_success_rate(self) -> float:
        """The lowest of the agents' success rates."""
        return min(agent.get_success_rate() for agent in self.agents.values())

    def sync(self) -> None:
        for agent in self.agents.values():
            agent.sync()

    def save_checkpoint(self, checkpoint_prefix: str) -> None:
        for agent in self.agents.values():
            agent.save_checkpoint(checkpoint_prefix)

    def restore_checkpoint(self, checkpoint_dir: str) -> None:
        for agent in self.agents.values():
            agent.restore_checkpoint(checkpoint_dir)

    def get_state(self) -> dict[str, Any]:
        return {"agents": {name: agent.get_state() for name, agent in self.agents.items()}}

    def set_state(self, state: dict[str, Any]) -> None:
        for name, agent in self.agents.items():
            agent.set_state(state["agents"][name])

    def collect_savers(self, parent_path_suffix: str) -> SaverCollection:
        savers = SaverCollection()
        for agent in self.agents.values():
            savers.update(agent.collect_savers("/".join((parent_path_suffix, *self.path_of_members))))
        return savers

    def set_session(self, sess: Any) -> None:
        for agent in self.agents.values():
            agent.set_session(sess)

    def fits(self) -> dict[str, str]:
        parts = {f"{what} {name}": text for name, agent in self.agents.items() for what, text in agent.fits().items()}
        return {**super().fits(), **parts}

    def close(self) -> None:
        for agent in self.agents.values():
            agent.close()


def _pass_row(listener: Callable[[dict[str, Any]], None], agent: str, row: dict[str, Any]) -> None:
    listener({f"{agent}/{name}": value for name, value in row.items()})
