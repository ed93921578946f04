"""An agent: it observes, acts, remembers and learns."""

from __future__ import annotations

import copy
from typing import Any, Callable, Iterable, SupportsFloat

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.compat import CoachNames
from rl_coach.agents.core.accumulated_reward import with_accumulated_reward, with_accumulated_reward_space
from rl_coach.agents.core.actors import Actor, Actors, keeps_attributes
from rl_coach.agents.core.batches import BatchSource, DataSetPass, MemoryBatches
from rl_coach.agents.core.chunk_requirements import require_sound
from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.column_actors import StateColumns
from rl_coach.agents.core.episode import EpisodeInProgress, EpisodeReport, let_checkpoints_hold
from rl_coach.agents.core.evaluation_snapshot import EvaluationSnapshot
from rl_coach.agents.core.experience import Experience, ExperienceChunk
from rl_coach.agents.core.finite_watch import FiniteWatch
from rl_coach.agents.core.learning import Learning, Phases
from rl_coach.agents.core.overrides import is_replaced
from rl_coach.agents.core.requirements import requirements_of, unmet_by_recurrent_networks
from rl_coach.agents.core.signals import RowUnit, Signals
from rl_coach.agents.core.transport import FILTERS, policy_of, take_policy
from rl_coach.agents.core.update_loop import BatchLearning, DataSetLearning, Outcome, UpdateLoop, UpdateSettings
from rl_coach.architectures.compiled_loop import CompiledAgent
from rl_coach.architectures.network_wrapper import NetworkWrapper, predictions_of
from rl_coach.architectures.update import Stages, UpdateRule
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import (
    ActionInfo,
    ActionType,
    Batch,
    Directive,
    EnvResponse,
    PredictionType,
    RunPhase,
    StateType,
    Transition,
)
from rl_coach.exploration_policies.exploration_policy import make_exploration_policy
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter, changes_nothing, filtered_spaces
from rl_coach.logger import screen
from rl_coach.memories.memory import receives_episodes
from rl_coach.runs.event_lines import log_episode
from rl_coach.saver import SaverCollection
from rl_coach.spaces import ActionSpace, GoalsSpace, SpacesDefinition
from rl_coach.utilities.errors import refuse
from rl_coach.utilities.overrides import coachs_class
from rl_coach.utilities.requirements import check
from rl_coach.utils import CoachError, Signal, dynamic_import_and_instantiate_module_from_params


