"""The base class of all agents."""

from __future__ import annotations

from typing import Any, Callable, Iterable, SupportsFloat

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.algorithms import unmet_by_actions
from rl_coach.agents.compat import CoachNames
from rl_coach.agents.core import agent_state, building, inference, transport
from rl_coach.agents.core.actor import Actor
from rl_coach.agents.core.actors import Actors
from rl_coach.agents.core.batches import BatchSource, DataSetPass, MemoryBatches
from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.curiosity import Curiosity, add_networks, unmet_by_curiosity
from rl_coach.agents.core.episode import EpisodeInProgress, EpisodeReport, let_checkpoints_hold
from rl_coach.agents.core.episode_attributes import EpisodeAttributes
from rl_coach.agents.core.evaluation import EvaluationInProgress
from rl_coach.agents.core.experience import Experience, ExperienceChunk
from rl_coach.agents.core.finite_watch import FiniteWatch
from rl_coach.agents.core.inference import StateColumns
from rl_coach.agents.core.learning import Learning
from rl_coach.agents.core.overrides import HOOKS, is_replaced
from rl_coach.agents.core.recorder import Recorder
from rl_coach.agents.core.requirements import requirements_of
from rl_coach.agents.core.signals import RowUnit, Signals
from rl_coach.agents.core.update_loop import BatchLearning, DataSetLearning, Outcome
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
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter
from rl_coach.logger import screen
from rl_coach.saver import SaverCollection
from rl_coach.spaces import ActionSpace, GoalsSpace, SpacesDefinition
from rl_coach.utilities.errors import refuse
from rl_coach.utilities.overrides import coachs_class, overridden
from rl_coach.utilities.requirements import check
from rl_coach.utils import Signal, dynamic_import_and_instantiate_module_from_params


