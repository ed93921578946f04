"""An agent: it observes, acts, remembers and learns."""

from __future__ import annotations

import copy
from typing import Any, SupportsFloat

import numpy as np

from rl_coach.agents.agent_networks import AgentNetworks
from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.episode import EpisodeInProgress, attributes_set_by
from rl_coach.agents.core.evaluation_snapshot import BeforeEvaluation
from rl_coach.agents.core.experience import Experience, Played
from rl_coach.agents.core.learning import BatchLearning, Learning, Phases
from rl_coach.agents.core.parallel_episodes import ParallelEpisodes
from rl_coach.agents.core.requirements import Needs, require_fitting_networks, require_fitting_settings
from rl_coach.agents.core.sequence_replay import SequenceReplay
from rl_coach.agents.core.signals import Books
from rl_coach.agents.core.state import restore, state_of
from rl_coach.agents.core.update_loop import Outcome, UpdateLoop, columns_of
from rl_coach.agents.delegated_attributes import Delegated
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import (
    ActionInfo,
    ActionType,
    Batch,
    EnvResponse,
    RunPhase,
    StateType,
    Transition,
)
from rl_coach.exploration_policies.exploration_policy import make_exploration_policy
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter, filtered_spaces
from rl_coach.logger import screen
from rl_coach.spaces import GoalsSpace, SpacesDefinition
from rl_coach.utils import CoachError, Signal, dynamic_import_and_instantiate_module_from_params