class Agent(CoachNames, AgentInterface):
    """Acts, observes, remembers and learns.

    A subclass gives an update rule (``make_update_rule``) and chooses actions (``choose_action``). Or it overrides
    ``learn_from_batch`` and computes targets itself. It may declare requirements (``AgentRequirements``) of its memory,
    exploration policy and networks.

    The agent consists of parts: ``episode`` (the present episode), ``parallel`` (its actors, if it acts in several
    episodes), ``experience`` (stores transitions), ``clock`` (counts, and decides when to learn), ``update_loop``
    (updates the networks) and ``signals`` (the rows of the CSV). ``core/overrides.py`` lists which override replaces
    which declaration.

    :param agent_parameters: all settings; a filter that is not set changes nothing
    :param parent: the level manager or composite agent that holds it

    :cvar acting_networks: the networks that choose actions, None for all. Other networks are not read between two
        phases
    :cvar learns_from_sequences: a batch is a segment of an episode in order, as a recurrent network needs it
    :cvar learns_from_stored_states: each transition contains the recurrent state before its action. Sequences from the
        memory start from the stored state of their first step
    :cvar recurrent_network: the network that may be recurrent; its state is the stored one
    :cvar learns_one_by_one: the columns of an update depend on the networks (``columns_of_networks``), so each update
        is a separate call
    :cvar most_updates_per_call: a phase of more updates makes several compiled calls; None for no bound
    :cvar trains_asynchronously: several workers of one machine may train it at once on shared weights
    :cvar explores_by_parameter: the control parameter of the exploration policy says how much the agent explores
    :cvar batch_network: the ``batch_size`` of this network counts; None for the first network
    :cvar episode_class: the class of its episodes, with the fields that belong to an episode
    :cvar episode_attributes: the names of the agent's attributes that belong to an episode, () for none. An agent with
        its own ``reset_internal_state`` or ``__init__`` needs it, or an ``episode_class``, to act in several copies
    :cvar row_unit: the unit of a row in its CSV: an episode, an epoch (``batches`` makes passes over a data set) or
        ``updates_per_row`` updates. Rows of epochs and updates are written after the training phase that completes them
    :cvar counters: attributes that count over all episodes; a checkpoint holds them

    :ivar spaces: the environment's spaces after the filters
    :ivar memory_spaces: the spaces of stored transitions, before the pre-network filter
    :ivar policy_spaces: the spaces of networks and exploration, which may have actions in another form
    :ivar networks: by name
    :ivar pre_network_filter: changes states before they enter the networks
    :ivar batches: the source of batches for updates
    :ivar learning_periods: by network, k if only every k-th update teaches it; 1 if the network has no entry
    :ivar parallel: its actors in several copies of the environment; None if it acts in one
    :ivar training_has_begun: ``before_training`` was called, in this run or before its checkpoint
    :ivar is_played_elsewhere: other processes play for it, and it learns from their steps (``take_in``)
    """

    acting_networks: tuple[str, ...] | None = None
    learns_from_sequences = False
    learns_from_stored_states = False
    recurrent_network = "main"
    learns_one_by_one = False
    most_updates_per_call: int | None = None
    trains_asynchronously = False
    reason_to_act_alone: str | None = None
    explores_by_parameter = True
    batch_network: str | None = None
    episode_class: type[EpisodeInProgress] = EpisodeInProgress
    episode_attributes: tuple[str, ...] | None = None
    row_unit = RowUnit.EPISODE
    updates_per_row = 1
    counters: tuple[str, ...] = ("total_steps_counter", "current_episode", "training_iteration")

    def __init__(self, agent_parameters: AgentParameters, parent: Any = None):
        super().__init__()
        algorithm, visualization = agent_parameters.algorithm, agent_parameters.visualization
        self.ap = agent_parameters
        self.parent = parent
        self.name = agent_parameters.name or "agent"
        self.full_name_id = agent_parameters.full_name_id = agent_parameters.full_name_id or self.name
        screen.announce(f"Creating agent - name: {self.name}")
        self.memory = dynamic_import_and_instantiate_module_from_params(agent_parameters.memory)
        self.input_filter = agent_parameters.input_filter or NoInputFilter()
        self.output_filter = agent_parameters.output_filter or NoOutputFilter()
        self.pre_network_filter = agent_parameters.pre_network_filter
        self._filters_responses = self._filters_actions = True  # each episode decides, for each step asks
        self.networks: dict[str, NetworkWrapper] = {}
        self.spaces: Any = None
        self.policy_spaces: Any = None
        self.memory_spaces: Any = None
        self.environment_spaces: Any = None
        self.in_action_space = algorithm.in_action_space
        self.exploration_policy: Any = None
        self.learning_periods: dict[str, int] = {}
        self.is_recurrent = False
        self.stores_recurrent_states = False
        self.can_train = False
        self._trains_by_coach_names = is_replaced(self, "should_train")
        self.acts_by_networks = True
        self.rng = np.random.default_rng()
        self._seeds = np.random.SeedSequence()

        let_checkpoints_hold(self.episode_class)
        self.episode = self.episode_class(algorithm)
        self.parallel: Actors | None = None
        self._training_actor: Actor | None = None
        self.clock = TrainingClock(algorithm)
        self.watch = FiniteWatch()
        self.experience = Experience(self.memory, algorithm)
        if agent_parameters.is_batch_rl_training:
            self.row_unit = RowUnit.EPOCH
            self.most_updates_per_call = DataSetLearning.UPDATES
        self.signals = Signals(
            visualization.dump_in_episode_signals, visualization.dump_signals_to_csv_every_x_episodes, self.row_unit
        )
        self.distance_from_goal: Signal | None = None
        if isinstance(self.in_action_space, GoalsSpace):
            self.distance_from_goal = self.register_signal("Distance From Goal", dump_one_value_per_step=True)
        self._last_row = 0
        self.batches: BatchSource = MemoryBatches(self.memory)
        self.update_loop: Any = None
        self.learning: Any = None
        self._snapshot: EvaluationSnapshot | None = None
        self._attributes_of_episode: set[str] = set()
        self.is_played_elsewhere = False
        self.training_has_begun = False
        task = agent_parameters.task_parameters
        self.evaluates_only = task is not None and task.num_evaluation_steps is not None

    # building

    def seed(self, seed: Any) -> None:
        """Start all random streams of the agent, its memory and its exploration anew."""
        self._seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        own, memory = self._seeds.spawn(2)
        self.rng = np.random.default_rng(own)
        self.memory.seed(memory)

    def set_environment_parameters(self, spaces: SpacesDefinition) -> None:
        """Take the environment's spaces, as the filters change them, and build what depends on them."""
        self.environment_spaces = spaces
        self.memory_spaces = filtered_spaces(spaces, self.input_filter, NoInputFilter(), self.output_filter)
        if self.ap.algorithm.use_accumulated_reward_as_measurement:
            self.memory_spaces.state = with_accumulated_reward_space(self.memory_spaces.state)
        self.spaces = filtered_spaces(self.memory_spaces, NoInputFilter(), self.pre_network_filter, NoOutputFilter())
        self.policy_spaces = self.spaces
        if isinstance(self.in_action_space, GoalsSpace):
            self.in_action_space.set_target_space(spaces.state[self.in_action_space.goal_name])
        check(self.ap, self.name)
        refuse(self.unmet_by_settings())
        self.init_environment_dependent_modules()

    def unmet_by_settings(self) -> Iterable[str]:
        """Requirements on the spaces, the settings and the memory that are not met: a line each, with advice. There are
        no networks yet. A subclass adds requirements of its own."""
        yield from requirements_of(self).unmet_by_settings(self.name, self.ap, self.memory, self.spaces.action)
        if self.ap.algorithm.act_beside_learning and not self._may_act_beside_learning:
            yield (
                f"agent '{self.name}' cannot act beside its learning: algorithm.act_beside_learning is for agents "
                f"whose update rule learns from a memory, whatever policy has filled it"
            )

    @property
    def _may_act_beside_learning(self) -> bool:
        goes_by_newest = self.is_on_policy or self.trains_asynchronously or self.learns_one_by_one
        return self.learns_by_rule and not goes_by_newest

    def unmet_by_networks(self) -> Iterable[str]:
        """Requirements on the networks and the exploration policy that are not met, likewise."""
        recurrent = [name for name, network in self.networks.items() if network.is_recurrent]
        yield from unmet_by_recurrent_networks(
            self.name, recurrent, self.recurrent_network, self.learns_from_sequences, self.learns_from_stored_states
        )
        yield from requirements_of(self).unmet_by_networks(self.name, self.networks, self.exploration_policy)

    def init_environment_dependent_modules(self) -> None:
        """Build the exploration policy and the networks."""
        action_seed, exploration_seed = self._seeds.spawn(2)
        self.spaces.action.seed(action_seed)
        self.exploration_policy = make_exploration_policy(self.ap.exploration, self.policy_spaces.action, self.name)
        self.exploration_policy.seed(exploration_seed)
        if self.ap.is_batch_rl_training:
            self.remember_probabilities()
        self.networks = self.create_networks()
        self.can_train = bool(self.networks)
        if self.ap.algorithm.act_beside_learning:
            for name in self.acting_networks or self.networks:
                self.networks[name].state.keeps_for_acting = True
        self.is_recurrent = any(network.is_recurrent for network in self.networks.values())
        refuse(self.unmet_by_networks())
        self.stores_recurrent_states = self.is_recurrent and self.learns_from_stored_states
        self.batches = self.make_batches()
        if self.ap.is_batch_rl_training and self.batches.epoch is None:
            raise CoachError(
                f"agent '{self.name}' learns from {type(self.batches).__name__}, and batch reinforcement learning "
                f"makes passes over single transitions: give its networks a middleware that is not recurrent"
            )
        if self.row_unit is RowUnit.EPOCH and self.batches.epoch is None:
            raise CoachError(
                f"agent '{self.name}' writes a row for each epoch, and {type(self.batches).__name__} makes no passes "
                f"over a data set: return a DataSetPass from make_batches, or set row_unit to RowUnit.UPDATES"
            )
        self.batches.seed(self._seeds.spawn(1)[0])
        self.update_loop = UpdateLoop(
            self, self.networks, self.batches, self.clock, self.signals, self.pre_network_filter, self.watch,
            UpdateSettings(
                self.ap.network_wrappers, self.ap.algorithm, self.acting_networks, self.spaces.action_mask_name,
                self.batch_network, self.most_updates_per_call, self.learning_periods,
            ),
        )  # fmt: skip
        self.learning = self.make_learning()
        self.experience.rollout = self.learning.rollout
        self._warn_of_batch_sizes()
        self.initialize_session_dependent_components()
        if self.ap.visualization.print_networks_summary:
            for network in self.networks.values():
                print(network.summary())

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

    def make_batches(self) -> BatchSource:
        """The source of batches for updates: the memory by default, in batch reinforcement learning passes over it.
        Called once, when there are networks. See ``core/batches.py`` for a mixture of several sources."""
        return DataSetPass(self.memory) if self.ap.is_batch_rl_training else MemoryBatches(self.memory)

    def make_update_rule(self) -> UpdateRule | Stages:
        """The algorithm's update as a pure function, or as one for each of its stages; see
        ``rl_coach.architectures.update``."""
        raise NotImplementedError(f"{type(self).__name__} has no update rule: give it one, or a learn_from_batch")

    def _warn_of_batch_sizes(self) -> None:
        read = [name for name in requirements_of(self).network_requirements if name in self.networks]
        if not read or any(self.networks[name].head_outputs is None for name in read):
            return
        counts, sizes = self.update_loop.batch_size, {name: self.ap.network_wrappers[name].batch_size for name in read}
        if others := ", ".join(f"'{name}' ({size})" for name, size in sizes.items() if size != counts):
            screen.warning(
                f"agent '{self.name}': batch_size of network {others} has no effect; all learn from batches of "
                f"{counts}, batch_size of network '{self.update_loop.batch_network}'"
            )

    def initialize_session_dependent_components(self) -> None:
        """Fill the memory, once filters and networks are there, with the recorded transitions that
        ``load_memory_from_file_path`` names, if it does. A subclass adds what else needs the networks."""
        self.load_memory_from_file()

    def load_memory_from_file(self) -> None:
        """Fill the memory with the recorded transitions that ``load_memory_from_file_path`` names, if it does."""
        recorded = self.ap.algorithm.load_memory_from_file_path or self.ap.memory.load_memory_from_file_path
        if recorded is not None:
            self.experience.load(recorded, self.input_filter, self.output_filter, self.memory_spaces)

    def remember_probabilities(self) -> None:
        """Store with each step from now on the probabilities by which its action was chosen, which off-policy
        evaluation needs. An epsilon-greedy policy asks its network at each step then."""
        self.experience.remembers_action_info = True
        self.exploration_policy.tells_all_probabilities = True

    def play_in_copies(self, count: int) -> Actors:
        """Act in several copies of the environment from now on, with an episode in each.

        :raises CoachError: nobody says what belongs to an episode
        """
        if not self._declares_episode or (self.episode_attributes is None and keeps_attributes(self)):
            raise self._unknown_episode()
        self.clock.steps_at_once = count
        self.parallel = Actors(self, [self.episode_class(self.ap.algorithm) for _ in range(count - 1)])
        return self.parallel

    def _unknown_episode(self) -> CoachError:
        return CoachError(
            f"agent '{self.name}': {type(self).__name__} does not say which of its attributes belong to an episode; "
            f"several copies of the environment need that: name them in episode_attributes (() for none), keep them in "
            f"an episode_class, or set env_params.num_environments to 1"
        )

    def require_declared_episode(self, names: Iterable[str]) -> None:
        """Make sure that attributes which a user's agent has made while it acted in several copies are declared.

        :raises CoachError: they are not
        """
        if self.episode_attributes is None and not set(names) <= set(self.counters):
            raise self._unknown_episode()

    @property
    def _declares_episode(self) -> bool:
        """True if it is known which attributes belong to an episode."""
        is_declared = self.episode_attributes is not None and not is_replaced(self, "episode_attributes")
        return is_declared or not is_replaced(self, "episode_class")

    @property
    def attributes_of_episode(self) -> set[str]:
        """The names of the attributes that belong to the episode in progress."""
        return self._attributes_of_episode | set(self.episode_attributes or ())

    # what is written down

    def register_signal(
        self, signal_name: str, dump_one_value_per_episode: bool = True, dump_one_value_per_step: bool = False
    ) -> Signal:
        """A signal for the CSV: statistics over each episode, or its value at each step in the in-episode CSV."""
        return self.signals.register(signal_name, dump_one_value_per_episode, dump_one_value_per_step)

    def listen_to_rows(self, listener: Callable[[dict[str, Any]], None]) -> None:
        self.signals.logger.listener = listener

    def setup_logger(self) -> None:
        """Open the CSVs."""
        self.ap.full_name_id = self.full_name_id
        if self.ap.task_parameters is not None:
            stem = ".".join((*self.owners[:2], *self.full_name_id.split("/")))
            self.signals.open_files(self.ap.task_parameters, self.ap.visualization, stem, self.run_parameters)

    def update_log(self) -> None:
        """Write the row of the episode that has ended."""
        self._write_episode(self.episode.report(self._phase))

    def _write_episode(self, report: EpisodeReport) -> None:
        self.signals.write_episode(report, self._counts_of_row(report.phase), self.clock.episodes)

    def _report_episode(self, report: EpisodeReport) -> None:
        """Write the row and print the line of an episode that was played elsewhere."""
        self._write_episode(report)
        if screen.is_read_by_programs and self.ap.is_a_highest_level_agent:
            self._print_episode(report)

    def _counts_of_row(self, phase: RunPhase) -> dict[str, Any]:
        return {**self._counts(phase), **self.experience.counts}

    @property
    def _row_number(self) -> int:
        """The number of the newest row that is complete: of episodes, epochs or updates so far."""
        if self.row_unit is RowUnit.EPISODE:
            return self.clock.episodes
        if self.row_unit is RowUnit.EPOCH:
            return self.batches.epoch or 0
        return self.clock.updates // self.updates_per_row * self.updates_per_row

    def _write_row_if_due(self) -> None:
        if (number := self._row_number) > self._last_row:
            self._last_row = number
            self.signals.write_row(number, self._counts_of_row(RunPhase.TRAIN), self.batches.epoch)

    def update_step_in_episode_log(self) -> None:
        """Write the row of one step to the in-episode CSV."""
        accumulated = {"Shaped Accumulated Reward": self.episode.total_shaped_reward}
        self.signals.write_step(self.episode.steps, {**self._counts_of_row(self._phase), **accumulated})

    def _counts(self, phase: RunPhase) -> dict[str, Any]:
        return {
            "Training Iter": self.clock.updates,
            "In Heatup": int(phase is RunPhase.HEATUP),
            "Total steps": self.clock.steps,
            "Epsilon": _mean(self.exploration_policy.get_control_param()),
        }

    @property
    def _writes_steps(self) -> bool:
        """Steps have rows in the first copy of the environment."""
        return self.signals.writes_steps and (self.parallel is None or self.parallel.index == 0)

    def log_to_screen(self) -> None:
        """Print the line of the present episode, for programs that read it."""
        self._print_episode(self.episode.report(self._phase))

    def _print_episode(self, report: EpisodeReport) -> None:
        task = self.ap.task_parameters
        log_episode(
            report.phase,
            self.full_name_id,
            None if task is None else task.task_index,
            self.clock.episodes,
            float(np.sum(report.reward)),
            self.exploration_policy.get_control_param() if self.explores_by_parameter else None,
            self.clock.steps,
            self.clock.updates,
        )

    def get_success_rate(self) -> float:
        """The share of the last evaluation's episodes whose reward reached the environment's threshold."""
        return self.signals.last_success_rate

    # phases

    @property
    def phase(self) -> RunPhase:
        """Current phase of the run. An evaluation leaves no trace: the streams, the filters' statistics and the signals
        go on afterwards as if there had been none."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        is_built = self.exploration_policy is not None
        if is_built and value is RunPhase.TEST and self._snapshot is None:
            streams = [self.rng, self.spaces.action.rng, *(network.rng for network in self.networks.values())]
            self._snapshot = EvaluationSnapshot(
                self.filters, streams, self.exploration_policy, self.signals, vars(self)
            )
            self._begin_evaluation()
        if self._phase is not value:
            self.reset_evaluation_state(value)
        self._phase = value
        self._trains_by_coach_names = is_replaced(self, "should_train")  # once a phase, for each step asks
        self.acts_by_networks = value is not RunPhase.HEATUP or self.ap.algorithm.heatup_using_network_decisions
        for network in self.networks.values():
            network.online_network.waits_for_updates = value is RunPhase.TEST
        if is_built:
            policies = [] if self.parallel is None else self.parallel.exploration_policies
            for policy in {id(one): one for one in (self.exploration_policy, *policies)}.values():
                policy.change_phase(value)
        if value is not RunPhase.TEST and self._snapshot is not None:
            self._end_evaluation()
            self._snapshot.restore()
            before, self._snapshot = self._snapshot.attributes, None
            vars(self).update({name: before[name] for name in self.attributes_of_episode if name in before})

    def _begin_evaluation(self) -> None:
        """Act as an actor of the evaluation, which has its own state of the episode."""
        self._training_actor = Actor(self.episode, self.input_filter, self.output_filter, self.exploration_policy)
        evaluating = Actor.evaluating(self._training_actor, self.episode)
        self._training_actor.leave(self)
        evaluating.enter(self)

    def _end_evaluation(self) -> None:
        assert self._training_actor is not None
        self._training_actor.enter(self)
        self._training_actor = None

    def seed_evaluation(self, seed: np.random.SeedSequence) -> None:
        assert self._snapshot is not None
        self._snapshot.seed(seed, self.exploration_policy)

    def reset_evaluation_state(self, val: RunPhase) -> None:
        """Begin an evaluation if ``val`` is ``TEST``; otherwise close the one that ran and log its results."""
        is_announced = self.ap.is_a_highest_level_agent
        if val is RunPhase.TEST:
            if is_announced and self._phase is not RunPhase.TEST:
                screen.announce(f"{self.name}: Starting evaluation phase")
            self.signals.begin_evaluation()
            return
        mean_reward = self.signals.end_evaluation(self._row_number)
        if is_announced and mean_reward is not None:
            screen.announce(
                f"{self.name}: Finished evaluation phase. Success rate = {round(self.get_success_rate(), 2)}, "
                f"Avg Total Reward = {round(mean_reward, 2)}"
            )

    # the episode

    def begin_episode(self) -> None:
        """Begin an episode by ``reset_internal_state``. Attributes that an override of it changes belong to an episode,
        unless they are ``counters``."""
        if self._declares_episode:
            self.reset_internal_state()
            return
        if self.parallel is not None:  # the override came to the instance when the copies were there
            raise self._unknown_episode()
        before = dict(vars(self))
        self.reset_internal_state()
        changed = {name for name, value in vars(self).items() if name not in before or before[name] is not value}
        self._attributes_of_episode |= changed - {"episode", *self.counters}

    def reset_internal_state(self) -> None:
        """Forget the episode before."""
        self.signals.begin_episode(self.clock.episodes, self._writes_steps)
        before, self.episode = self.episode, self.episode_class(self.ap.algorithm)
        self.episode.incoming_goal, self.episode.is_tested = before.incoming_goal, before.is_tested
        self.input_filter.reset()
        self.output_filter.reset()
        self._filters_responses = not changes_nothing(self.input_filter)
        self._filters_actions = not changes_nothing(self.output_filter)
        self.exploration_policy.reset()
        for network in self.networks.values():
            network.online_network.reset_internal_memory()

    def put_episode_aside(self) -> EpisodeInProgress:
        """The present episode, for ``take_up_episode`` to go on with after another one, or in another run."""
        # twice in each step of each copy of the environment: what there is nothing of is not looked for
        episode = self.episode
        episode.filter_histories = self.input_filter.episode_state() if self._filters_responses else []
        episode.exploration = self.exploration_policy.episode_state()
        if self.is_recurrent:
            networks = self.networks.items()
            episode.recurrent_states = {name: one.online_network.recurrent_state for name, one in networks}
        if names := self.attributes_of_episode:
            episode.attributes = {name: vars(self)[name] for name in names if name in vars(self)}
        return episode

    def take_up_episode(self, episode: EpisodeInProgress, is_restored: bool = False) -> None:
        """Go on with an episode that was put aside."""
        self.episode = episode
        if episode.filter_histories:
            self.input_filter.set_episode_state(episode.filter_histories)
        if episode.filter_histories is not None:
            self.exploration_policy.set_episode_state(episode.exploration)
        if episode.recurrent_states:
            for name, state in episode.recurrent_states.items():
                self.networks[name].online_network.recurrent_state = state
        if episode.attributes:
            vars(self).update(episode.attributes)
        if episode.is_tested:
            self.exploration_policy.change_phase(RunPhase.TEST)
        if is_restored:
            self._attributes_of_episode |= set(episode.attributes)
            self.signals.resume_steps(self.clock.episodes)
            self.experience.go_on_with(episode)

    def observe(self, env_response: EnvResponse) -> bool:
        """Take in what the environment answered: the first state of an episode, or the outcome of the last action.

        :return: True if the episode is over
        :raises CoachError: the reward is several numbers, also after the filters
        """
        episode = self.episode
        if self._phase is RunPhase.TEST:
            filtered = self.input_filter.filter_evaluated(env_response)
        else:
            filtered = env_response
            if self._filters_responses:
                filtered = self.input_filter.filter(env_response, deep_copy=False)[0]
            action = episode.last_action_info.action if episode.last_action_info is not None else None
            self.watch.look(env_response, filtered, episode.steps, self.clock.episodes + 1, action)
        if isinstance(filtered.reward, np.ndarray) and filtered.reward.ndim > 0:
            raise CoachError(
                f"the reward of a step is an array of {filtered.reward.size} numbers, and agents learn from one: "
                f"combine them in a wrapper of the environment"
            )
        if episode.incoming_goal is not None:
            filtered = copy.copy(filtered)
            filtered.next_state = {**filtered.next_state, "desired_goal": episode.incoming_goal}
        if self.ap.algorithm.use_accumulated_reward_as_measurement:
            filtered = copy.copy(filtered)
            accumulated = episode.total_shaped_reward + filtered.reward if episode.steps else 0.0
            filtered.next_state = with_accumulated_reward(filtered.next_state, accumulated)
        if episode.steps == 0:
            episode.curr_state = filtered.next_state
            return env_response.game_over
        assert episode.last_action_info is not None
        transition = Transition(
            state=episode.curr_state,
            action=episode.last_action_info.action,
            reward=filtered.reward,
            next_state=filtered.next_state,
            game_over=filtered.game_over,
            info=dict(filtered.info),
            terminated=filtered.terminated,
        )
        if self.distance_from_goal is not None and episode.incoming_goal is not None:
            goals: Any = self.in_action_space
            self.distance_from_goal.add_sample(goals.distance_from_goal(episode.incoming_goal, filtered.next_state))
        episode.curr_state = filtered.next_state
        episode.total_reward += env_response.reward
        episode.total_shaped_reward += filtered.reward
        self.signals.reward.add_sample(env_response.reward)
        self.signals.shaped_reward.add_sample(filtered.reward)
        return self.observe_transition(self.update_transition_before_adding_to_replay_buffer(transition))

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        """Change a transition before it is stored; nothing by default."""
        return transition

    def observe_transition(self, transition: Transition) -> bool:
        """Store a transition. :return: True if it ended the episode"""
        if self._phase is not RunPhase.TEST:
            self.experience.add(transition, self.episode)
        if self.signals.writes_steps and self._writes_steps:
            self.update_step_in_episode_log()
        return bool(transition.game_over)

    def handle_episode_ended(self) -> None:
        """Close the episode: compute returns, store it where memories keep episodes, and write its row."""
        episode = self.episode
        episode.buffer.is_complete = True
        if self._phase is RunPhase.TEST:
            self.signals.evaluation.add(episode.report(self._phase), self.spaces.reward.reward_success_threshold)
        else:
            discounted_return = self.experience.finish(episode)
            if discounted_return is not None:
                self.signals.discounted_return.add_sample(discounted_return)
        if self._phase is not RunPhase.TEST or self.evaluates_only:
            self.clock.episodes += 1
            self.update_log()
        if screen.is_read_by_programs and self.ap.is_a_highest_level_agent:
            self.log_to_screen()

    def cut_episode(self) -> None:
        """Store what there is of the present episode as an episode of its own; the rest becomes another one."""
        self.experience.cut(self.episode, self.recurrent_state)

    def replace_last_action(self, action_info: ActionInfo) -> None:
        """Remember what the environment got instead of this agent's choice, as an action of the agent's own space."""
        self.episode.last_action_info = self.output_filter.reverse_filter(action_info)

    def set_incoming_directive(self, action: ActionType | Directive) -> None:
        """Take a goal from the level above: until the next one it is the ``desired_goal`` of the agent's states. The
        environment's own state, which others see too, stays as it is."""
        directive = Directive.of(action)
        # always, for a run that goes on has entered its phase after it took up the episode of the directive before
        self.exploration_policy.change_phase(RunPhase.TEST if directive.is_tested else self._phase)
        self.episode.incoming_goal, self.episode.is_tested = np.asarray(directive.goal), directive.is_tested
        self.episode.curr_state = {**self.episode.curr_state, "desired_goal": self.episode.incoming_goal}

    # acting

    def act(self, action: ActionType | None = None) -> ActionInfo | None:
        """Choose an action for the current state, or take ``action`` as the choice.

        :return: the action as the environment understands it; None if the agent learns without acting
        """
        if self._phase is RunPhase.TRAIN and self.ap.algorithm.num_consecutive_playing_steps.num_steps == 0:
            return None
        episode = self.episode
        episode.steps += 1
        if self._phase is not RunPhase.TEST or self.evaluates_only:
            self.count_played(1)
        if self.stores_recurrent_states:
            episode.acted_from = self.recurrent_state
        if action is not None:
            chosen = ActionInfo(action)
        elif not self.acts_by_networks:
            mask = self.spaces.action_mask(episode.curr_state)
            space = self.spaces.action
            chosen = space.sample_with_info() if mask is None else space.sample_with_info(mask)
        elif self.parallel is not None and self.parallel.are_asked_together:
            chosen = self.choose_action(self.parallel.state)
        else:
            chosen = self.choose_action(self.run_pre_network_filter_for_inference(episode.curr_state))
        if episode.acted_from:
            self._remember_present_state()
        episode.last_action_info = chosen
        return self.output_filter.filter(chosen) if self._filters_actions else chosen

    def act_in_copies(self, indices: Iterable[int]) -> dict[int, ActionInfo | None]:
        """An action for some of the copies of the environment, by index. Networks are asked once for all of them."""
        parallel, indices = self.parallel, list(indices)
        assert parallel is not None
        if self.acts_by_networks and not self.is_recurrent:
            episodes = parallel.episodes
            states = {i: self.run_pre_network_filter_for_inference(episodes[i].curr_state) for i in indices}
            parallel.ask_together(states)
        actions = {}
        for index in indices:
            parallel.enter(index)
            actions[index] = self.act()
        parallel.ask_together({})
        return actions

    def count_played(self, steps: int) -> None:
        """Count steps in the environment, of this process or of another one that played for this agent."""
        self.clock.steps += steps

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        """Choose an action for one state, observations without a batch dimension."""
        raise NotImplementedError(f"{type(self).__name__} does not choose actions")

    @property
    def chooses_in_columns(self) -> bool:
        """True if Coach's class of the agent has ``choose_actions``, and no method of a single episode was overridden
        after it. The overrides of users are another question (``override_that_keeps_off``)."""
        kind: Any = coachs_class(type(self))
        return kind.choose_actions is not Agent.choose_actions and not is_replaced(kind, "choose_actions")

    def choose_actions(self, states: StateColumns) -> np.ndarray:
        """[N, ...], choose the actions of several actors in one pass, as ``choose_action`` chooses each.

        :param states: [N, ...] by name, as networks see them
        """
        raise NotImplementedError(f"{type(self).__name__} chooses one action at a time")

    def acting_prediction(self, curr_state: StateType) -> Any:
        """The networks' prediction for the state to act in; where several are acted in at once, they are asked once."""
        if self.parallel is not None and self.parallel.are_asked_together:
            return self.parallel.prediction
        return self.predict_states([curr_state])[0]

    def predict_states(self, states: list[StateType]) -> Any:
        """The networks' predictions that ``choose_action`` needs, for each of several states."""
        raise NotImplementedError(f"{type(self).__name__} does not predict")

    def prepare_batch_for_inference(
        self, states: StateType | list[StateType], network_name: str
    ) -> dict[str, np.ndarray]:
        """The inputs of a network for one state or a list of them, [B, ...] by name."""
        if isinstance(states, StateColumns):
            return {name: states[name] for name in self.networks[network_name].input_names if name in states}
        states = states if isinstance(states, list) else [states]
        names = [name for name in self.networks[network_name].input_names if name in states[0]]
        if len(states) == 1:
            return {name: np.asarray(states[0][name])[None] for name in names}
        return {name: np.stack([np.asarray(state[name]) for state in states]) for name in names}

    def run_pre_network_filter_for_inference(
        self, state: StateType, update_filter_internal_state: bool = True
    ) -> StateType:
        """The state as networks see it."""
        if not self.pre_network_filter.observation_filters:
            return state
        update = (
            update_filter_internal_state
            and self.ap.algorithm.update_pre_network_filters_state_on_inference
            and self._phase is not RunPhase.TEST
        )
        columns = {name: np.asarray(observation)[None] for name, observation in state.items()}
        filtered = self.pre_network_filter.filter_columns(columns, update)
        self.watch.compare(columns, filtered, "pre-network filter", f"at step {self.clock.steps}")
        return {name: column[0] for name, column in filtered.items()}

    def get_state_embedding(self, state: StateType | list[StateType]) -> np.ndarray:
        """[B, D], the output of the middleware of network ``main`` for one state or a list of them."""
        return self.networks["main"].embedding(self.prepare_batch_for_inference(state, "main"))

    def get_predictions(self, states: dict[str, np.ndarray], prediction_type: type[PredictionType]) -> Any:
        """The predictions of this agent's networks for states [B, ...], for another agent.

        :raises CoachError: no network predicts that
        """
        return predictions_of(self.networks, states, prediction_type)

    @property
    def recurrent_state(self) -> dict[str, np.ndarray]:
        """The recurrent network's state by the names of its parts; empty where there is none."""
        network = self.networks.get(self.recurrent_network)
        return {} if network is None else network.online_network.recurrent_state

    def _remember_present_state(self) -> None:
        """Show the present state to a recurrent network that was not asked, as for a random action."""
        name = self.recurrent_network
        network = self.networks[name].online_network
        if network.recurrent_state is self.episode.acted_from:
            state = self.run_pre_network_filter_for_inference(self.episode.curr_state, False)
            network.predict(self.prepare_batch_for_inference(state, name))

    # learning

    @property
    def learns_by_rule(self) -> bool:
        """True if the agent learns by its update rule, not by a ``learn_from_batch`` of its own."""
        return not is_replaced(self, "make_update_rule")

    @property
    def training_iteration(self) -> int:
        """Updates of the agent's networks so far."""
        return self.clock.updates

    @training_iteration.setter
    def training_iteration(self, value: int) -> None:
        self.clock.updates = value

    @property
    def training_steps(self) -> int:
        return self.batches.epoch or 0 if self.ap.is_batch_rl_training else self.clock.updates

    @property
    def decides_on_targets(self) -> bool:
        """True if the agent says itself when target networks are updated, not the clock."""
        return is_replaced(self, "decides_on_targets")

    def targets_due(self) -> bool:
        """True if the target networks are to be updated now; the time counts anew then."""
        return self._should_update_online_weights_to_target()

    @property
    def optimizer_steps(self) -> int:
        return self.clock.optimizer_steps

    def make_learning(self) -> Learning:
        """The part that decides when the agent learns, from what, and in how many updates: in phases on batches from
        the memory by default, in batch reinforcement learning in epochs. Called once, when the networks are there."""
        if isinstance(self.batches, DataSetPass) and self.ap.is_batch_rl_training:
            return DataSetLearning(self.phases(), self.update_loop, self.batches)
        return BatchLearning(self.phases(), self.update_loop, self.batches)

    def phases(self) -> Phases:
        """Beginnings of training phases, for a part that learns in phases."""
        return Phases(
            self.clock,
            self.ap.algorithm,
            self.memory,
            start=self.clock.start_phases,
            is_in_episode=self._is_in_episode,
            is_on_policy=lambda: self.is_on_policy,
        )

    def _is_in_episode(self) -> bool:
        # of what is played in several environments, or by other processes, so much is learned from as is there
        is_cut = self.is_played_elsewhere or (self.parallel is not None and self.is_on_policy)
        return not is_cut and not self.episode.buffer.is_complete

    def should_train(self) -> bool:
        """True if the next call of ``train`` would learn."""
        if self._trains_by_coach_names:
            return self.can_train and bool(self._should_train())
        return self.can_train and self.learning.is_due()

    def train(self) -> SupportsFloat:
        """Learn as ``learning`` does, if it is time. The first call in the training phase begins with
        ``before_training``.

        :return: the loss; reading it waits for the updates
        """
        if not self.training_has_begun:
            self.begin_training_if_due()
        if not self.should_train():
            return 0.0
        loss = self.learning.learn(self.updates_left)
        self.post_training_commands()
        if self.row_unit is not RowUnit.EPISODE:
            self._write_row_if_due()
        return loss

    def begin_training_if_due(self) -> None:
        """Call ``before_training`` at the beginning of training."""
        if self.training_has_begun or not self.can_train or self._phase is not RunPhase.TRAIN:
            return
        before = self.clock.updates
        self.before_training()
        self.training_has_begun = True
        if self.updates_left is not None:
            self.updates_left = max(0, self.updates_left - (self.clock.updates - before))

    def before_training(self) -> None:
        """Called once, when training begins, after the heatup; does nothing by default. It is not called again when a
        run goes on from a checkpoint, unless it was interrupted. Updates that it makes by ``update_loop`` count as
        training steps.

        With rollout workers, the trainer calls it. Workers that learn on shared weights each call it.
        """

    def learn_from_batch(self, batch: Batch) -> Outcome:
        """Update the networks on a batch, which the pre-network filters have passed already.

        An agent that overrides this computes its targets itself, from ``self.networks[...].online_network.predict``,
        and calls ``train_and_sync_networks``.

        :return: the loss, each network's loss, and the gradients' norm before clipping
        """
        return self.update_loop.update_once(self.update_loop.columns(batch), batch)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns of a batch that the update rule needs; see ``Learner.train``."""
        names, discount = self.update_loop.input_names, self.ap.algorithm.discount
        columns = {f"states/{name}": batch.state_columns[name] for name in names}
        columns |= {f"next_states/{name}": batch.next_state_columns[name] for name in names}
        columns["actions"] = batch.action_column
        columns["rewards"] = batch.reward_column
        over_steps = discount if batch.n_step_column is None else discount**batch.n_step_column
        columns["discounts"] = (over_steps * (1.0 - batch.terminated_column)).astype(np.float32)
        weights = batch.info_columns.get("weight")
        columns["weights"] = np.ones(len(batch.reward_column), np.float32) if weights is None else weights
        return columns | self.columns_of_networks(batch) if self.learns_one_by_one else columns

    def columns_of_networks(self, batch: Batch) -> dict[str, np.ndarray]:
        """More columns, which depend on what the networks predict before the update; only for an agent that
        ``learns_one_by_one``."""
        return {}

    def learning_scalars(self) -> dict[str, float]:
        """Numbers that change between updates and that the rule needs."""
        return {}

    def post_training_commands(self) -> None:
        """Called after a training phase; nothing is to be done by default."""

    # loops that are compiled as a whole

    def why_not_compiled(self, num_copies: int, actions: ActionSpace, heats_up: bool) -> str | None:
        """The reason why the agent cannot take part in a compiled loop, None if it can. Asked before it has networks.

        :param num_copies: of the environment
        :param actions: the environment's
        :param heats_up: the run begins with a heatup
        """
        return f"{type(self).__name__} has no compiled form"

    def make_compiled(self, random: Any, num_copies: int) -> CompiledAgent:
        """The agent's part in a compiled loop, for an agent that can take part in one.

        :param random: the framework's random numbers, with the names of ``jax.random``
        :param num_copies: of the environment
        """
        raise NotImplementedError(f"{type(self).__name__} has no compiled form")

    def record_played(self, report: EpisodeReport, discounted_return: float) -> None:
        """Record an episode that was not played step by step; its steps have been counted."""
        self.signals.discounted_return.add_sample(discounted_return)
        self.clock.episodes += 1
        self._report_episode(report)

    def record_evaluated(self, steps: int, reward: float, shaped_reward: float) -> None:
        """Take in what a compiled call has played of the present episode of an evaluation, from its beginning.

        :param reward: the total reward
        :param shaped_reward: the same after the filters
        """
        self.episode.steps, self.episode.total_reward = steps, reward
        self.episode.total_shaped_reward = shaped_reward

    # other processes

    def take_in(self, played: ExperienceChunk) -> None:
        """Take in what another process has played for this agent, as if it had been played here.

        :raises CoachError: it does not fit itself, the agent's spaces or the memory; nothing has been changed then
        """
        experience = self.experience
        require_sound(
            played, self.memory_spaces, receives_episodes(self.memory), experience.most_steps_ahead,
            has_priorities=experience.prioritize is not None,
        )  # fmt: skip
        self.learning.require_fitting(played)
        experience.store_played(played, self.filters)
        self.clock.steps_at_once = max(self.clock.steps_at_once, played.steps)  # a step is compiled for the most
        self.count_played(played.steps)
        self.exploration_policy.advance(played.steps)
        for report in played.reports:
            self.clock.episodes += 1
            self.signals.begin_episode(self.clock.episodes, self._writes_steps)
            self._report_episode(report)
        if self._phase is not RunPhase.HEATUP:
            self.learning.take_in(played)

    def acting_policy(self) -> dict[str, Any]:
        """The policy by which another process acts as this agent does, as plain data."""
        names = self.acting_networks or tuple(name for name, one in self.networks.items() if one.input_names)
        networks = {name: self.networks[name] for name in names}
        return policy_of(networks, self.filters, self.exploration_policy, self.clock.updates)

    def take_policy(self, policy: dict[str, Any]) -> None:
        """Act from now on as ``acting_policy`` of another process says."""
        take_policy(policy, self.networks, self.filters, self.exploration_policy)
        self.clock.updates = policy["updates"]

    def sync(self) -> None:
        self.update_loop.take_newest()

    # state

    @property
    def filters(self) -> dict[str, Any]:
        """Input, output and pre-network filter by the names of these attributes."""
        return {name: getattr(self, name) for name in FILTERS}

    def get_state(self) -> dict[str, Any]:
        """Networks, optimizers, memory, filters, exploration, counters and random streams; not the episode in progress.

        A checkpoint holds it under these names.
        """
        self.update_loop.take_all()
        self._act_as_first()
        task = self.ap.task_parameters
        return {
            "networks": {name: network.get_state() for name, network in self.networks.items()},
            "memory": self.memory.get_state() if task is None or task.checkpoint_memory else None,
            "exploration": self.exploration_policy.get_state(),
            "filters": {name: one.get_state() for name, one in self.filters.items()},
            "rng": self.rng.bit_generator.state,
            "action_rng": self.spaces.action.rng.bit_generator.state,
            "books": self.signals.get_state(),
            "clock": self.clock.get_state(),
            "counters": {name: getattr(self, name) for name in self.counters},
            "training_has_begun": self.training_has_begun,
            **({"batches": batches} if (batches := self.batches.get_state()) else {}),
            **self.learning.get_state(),
        }

    def _act_as_first(self) -> None:
        """Let states be the states of the first actor, whichever actor acted last."""
        if self.parallel is not None and self.parallel.index:
            self.parallel.enter(0)

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``, with a new episode."""
        self._act_as_first()
        for name, network in self.networks.items():
            network.set_state(state["networks"][name])
        if state["memory"] is not None and not self.evaluates_only:
            self.memory.set_state(state["memory"])
        self.exploration_policy.set_state(state["exploration"])
        for name, one in self.filters.items():
            one.set_state(state["filters"][name])
        self.rng.bit_generator.state = state["rng"]
        self.spaces.action.rng.bit_generator.state = state["action_rng"]
        self.signals.set_state(state["books"], with_unwritten=not self.evaluates_only)
        self.clock.set_state(state["clock"])
        for name in self.counters:
            setattr(self, name, state["counters"][name])
        # checkpoints from before there was a before_training do not say it
        self.training_has_begun = state.get("training_has_begun", self.clock.updates > 0)
        if "batches" in state:
            self.batches.set_state(state["batches"])
        self._last_row = self._row_number
        self.learning.set_state(state)

    def collect_savers(self, parent_path_suffix: str) -> SaverCollection:
        """Savers of the networks by themselves. A subclass adds savers of its own, which write into each checkpoint of
        the graph and read from it."""
        savers = SaverCollection()
        for network in self.networks.values():
            savers.update(network.collect_savers(f"{parent_path_suffix}/{self.name}"))
        return savers

    def fits(self) -> dict[str, str]:
        return {**super().fits(), **{f"network {name}": network.layout for name, network in self.networks.items()}}

    def close(self) -> None:
        """Write the last row."""
        self.signals.close()


def _mean(numbers: Any) -> float:
    # a row of the CSV asks, and np.mean takes 10 us for one number
    return float(numbers) if isinstance(numbers, (int, float)) else float(np.mean(numbers))
