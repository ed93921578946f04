"""Methods of an agent that programs written for Coach call or override, and that its parts do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from rl_coach.agents.delegated_attributes import DelegatedAttributes
from rl_coach.core_types import Transition
from rl_coach.filters.filter import InputFilter
from rl_coach.saver import SaverCollection
from rl_coach.utils import Signal

if TYPE_CHECKING:
    from rl_coach.agents.core.episode import EpisodeInProgress
    from rl_coach.agents.core.experience import Experience
    from rl_coach.agents.core.signals import Books
    from rl_coach.architectures.network_wrapper import NetworkWrapper


class CoachMethods(DelegatedAttributes):
    """Ways to an agent's memory, networks and counters by the names that Coach gave them."""

    ap: Any
    memory: Any
    input_filter: InputFilter
    experience: Experience
    books: Books
    episode: EpisodeInProgress
    networks: dict[str, NetworkWrapper]
    current_episode: int
    reward: Signal
    shaped_reward: Signal
    count_played: Callable[[int], None]
    observe_transition: Callable[[Transition], bool]

    def initialize_session_dependent_components(self) -> None:
        """Fill the memory, once filters and networks are there, with the recorded transitions that
        ``load_memory_from_file_path`` names, if it does. A subclass adds what else needs the networks."""
        self.load_memory_from_file()

    def load_memory_from_file(self) -> None:
        """Fill the memory with the recorded transitions that ``load_memory_from_file_path`` names, if it does."""
        recorded = self.ap.algorithm.load_memory_from_file_path or self.ap.memory.load_memory_from_file_path
        if recorded is not None:
            self.experience.load(recorded, self.input_filter)

    def call_memory(self, func: str, args: Any = ()) -> Any:
        """Call a method of the memory by name."""
        return getattr(self.memory, func)(*(args if isinstance(args, tuple) else (args,)))

    def observe_played(self, transition: Transition) -> bool:
        """Take in a step that another process has played. :return: True if it ended the episode"""
        episode = self.episode
        self.count_played(1)
        episode.steps += 1
        episode.total_reward += transition.reward
        episode.total_shaped_reward += transition.reward
        self.reward.add_sample(transition.reward)
        self.shaped_reward.add_sample(transition.reward)
        return self.observe_transition(transition)

    def freeze_memory(self) -> None:
        """Keep the memory as it is from now on."""
        self.call_memory("freeze")

    def get_success_rate(self) -> float:
        """The share of the last evaluation's episodes whose reward reached the environment's threshold."""
        return self.books.last_success_rate

    def update_log(self) -> None:
        """Write the row of the episode that has ended."""
        self.books.write_episode(self.episode.report(self._phase))

    def update_step_in_episode_log(self) -> None:
        """Write the row of one step to the in-episode CSV."""
        self.books.write_step(self.episode.steps)

    def get_current_time(self) -> int:
        """Index of the CSV's present row: the training episodes that have ended."""
        return self.current_episode

    def collect_savers(self, parent_path_suffix: str) -> SaverCollection:
        """Savers of the networks by themselves. A subclass adds savers of its own, which write into each checkpoint of
        the graph and read from it."""
        savers = SaverCollection()
        for network in self.networks.values():
            savers.update(network.collect_savers(f"{parent_path_suffix}/{self.name}"))
        return savers