class Agent(Needs, AgentNetworks):
    """Acts, observes, remembers and learns.

    A subclass gives an update rule (``make_update_rule``) and chooses actions (``choose_action``); or it overrides
    ``learn_from_batch`` and computes targets itself. What an agent does is spread over its parts: ``episode`` (the
    episode in progress), ``experience`` (the way into the memory), ``clock`` (when to learn), ``update_loop`` (how to
    learn) and ``books`` (what is written down).

    :param agent_parameters: all its settings; filters that are not set let everything through
    :param parent: the level manager or composite agent that holds it

    :cvar acting_networks: the networks that choose actions, None for all; others are never read between two phases
    :cvar learns_from_sequences: a batch is a stretch of an episode in order, which a recurrent network learns from
    :cvar learns_from_stored_states: the state that a recurrent network acted from is stored with each step, and
        sequences out of the memory are learned from the one before their first step
    :cvar recurrent_network: the network that may be recurrent; its state is the one that is stored
    :cvar learns_by_rule: it learns by its update rule, not by a ``learn_from_batch`` of its own
    :cvar learns_one_by_one: the data of an update depends on the networks, so that each is a call of its own
    :cvar most_updates_per_call: a phase of more updates makes several compiled calls; None for no bound
    :cvar trains_asynchronously: several workers of one machine may train it at once on weights that they share
    :cvar explores_by_parameter: the exploration policy's control parameter says how much the agent explores
    :cvar episode_class: the class of its episodes
    :cvar counters: attributes that count, which a checkpoint holds

    :ivar spaces: the environment's spaces behind the filters
    :ivar policy_spaces: those of the networks and of exploration, which may see actions in another form
    :ivar learning_periods: by network, the number of updates of which one teaches it; 1 for those that it leaves out
    :ivar sequences: draws what a recurrent network learns from out of the memory; None where single transitions are
    :ivar is_played_elsewhere: other processes play for it, and it learns from what they send (``take_in``)
    """

    acting_networks: tuple[str, ...] | None = None
    learns_from_sequences = False
    learns_from_stored_states = False
    recurrent_network = "main"
    learns_by_rule = True
    learns_one_by_one = False
    most_updates_per_call: int | None = None
    trains_asynchronously = False
    reason_to_act_alone: str | None = None
    explores_by_parameter = True
    episode_class: type[EpisodeInProgress] = EpisodeInProgress
    _attributes_of_episode: frozenset[str] = frozenset()
    counters: tuple[str, ...] = ("total_steps_counter", "current_episode", "training_iteration")

    def __init_subclass__(cls) -> None:
        """Find out, once for each class, by what it learns and which of its attributes belong to an episode."""
        super().__init_subclass__()
        if "learn_from_batch" in vars(cls):
            cls.learns_by_rule = False
        elif "make_update_rule" in vars(cls):
            cls.learns_by_rule = True
        if "reset_internal_state" in vars(cls):
            own = {
                name for name in attributes_set_by(cls.reset_internal_state)
                if not isinstance(getattr(cls, name, None), Delegated)
            }  # fmt: skip
            cls._attributes_of_episode = cls._attributes_of_episode | own

    def __init__(self, agent_parameters: AgentParameters, parent: Any = None):
        super().__init__()
        algorithm = agent_parameters.algorithm
        self.ap = agent_parameters
        self.parent = parent
        self.name = agent_parameters.name or "agent"
        self.full_name_id = agent_parameters.full_name_id = agent_parameters.full_name_id or self.name
        screen.announce(f"Creating agent - name: {self.name}")
        self.memory = dynamic_import_and_instantiate_module_from_params(agent_parameters.memory)
        self.input_filter = agent_parameters.input_filter or NoInputFilter()
        self.output_filter = agent_parameters.output_filter or NoOutputFilter()
        self.pre_network_filter = agent_parameters.pre_network_filter
        self.networks: dict[str, NetworkWrapper] = {}
        self.spaces: Any = None
        self.policy_spaces: Any = None
        self.environment_spaces: Any = None
        self.in_action_space = algorithm.in_action_space
        self.exploration_policy: Any = None
        self.learning_periods: dict[str, int] = {}
        self.is_recurrent = False
        self.sequences: SequenceReplay | None = None
        self.can_train = False
        self.acts_by_networks = True
        self.rng = np.random.default_rng()
        self._seeds = np.random.SeedSequence()

        self.episode = self.episode_class(algorithm)
        self.parallel: ParallelEpisodes | None = None
        self.clock = TrainingClock(algorithm, self.name)
        self.experience = Experience(self)
        self.books = Books(self)
        self.update_loop: Any = None
        self.learning: Learning = None  # type: ignore[assignment]
        self.total_steps_counter = 0
        self.current_episode = 0
        self.training_iteration = 0
        self._before_evaluation: BeforeEvaluation | None = None
        self.is_played_elsewhere = False
        self.evaluates_only = getattr(self.ap.task_parameters, "evaluate_only", None) is not None

        self.loss = self.register_signal("Loss")
        self.curr_learning_rate = self.register_signal("Learning Rate")
        self.unclipped_grads = self.register_signal("Grads (unclipped)")
        self.reward = self.register_signal("Reward", dump_one_value_per_episode=False, dump_one_value_per_step=True)
        self.shaped_reward = self.register_signal(
            "Shaped Reward", dump_one_value_per_episode=False, dump_one_value_per_step=True
        )
        self.discounted_return = self.register_signal("Discounted Return")

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
        self.spaces = filtered_spaces(spaces, self.input_filter, self.pre_network_filter, self.output_filter)
        self.policy_spaces = self.spaces
        if isinstance(self.in_action_space, GoalsSpace):
            self.in_action_space.set_target_space(spaces.state[self.in_action_space.goal_name])
        self.init_environment_dependent_modules()

    def init_environment_dependent_modules(self) -> None:
        """Build the exploration policy and the networks."""
        action_seed, exploration_seed = self._seeds.spawn(2)
        self.spaces.action.seed(action_seed)
        self.exploration_policy = make_exploration_policy(self.ap.exploration, self.policy_spaces.action, self.name)
        self.exploration_policy.seed(exploration_seed)
        require_fitting_settings(self)
        self.networks = self.create_networks()
        self.can_train = bool(self.networks)
        self.is_recurrent = any(network.is_recurrent for network in self.networks.values())
        if self.is_recurrent:
            self.check_recurrent_networks()
        self.update_loop = UpdateLoop(self)
        self.counts = _Clock(self)
        self.learning = self.make_learning()
        require_fitting_networks(self)
        self.initialize_session_dependent_components()
        if self.ap.visualization.print_networks_summary:
            for network in self.networks.values():
                print(network.summary())

    @property
    def recurrent_state(self) -> dict[str, np.ndarray]:
        """The recurrent network's state by the names of its parts; empty where there is none."""
        return self.networks[self.recurrent_network].online_network.recurrent_state

    def check_recurrent_networks(self) -> None:
        """
        :raises CoachError: a network is recurrent, and the agent cannot learn so
        """
        for name, network in self.networks.items():
            if network.is_recurrent and name != self.recurrent_network and self.learns_from_stored_states:
                raise CoachError(
                    f"network '{name}' of agent '{self.name}' is never asked when acting and so has no recurrent state "
                    f"to learn from: set middleware_parameters to FCMiddlewareParameters"
                )
        if not self.learns_from_sequences and not self.learns_from_stored_states:
            raise CoachError(
                f"agent '{self.name}' learns from single transitions, which a recurrent network cannot: "
                f"set middleware_parameters to FCMiddlewareParameters, or choose actor-critic, PPO or DQN"
            )

    def make_update_rule(self) -> UpdateRule:
        """The algorithm's update as a pure function; see ``rl_coach.architectures.update``."""
        raise NotImplementedError(f"{type(self).__name__} has no update rule: give it one, or a learn_from_batch")

    def register_signal(
        self, signal_name: str, dump_one_value_per_episode: bool = True, dump_one_value_per_step: bool = False
    ) -> Signal:
        """A signal for the CSV: statistics over each episode, or its value at each step in the in-episode CSV."""
        return self.books.register(signal_name, dump_one_value_per_episode, dump_one_value_per_step)

    def setup_logger(self) -> None:
        """Open the CSVs."""
        self.ap.full_name_id = self.full_name_id
        if self.ap.task_parameters is not None:
            stem = ".".join((*self.owners[:2], *self.full_name_id.split("/")))
            self.books.open_files(self.ap.task_parameters, self.ap.visualization, stem, self.run_parameters)

    # the episode

    @property
    def phase(self) -> RunPhase:
        """Current phase of the run. An evaluation leaves no trace: the streams, the filters' statistics and the signals
        go on afterwards as if there had been none."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        is_built = self.exploration_policy is not None
        if is_built and value is RunPhase.TEST and self._before_evaluation is None:
            self._before_evaluation = BeforeEvaluation(self)
        if self._phase is not value:
            self.reset_evaluation_state(value)
        self._phase = value
        self.acts_by_networks = value is not RunPhase.HEATUP or self.ap.algorithm.heatup_using_network_decisions
        if is_built:
            self.exploration_policy.change_phase(value)
        if value is not RunPhase.TEST and self._before_evaluation is not None:
            self._before_evaluation.restore()
            self._before_evaluation = None

    def seed_evaluation(self, seed: np.random.SeedSequence) -> None:
        assert self._before_evaluation is not None
        self._before_evaluation.seed(seed)

    def reset_evaluation_state(self, val: RunPhase) -> None:
        """Begin an evaluation if ``val`` is ``TEST``; otherwise close the one that ran and log its results."""
        if val is RunPhase.TEST and self._phase is not RunPhase.TEST and self.ap.is_a_highest_level_agent:
            screen.announce(f"{self.name}: Starting evaluation phase")
        self.books.end_evaluation(is_complete=val is not RunPhase.TEST)

    def reset_internal_state(self) -> None:
        """Begin an episode."""
        self.books.begin_episode()
        goal, self.episode = self.episode.incoming_goal, self.episode_class(self.ap.algorithm)
        self.episode.incoming_goal = goal
        self.input_filter.reset()
        self.output_filter.reset()
        self.exploration_policy.reset()
        for network in self.networks.values():
            network.online_network.reset_internal_memory()

    def put_episode_aside(self) -> EpisodeInProgress:
        """The present episode, for ``take_up_episode`` to go on with after another one, or in another run."""
        self.episode.gather(self, self._attributes_of_episode)
        return self.episode

    def take_up_episode(self, episode: EpisodeInProgress, is_restored: bool = False) -> None:
        """Go on with an episode that was put aside."""
        self.episode = episode
        episode.spread(self)
        if is_restored:
            self.books.resume_steps()
            self.experience.go_on_with(episode)

    def observe(self, env_response: EnvResponse) -> bool:
        """Take in what the environment answered: the first state of an episode, or the outcome of the last action.

        :return: True if the episode is over
        """
        if self._phase is RunPhase.TEST:
            filtered = self.input_filter.filter_evaluated(env_response)
        else:
            filtered = self.input_filter.filter(env_response, deep_copy=False)[0]
        episode = self.episode
        if episode.incoming_goal is not None:
            filtered = copy.copy(filtered)
            filtered.next_state = {**filtered.next_state, "desired_goal": episode.incoming_goal}
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
        episode.curr_state = filtered.next_state
        episode.total_reward += env_response.reward
        episode.total_shaped_reward += filtered.reward
        self.reward.add_sample(env_response.reward)
        self.shaped_reward.add_sample(filtered.reward)
        return self.observe_transition(self.update_transition_before_adding_to_replay_buffer(transition))

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        """Change a transition before it is stored; nothing by default."""
        return transition

    def observe_transition(self, transition: Transition) -> bool:
        """Store a transition. :return: True if it ended the episode"""
        if self._phase is not RunPhase.TEST:
            self.experience.add(transition, self.episode)
        if self.books.writes_steps:
            self.update_step_in_episode_log()
        return bool(transition.game_over)

    def handle_episode_ended(self) -> None:
        """Close the episode: compute returns, store it where memories keep episodes, and write its row."""
        episode = self.episode
        episode.buffer.is_complete = True
        if self._phase is RunPhase.TEST:
            self.books.evaluation.add(episode.report(self._phase), self.spaces.reward.reward_success_threshold)
        else:
            discounted_return = self.experience.finish(episode)
            if discounted_return is not None:
                self.discounted_return.add_sample(discounted_return)
        if self._phase is not RunPhase.TEST or self.evaluates_only:
            self.current_episode += 1
            self.update_log()
        if screen.is_read_by_programs and self.ap.is_a_highest_level_agent:
            self.log_to_screen()

    def replace_last_action(self, action_info: ActionInfo) -> None:
        """Remember what the environment got instead of this agent's choice, as an action of the agent's own space."""
        self.episode.last_action_info = self.output_filter.reverse_filter(action_info)

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
        if self.is_recurrent and self.learns_from_stored_states:
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
        return self.output_filter.filter(chosen)

    def _remember_present_state(self) -> None:
        """Show the present state to a recurrent network that was not asked, as for a random action."""
        name = self.recurrent_network
        network = self.networks[name].online_network
        if network.recurrent_state is self.episode.acted_from:
            state = self.run_pre_network_filter_for_inference(self.episode.curr_state, False)
            network.predict(self.prepare_batch_for_inference(state, name))

    def count_played(self, steps: int) -> None:
        """Count steps in the environment, of this process or of another one that played for this agent."""
        self.total_steps_counter += steps

    def acting_prediction(self, curr_state: StateType) -> Any:
        """The networks' prediction for the state to act in; where several are acted in at once, they are asked once."""
        if self.parallel is not None and self.parallel.are_asked_together:
            return self.parallel.prediction
        return self.predict_states([curr_state])[0]

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        """Choose an action for one state, observations without a batch dimension."""
        raise NotImplementedError(f"{type(self).__name__} does not choose actions")

    # learning

    def make_learning(self) -> Learning:
        """The part that decides when the agent learns, from what, and in how many updates: in phases on batches from
        the memory by default. Called once, when the networks are there."""
        return BatchLearning(self.phases(), self.update_loop)

    def phases(self) -> Phases:
        """When training phases begin, for a part that learns in phases."""
        return Phases(
            self.counts,
            self.ap.algorithm,
            self.memory,
            start=lambda: self.start_phase(),
            is_in_episode=self._is_in_episode,
            is_on_policy=lambda: self.is_on_policy,
        )

    def start_phase(self) -> int:
        """Begin the training phase that is due. :return: number of its updates"""
        return self.clock.start_phases(self.total_steps_counter, self.current_episode, self.updates_left)

    def _is_in_episode(self) -> bool:
        # of what is played in several environments, or by other processes, so much is learned from as is there
        is_cut = self.is_played_elsewhere or (self.parallel is not None and self.is_on_policy)
        return not is_cut and not self.episode.buffer.is_complete

    def should_train(self) -> bool:
        """True if the next call of ``train`` would learn."""
        return self.can_train and self.learning.is_due()

    def train(self) -> SupportsFloat:
        """Learn, if it is time, as ``learning`` does.

        :return: the loss; reading it waits for the updates
        """
        if not self.should_train():
            return 0.0
        loss = self.learning.learn(self.updates_left)
        self.post_training_commands()
        return loss

    def learn_from_batch(self, batch: Batch) -> Outcome:
        """Update the networks on a batch, which the pre-network filters have passed already.

        An agent that overrides this computes its targets itself, from ``self.networks[...].online_network.predict``,
        and calls ``train_and_sync_networks``.

        :return: the loss, each network's loss, and the gradients' norm before clipping
        """
        return self.update_loop.update_once(self.update_loop.columns(batch), batch)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns of a batch that the update rule needs; see ``Learner.train``."""
        return columns_of(batch, self.update_loop.input_names, self.ap.algorithm.discount)

    def learning_scalars(self) -> dict[str, float]:
        """Numbers that change between updates and that the rule needs."""
        return {}

    def sync(self) -> None:
        self.update_loop.take_newest()

    def post_training_commands(self) -> None:
        """Called after a training phase; nothing is to be done by default."""

    def take_in(self, played: Played) -> None:
        """Take in what another process has played for this agent, as if it had been played here.

        :raises CoachError: its columns are not those that the memory holds; nothing has been changed then
        """
        self.learning.require_fitting(played)
        self.experience.take_in(played)
        if self._phase is not RunPhase.HEATUP:
            self.learning.take_in(played)

    def cut_episode(self) -> None:
        self.experience.cut(self.episode)

    def set_incoming_directive(self, action: ActionType) -> None:
        """Take a goal from the level above: until the next one it is the ``desired_goal`` of the agent's states. The
        environment's own state, which others see too, stays as it is."""
        self.episode.incoming_goal = np.asarray(action)
        self.curr_state = {**self.curr_state, "desired_goal": self.episode.incoming_goal}

    # state

    def get_state(self) -> dict[str, Any]:
        """Networks, optimizers, memory, filters, exploration, counters and random streams."""
        self.update_loop.take_all()
        return {**state_of(self), **self.learning.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``, with a new episode."""
        restore(self, state)
        self.learning.set_state(state)

    def fits(self) -> dict[str, str]:
        return {**super().fits(), **{f"network {name}": network.layout for name, network in self.networks.items()}}

    def close(self) -> None:
        """Write the last row."""
        self.books.close()


class _Clock:
    def __init__(self, agent):
        self._agent = agent

    steps = property(lambda self: self._agent.total_steps_counter)
    episodes = property(lambda self: self._agent.current_episode)
    last_phase = property(lambda self: self._agent.clock.last_phase)
    updates = property(
        lambda self: self._agent.training_iteration,
        lambda self, value: setattr(self._agent, "training_iteration", value),
    )

    def is_due(self, in_episode=False):
        return self._agent.clock.is_due(self._agent.total_steps_counter, self._agent.current_episode, in_episode)