class Agent(CoachNames, AgentInterface):
    """Base class of all agents. An agent acts, observes, stores transitions and learns.

    A subclass defines an update rule (``make_update_rule``) and chooses actions (``choose_action``). Instead of the
    rule, a subclass may override ``learn_from_batch`` and compute targets itself. A subclass may declare requirements
    (``AgentRequirements``) for its memory, exploration policy and networks.

    The agent consists of parts. ``actor`` acts in the present episode; ``parallel`` holds all actors if there are
    several episodes. ``experience`` stores transitions. ``clock`` counts and decides when to learn, ``update_loop``
    updates the networks. ``signals`` and ``recorder`` write the rows of the CSV.

    :param agent_parameters: all settings; a filter that is not set changes nothing
    :param parent: the level manager or composite agent that contains this agent

    :cvar acting_networks: the networks that choose actions, None for all. The agent does not read the other networks
        between training phases
    :cvar acts_by_targets: True if the target networks act
    :cvar learns_from_sequences: True if a batch is a segment: consecutive steps of one episode, as a recurrent network
        needs
    :cvar learns_from_stored_states: True if each transition contains the recurrent state before its action. Sequences
        from the memory start from the stored state of their first step
    :cvar recurrent_network: name of the network that may be recurrent; transitions contain the state of this network
    :cvar learns_one_by_one: True if each update is a separate compiled call, because ``columns_of_networks`` needs the
        newest networks
    :cvar most_updates_per_call: the largest number of updates in a compiled call; a longer phase makes several calls.
        None for no limit
    :cvar supports_curiosity: True if intrinsic rewards can be added: the update rule uses the rewards of single steps,
        or the agent adds intrinsic rewards itself
    :cvar learns_from_recorded_steps: True if the memory may store steps that other agents or programs have played
    :cvar trains_asynchronously: True if several workers of one machine may train the agent at once, on shared weights
    :cvar explores_by_parameter: True if the control parameter of the exploration policy measures how much the agent
        explores. The parameter is then printed and logged
    :cvar batch_network: name of the network with the ``batch_size`` of the updates; None for the first network
    :cvar episode_class: the class of the agent's episodes; its fields belong to one episode
    :cvar episode_attributes: the names of the agent's attributes that belong to an episode, () for none. A subclass
        that overrides ``reset_internal_state`` or ``__init__`` must set ``episode_attributes`` or ``episode_class``, or
        it cannot act in several copies of the environment
    :cvar row_unit: the unit of a row in its CSV: an episode, an epoch (``batches`` makes passes over a data set) or
        ``updates_per_row`` updates. Rows of epochs and updates are written after the training phase that completes them
    :cvar counters: names of attributes that count over all episodes; checkpoints store them

    :ivar spaces: the environment's spaces after the filters
    :ivar memory_spaces: the spaces of stored transitions, before the pre-network filter
    :ivar policy_spaces: the spaces of networks and exploration, which may have actions in another form
    :ivar networks: the agent's networks by name
    :ivar pre_network_filter: changes states before they enter the networks
    :ivar batches: the source of batches for updates
    :ivar learning_periods: a dict from a network to k: the network learns in every k-th update. A network without an
        entry learns in each update
    :ivar parallel: the actors in several copies of the environment; None if the agent acts in one
    :ivar curiosity: adds intrinsic rewards; None if ``curiosity`` of the agent's parameters is None
    :ivar hooks: names of those methods in ``HOOKS`` that a subclass or the instance overrides; computed when a phase
        begins
    :ivar training_has_begun: True if ``before_training`` was called, in this run or before the checkpoint that it
        resumed from
    :ivar is_in_evaluation: True in an evaluation (phase ``TEST``)
    :ivar is_played_elsewhere: True if other processes play, and the agent learns from their steps (``take_in``)
    """

    acting_networks: tuple[str, ...] | None = None
    acts_by_targets = False
    learns_from_sequences = False
    learns_from_stored_states = False
    recurrent_network = "main"
    learns_one_by_one = False
    most_updates_per_call: int | None = None
    trains_asynchronously = False
    supports_curiosity = False
    reason_to_act_alone: str | None = None
    learns_from_recorded_steps = True
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
        input_filter = agent_parameters.input_filter or NoInputFilter()
        output_filter = agent_parameters.output_filter or NoOutputFilter()
        let_checkpoints_hold(self.episode_class)
        self.actor = Actor(self, self.episode_class(algorithm), input_filter, output_filter, None)
        self.parallel: Actors | None = None
        self.pre_network_filter = agent_parameters.pre_network_filter
        self.networks: dict[str, NetworkWrapper] = {}
        self.spaces: Any = None
        self.policy_spaces: Any = None
        self.memory_spaces: Any = None
        self.environment_spaces: Any = None
        self.in_action_space = algorithm.in_action_space
        self.learning_periods: dict[str, int] = {}
        self.is_recurrent = self.stores_recurrent_states = self.can_train = self.is_in_evaluation = False
        self._trains_by_coach_names = is_replaced(self, "should_train")
        self.hooks = overridden(self, Agent, HOOKS)
        self.acts_by_networks = True
        self.rng = np.random.default_rng()
        self._seeds = np.random.SeedSequence()

        self._evaluation: EvaluationInProgress | None = None
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
        self.batches: BatchSource = MemoryBatches(self.memory)
        self.curiosity: Curiosity | None = None
        if agent_parameters.curiosity is not None:
            self.reason_to_act_alone = "its curiosity only measures steps that this process plays: leave out -dc and -n"
        self.update_loop: Any = None
        self.learning: Any = None
        self.recorder = Recorder(self)
        self.episode_state = EpisodeAttributes(self)
        self.is_played_elsewhere = self.training_has_begun = False
        task = agent_parameters.task_parameters
        self.evaluates_only = task is not None and task.num_evaluation_steps is not None

    # building

    def seed(self, seed: Any) -> None:
        """Seed all random streams of the agent, its memory and its exploration."""
        self._seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        own, memory = self._seeds.spawn(2)
        self.rng = np.random.default_rng(own)
        self.memory.seed(memory)

    def set_environment_parameters(self, spaces: SpacesDefinition) -> None:
        """Compute the spaces after the filters from the environment's spaces, and build the parts that depend on
        them."""
        building.set_spaces(self, spaces)
        check(self.ap, self.name)
        refuse(self.unmet_by_actions())
        refuse(self.unmet_by_settings())
        self.init_environment_dependent_modules()

    def unmet_by_actions(self) -> Iterable[str]:
        """A message if the agent does not support the actions after the output filter. It names agents that do."""
        environment = getattr(self.parent, "real_environment", None)
        level = getattr(environment, "env_id", None) or "the environment"
        return unmet_by_actions(self.ap, self.spaces.action, level)

    def unmet_by_settings(self) -> Iterable[str]:
        """The unmet requirements on the spaces, the settings and the memory, each as one line with advice. Called
        before the networks exist. A subclass may add requirements."""
        yield from requirements_of(self).unmet_by_settings(self.name, self.ap, self.memory, self.spaces.action)
        yield from building.unmet_by_spaces(self)
        yield from building.unmet_by_contexts(self)
        yield from building.unmet_by_acting_beside_learning(self)
        yield from unmet_by_curiosity(self)

    def unmet_by_networks(self) -> Iterable[str]:
        """The unmet requirements on the networks and the exploration policy, each as one line with advice."""
        return building.unmet_by_networks(self)

    def init_environment_dependent_modules(self) -> None:
        """Build the exploration policy and the networks."""
        action_seed, exploration_seed = self._seeds.spawn(2)
        self.spaces.action.seed(action_seed)
        self.exploration_policy = make_exploration_policy(self.ap.exploration, self.policy_spaces.action, self.name)
        self.exploration_policy.seed(exploration_seed)
        if self.ap.is_batch_rl_training:
            self.remember_probabilities()
        add_networks(self)
        self.networks = self.create_networks()
        self.can_train = bool(self.networks)
        if self.ap.algorithm.act_beside_learning:
            for name in self.acting_networks or self.networks:
                self.networks[name].state.keeps_for_acting = True
        self.is_recurrent = any(network.is_recurrent for network in self.networks.values())
        refuse(self.unmet_by_networks())
        self.stores_recurrent_states = self.is_recurrent and self.learns_from_stored_states
        building.add_learning(self, self._seeds)
        self.initialize_session_dependent_components()
        if self.ap.visualization.print_networks_summary:
            for network in self.networks.values():
                print(network.summary())

    def create_networks(self) -> dict[str, NetworkWrapper]:
        """The agent's networks by name."""
        return building.make_networks(self, self._seeds)

    def make_batches(self) -> BatchSource:
        """The source of batches for updates. The default source samples the memory; in batch reinforcement learning, it
        makes passes over the memory. Called once, after the networks exist. ``core/batches.py`` can mix sources."""
        return DataSetPass(self.memory) if self.ap.is_batch_rl_training else MemoryBatches(self.memory)

    def make_update_rule(self) -> UpdateRule | Stages:
        """The algorithm's update as a pure function, or a pure function for each of its stages; see
        ``rl_coach.architectures.update``."""
        raise NotImplementedError(
            f"{type(self).__name__} has no update rule: define make_update_rule, or override learn_from_batch"
        )

    def initialize_session_dependent_components(self) -> None:
        """Fill the memory. Called after the networks are created: a subclass may add other work that needs the
        networks."""
        self.load_memory_from_file()

    def load_memory_from_file(self) -> None:
        """Fill the memory with the recorded transitions in ``load_memory_from_file_path``, if it is set."""
        recorded = self.ap.algorithm.load_memory_from_file_path or self.ap.memory.load_memory_from_file_path
        if recorded is not None:
            self.experience.load(recorded, self.input_filter, self.output_filter, self.memory_spaces)

    def remember_probabilities(self) -> None:
        """Store the probabilities of the actions with each step from now on. Off-policy evaluation needs them. An
        epsilon-greedy policy then predicts at each step, also for random actions."""
        self.experience.remembers_action_info = True
        self.exploration_policy.tells_all_probabilities = True

    def play_in_copies(self, count: int) -> Actors:
        """Act in several copies of the environment from now on, with an episode in each.

        :raises CoachError: if the agent does not declare which attributes belong to an episode
        """
        self.episode_state.require_for_copies()
        self.clock.steps_at_once = count
        self.parallel = Actors(self, count)
        return self.parallel

    # records

    def register_signal(
        self, signal_name: str, dump_one_value_per_episode: bool = True, dump_one_value_per_step: bool = False
    ) -> Signal:
        """Create a signal for the CSVs: its statistics over each episode, or its value at each step (in-episode
        CSV)."""
        return self.signals.register(signal_name, dump_one_value_per_episode, dump_one_value_per_step)

    def listen_to_rows(self, listener: Callable[[dict[str, Any]], None]) -> None:
        self.signals.logger.listener = listener

    def setup_logger(self) -> None:
        """Open the CSVs."""
        self.ap.full_name_id = self.full_name_id
        self.recorder.open_files()

    def update_log(self) -> None:
        """Write the row of the episode that has ended."""
        self.recorder.write_episode(self.episode.report(self._phase))

    @property
    def writes_steps(self) -> bool:
        """True if the steps of the present episode have rows. Only steps in the first copy of the environment have
        rows."""
        return self.signals.writes_steps and (self.parallel is None or self.parallel.index == 0)

    def get_success_rate(self) -> float:
        """The share of episodes in the last evaluation with a reward of at least the environment's threshold."""
        return self.signals.last_success_rate

    # phases

    @property
    def phase(self) -> RunPhase:
        """Current phase of the run. Setting ``TEST`` begins an evaluation. After the evaluation, training continues as
        if there had been no evaluation.
        """
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        is_built = self.exploration_policy is not None
        if is_built and value is RunPhase.TEST and self._evaluation is None:
            self._evaluation = EvaluationInProgress(self)
        if self._phase is not value:
            self.reset_evaluation_state(value)
        self._phase, self.is_in_evaluation = value, value is RunPhase.TEST
        # decided once in each phase, because each step reads them
        self._trains_by_coach_names = is_replaced(self, "should_train")
        self.hooks = overridden(self, Agent, HOOKS)
        self.acts_by_networks = value is not RunPhase.HEATUP or self.ap.algorithm.heatup_using_network_decisions
        for network in self.networks.values():
            network.online_network.waits_for_updates = self.is_in_evaluation
        if is_built:
            self.exploration_policy.change_phase(value)
            for policy in () if self.parallel is None else self.parallel.exploration_policies:
                if policy is not self.exploration_policy:
                    policy.change_phase(value)
        if value is not RunPhase.TEST and self._evaluation is not None:
            self._evaluation.end()
            self._evaluation = None

    def seed_evaluation(self, seed: np.random.SeedSequence) -> None:
        assert self._evaluation is not None
        self._evaluation.seed(seed)

    def reset_evaluation_state(self, val: RunPhase) -> None:
        """Begin an evaluation if ``val`` is ``TEST``; otherwise close the last evaluation and log its results."""
        self.recorder.begin_phase(self._phase, val)

    # the episode

    def begin_episode(self) -> None:
        """Begin an episode with ``reset_internal_state``. Attributes that an override of this method changes belong to
        an episode, unless they are ``counters``."""
        self.episode_state.begin_episode()

    def reset_internal_state(self) -> None:
        self.actor.begin()

    def put_episode_aside(self) -> EpisodeInProgress:
        return self.actor.put_aside()

    def take_up_episode(self, episode: EpisodeInProgress, is_restored: bool = False) -> None:
        self.actor.take_up(episode)
        if is_restored:
            self.episode_state.restore(episode.attributes)
            self.signals.resume_steps(self.clock.episodes)
            self.experience.go_on_with(episode)

    def observe(self, env_response: EnvResponse) -> bool:
        return self.actor.observe(env_response)

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        """Change a transition before it is stored; nothing by default."""
        return transition

    def observe_transition(self, transition: Transition) -> bool:
        """Store a transition. :return: True if it ended the episode"""
        if not self.is_in_evaluation:
            self.experience.add(transition, self.episode)
            if self.curiosity is not None:
                self.curiosity.see_one(transition, 0 if self.parallel is None else self.parallel.index)
        if self.signals.writes_steps and self.writes_steps:
            self.update_step_in_episode_log()
        return bool(transition.game_over)

    def handle_episode_ended(self) -> None:
        self.actor.end()

    def cut_episode(self) -> None:
        """Store the steps of the present episode so far as a truncated episode. Later steps form a separate episode."""
        self.experience.cut(self.episode, self.recurrent_state)

    def replace_last_action(self, action_info: ActionInfo) -> None:
        self.actor.replace_last_action(action_info)

    def set_incoming_directive(self, action: ActionType | Directive) -> None:
        self.actor.set_directive(Directive.of(action))

    # acting

    def act(self, action: ActionType | None = None) -> ActionInfo | None:
        if self.ap.algorithm.num_consecutive_playing_steps.num_steps == 0 and self._phase is RunPhase.TRAIN:
            return None
        if not self.is_in_evaluation or self.evaluates_only:
            self.count_played(1)
        return self.actor.act(action)

    def count_played(self, steps: int) -> None:
        """Count steps in the environment. This process or another process has played them for this agent."""
        self.clock.steps += steps

    def note_action(self, chosen: ActionInfo) -> None:
        """Called after each action of an agent that stores recurrent states, also if the action was not chosen by the
        agent. The network may need the action at the next step. Does nothing by default.
        """

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        """Choose an action for one state. The observations of the state have no batch dimension."""
        raise NotImplementedError(f"{type(self).__name__} must define choose_action")

    @property
    def chooses_in_columns(self) -> bool:
        """True if one of Coach's classes defines ``choose_actions``, and no subclass of it in Coach overrides a method
        for single episodes. ``override_that_keeps_off`` checks the overrides of users."""
        kind: Any = coachs_class(type(self))
        return kind.choose_actions is not Agent.choose_actions and not is_replaced(kind, "choose_actions")

    def choose_actions(self, states: StateColumns) -> np.ndarray:
        """Choose the actions [N, ...] of several actors in one pass, with the same results as ``choose_action``.

        :param states: [N, ...] by name, after the agent's filters
        """
        raise NotImplementedError(f"{type(self).__name__} chooses one action at a time")

    def acting_prediction(self, curr_state: StateType) -> Any:
        """The networks' prediction for the state to act in. With several actors, one call predicts for all of them."""
        if self.parallel is not None and self.parallel.are_asked_together:
            return self.parallel.prediction
        return self.predict_states([curr_state])[0]

    def predict_states(self, states: list[StateType]) -> Any:
        """The networks' predictions that ``choose_action`` needs, for each of several states."""
        raise NotImplementedError(f"{type(self).__name__} must define predict_states")

    def prepare_batch_for_inference(
        self, states: StateType | list[StateType], network_name: str
    ) -> dict[str, np.ndarray]:
        """The inputs of a network, [B, ...] by name, for one state, a list of states or ``StateColumns``. Inputs that
        the states do not have are left out.
        """
        names = self.networks[network_name].input_names
        if isinstance(states, StateColumns):
            return {name: states[name] for name in names if name in states}
        states = states if isinstance(states, list) else [states]
        present = [name for name in names if name in states[0]]
        if len(states) == 1:
            return {name: np.asarray(states[0][name])[None] for name in present}
        return {name: np.stack([np.asarray(state[name]) for state in states]) for name in present}

    def run_pre_network_filter_for_inference(
        self, state: StateType, update_filter_internal_state: bool = True
    ) -> StateType:
        """The state after the pre-network filter."""
        if not self.pre_network_filter.observation_filters:
            return state
        return inference.filtered(self, state, update_filter_internal_state and not self.is_in_evaluation)

    def get_predictions(self, states: dict[str, np.ndarray], prediction_type: type[PredictionType]) -> Any:
        """The predictions for states [B, ...], for another agent.

        :raises CoachError: if no network predicts this type
        """
        return predictions_of(self.networks, states, prediction_type)

    @property
    def recurrent_state(self) -> dict[str, np.ndarray]:
        """The recurrent network's state by the names of its parts; empty without a recurrent network."""
        network = self.networks.get(self.recurrent_network)
        return {} if network is None else network.online_network.recurrent_state

    # learning

    @property
    def learns_by_rule(self) -> bool:
        """True if the agent learns with its update rule, not with an overridden ``learn_from_batch``."""
        return not is_replaced(self, "make_update_rule")

    @property
    def decides_on_targets(self) -> bool:
        """True if ``targets_due`` decides when target networks are updated, and not the clock."""
        return is_replaced(self, "decides_on_targets")

    def targets_due(self) -> bool:
        """True if the target networks must be updated now. True also starts the next period."""
        return self._should_update_online_weights_to_target()

    def make_learning(self) -> Learning:
        """The part that decides when and from which experience the agent learns: in phases, or in epochs in batch
        reinforcement learning. Called once, when the networks exist."""
        if isinstance(self.batches, DataSetPass) and self.ap.is_batch_rl_training:
            return DataSetLearning(self)
        return BatchLearning(self)

    def should_train(self) -> bool:
        if self._trains_by_coach_names:
            return self.can_train and bool(self._should_train())
        return self.can_train and self.learning.is_due()

    def train(self) -> SupportsFloat:
        """Make the updates that are due. The first call in the training phase begins with ``before_training``.

        :return: the loss; its conversion to float waits for the updates
        """
        if not self.training_has_begun:
            self.begin_training_if_due()
        if not self.should_train():
            return 0.0
        loss = self.learning.learn(self.updates_left)
        if "post_training_commands" in self.hooks:
            self.post_training_commands()
        if self.row_unit is not RowUnit.EPISODE:
            self.recorder.write_row_if_due()
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
        """Called once, when training begins after the heatup, and not again in a resumed run. Does nothing by default.

        Updates that this method makes with ``update_loop`` count as training steps. In a distributed run, the trainer
        calls this method. If workers learn on shared weights, each worker calls it.
        """

    def learn_from_batch(self, batch: Batch) -> Outcome:
        """Update the networks on a batch. The batch has already passed the pre-network filters.

        An agent that overrides this method computes its targets itself, from
        ``self.networks[...].online_network.predict``, and calls ``train_and_sync_networks``.

        :return: the loss, each network's loss, and the gradients' norm before clipping
        """
        return self.update_loop.update_once(self.update_loop.columns(batch), batch)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns of a batch that the update rule needs, [B, ...] by name; see ``Learner.train``."""
        names, discount = self.update_loop.input_names, self.ap.algorithm.discount
        columns = {f"states/{name}": batch.state_columns[name] for name in names}
        columns |= {f"next_states/{name}": batch.next_state_columns[name] for name in names}
        columns["actions"] = batch.action_column
        columns["rewards"] = batch.reward_column
        # only termination ends the return: a truncated episode bootstraps from its next state
        over_steps = discount if batch.n_step_column is None else discount**batch.n_step_column
        columns["discounts"] = (over_steps * (1.0 - batch.terminated_column)).astype(np.float32)
        weights = batch.info_columns.get("weight")
        columns["weights"] = np.ones(len(batch.reward_column), np.float32) if weights is None else weights
        return columns | self.columns_of_networks(batch) if self.learns_one_by_one else columns

    def columns_of_networks(self, batch: Batch) -> dict[str, np.ndarray]:
        """Additional columns, computed by the networks before the update. Called if ``learns_one_by_one`` is True."""
        return {}

    def learning_scalars(self) -> dict[str, float]:
        """Scalars of the rule that change between updates, by name."""
        return {}

    def post_training_commands(self) -> None:
        """Called after a training phase. Does nothing by default."""

    # loops that are compiled as a whole

    def why_not_compiled(self, num_copies: int, actions: ActionSpace, heats_up: bool) -> str | None:
        """The reason why the agent has no compiled loop, None if it has one. Called before the networks exist.

        :param num_copies: the number of copies of the environment
        :param actions: the environment's action space
        :param heats_up: True if the run begins with a heatup
        """
        return f"{type(self).__name__} has no compiled form"

    def make_compiled(self, random: Any, num_copies: int) -> CompiledAgent:
        """The agent's part in a compiled loop. Only called if ``why_not_compiled`` is None.

        :param random: the framework's random functions, with the names of ``jax.random``
        :param num_copies: the number of copies of the environment
        """
        raise NotImplementedError(f"{type(self).__name__} has no compiled form")

    def record_played(self, report: EpisodeReport, discounted_return: float) -> None:
        """Record an episode that was played without an ``Actor``, such as in a compiled loop. The clock has already
        counted its steps."""
        self.signals.discounted_return.add_sample(discounted_return)
        self.clock.episodes += 1
        self.recorder.report(report)

    def record_evaluated(self, steps: int, reward: float, shaped_reward: float) -> None:
        """Set the length and the rewards of the present evaluation episode. A compiled call has played the episode from
        its beginning.

        :param reward: the total reward
        :param shaped_reward: the total reward after the filters
        """
        self.episode.steps, self.episode.total_reward = steps, reward
        self.episode.total_shaped_reward = shaped_reward

    def take_in(self, played: ExperienceChunk) -> None:
        """Store and count the steps of another process as if this agent had played them; see ``transport.take_in``."""
        transport.take_in(self, played)

    def acting_policy(self) -> dict[str, Any]:
        """The policy that another process needs to act as this agent, as plain data."""
        return transport.policy_of(self)

    def take_policy(self, policy: dict[str, Any]) -> None:
        """Act with the policy that ``acting_policy`` returned in another process."""
        transport.take_policy(self, policy)

    def sync(self) -> None:
        self.update_loop.take_newest()

    # state

    @property
    def filters(self) -> dict[str, Any]:
        """The input, output and pre-network filters, by the names of the agent's attributes."""
        return {name: getattr(self, name) for name in transport.FILTERS}

    def get_state(self) -> dict[str, Any]:
        """The state of networks, optimizers, memory, filters, exploration, counters and random streams, by name, as a
        checkpoint stores it.

        The episode in progress is not included.
        """
        return agent_state.state_of(self)

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that ``get_state`` returned. The next step must begin a new episode."""
        agent_state.restore(self, state)

    def collect_savers(self, parent_path_suffix: str) -> SaverCollection:
        """The savers of the networks. A subclass may add savers. A saver writes files next to each checkpoint, and
        reads them when the run resumes."""
        savers = SaverCollection()
        for network in self.networks.values():
            savers.update(network.collect_savers(f"{parent_path_suffix}/{self.name}"))
        return savers

    def fits(self) -> dict[str, str]:
        return {**super().fits(), **{f"network {name}": network.layout for name, network in self.networks.items()}}

    def close(self) -> None:
        """Write the last row of the CSVs."""
        self.signals.close()
