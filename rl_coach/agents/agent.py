"""What all agents share: observing, acting, storing, learning at the right times, and keeping the books."""

from __future__ import annotations

import copy
from functools import cached_property, partial
from typing import Any, NamedTuple, SupportsFloat

import numpy as np

from rl_coach.agents import episode_state
from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.lanes import Lanes
from rl_coach.architectures.learner import Learner, LearningResult
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.packing import pad
from rl_coach.architectures.update import TrainingStep, UpdateRule
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import (
    ActionInfo,
    ActionProbabilities,
    ActionType,
    Batch,
    CsvDataset,
    EnvironmentEpisodes,
    EnvironmentSteps,
    EnvResponse,
    Episode,
    PickledReplayBuffer,
    PredictionType,
    QActionStateValue,
    RunPhase,
    StateType,
    TrainingSteps,
    Transition,
    VStateValue,
)
from rl_coach.logger import EpisodeLogger, Logger, screen
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplay
from rl_coach.runs.event_lines import log_episode
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError, LazyArray, Signal, dynamic_import_and_instantiate_module_from_params


class ParkedEpisode(NamedTuple):
    """An episode of an agent's that is not its present one.

    :ivar fields: the agent's attributes by name
    :ivar input_filter: the histories of its filters
    :ivar exploration: what its exploration keeps for an episode
    :ivar recurrent: the states of its recurrent networks
    """

    fields: dict[str, Any]
    input_filter: Any
    exploration: Any
    recurrent: dict[str, dict[str, np.ndarray]] | None


_EVALUATION_COLUMNS = ("Evaluation Reward", "Shaped Evaluation Reward", "Success Rate")
# written by what learns from recorded data; Coach's CSV has them always
_OFFLINE_COLUMNS = (
    "Epoch", "Inverse Propensity Score", "Direct Method Reward", "Doubly Robust", "Weighted Importance Sampling",
    "Sequential Doubly Robust",
)  # fmt: skip


def _signal_of(result: LearningResult, name: str) -> np.ndarray:
    return result.signals[name]


class Agent(AgentInterface):
    """Acts, observes, remembers and learns.

    A subclass gives an update rule (``make_update_rule``) and chooses actions (``choose_action``); or it overrides
    ``learn_from_batch`` and computes targets itself.

    :param agent_parameters: all its settings; ``input_filter`` and ``output_filter`` must be set
    :param parent: the level manager or composite agent that holds it
    """

    # the networks that choose actions; the others are never read between two training phases
    acting_networks: tuple[str, ...] | None = None
    # whether a batch is a stretch of an episode in order, which is what a recurrent network learns from
    learns_from_sequences = False

    def __init__(self, agent_parameters: AgentParameters, parent: Any = None):
        super().__init__()
        self.ap = agent_parameters
        self.parent = parent
        self.name = agent_parameters.name or "agent"
        self.full_name_id = agent_parameters.full_name_id = agent_parameters.full_name_id or self.name
        screen.announce(f"Creating agent - name: {self.name}")
        self.memory = dynamic_import_and_instantiate_module_from_params(agent_parameters.memory)
        self.input_filter = agent_parameters.input_filter
        self.output_filter = agent_parameters.output_filter
        self.pre_network_filter = agent_parameters.pre_network_filter
        self.networks: dict[str, NetworkWrapper] = {}
        self.spaces: Any = None
        self.environment_spaces: Any = None
        self.in_action_space = agent_parameters.algorithm.in_action_space
        self.exploration_policy: Any = None
        self.rng = np.random.default_rng()
        self._seeds = np.random.SeedSequence()
        self._learner: Learner | None = None
        self._mask_name: str | None = None
        self._keeps_episodes = isinstance(self.memory, EpisodicExperienceReplay)

        self.agent_logger = Logger()
        self.agent_episode_logger = EpisodeLogger()
        self.episode_signals: list[Signal] = []
        self.step_signals: list[Signal] = []
        self.loss = self.register_signal("Loss")
        self.curr_learning_rate = self.register_signal("Learning Rate")
        self.unclipped_grads = self.register_signal("Grads (unclipped)")
        self.reward = self.register_signal("Reward", dump_one_value_per_episode=False, dump_one_value_per_step=True)
        self.shaped_reward = self.register_signal(
            "Shaped Reward", dump_one_value_per_episode=False, dump_one_value_per_step=True
        )
        self.discounted_return = self.register_signal("Discounted Return")
        self._rule_signals: dict[str, Signal] = {}

        self.total_steps_counter = 0
        self.current_episode = 0
        self._training_iteration = 0
        self.last_target_network_update_step = 0
        self.last_training_phase_step = 0
        self.num_evaluation_episodes_completed = 0
        self.num_successes_across_evaluation_episodes = 0
        self.accumulated_rewards_across_evaluation_episodes = 0.0
        self.accumulated_shaped_rewards_across_evaluation_episodes = 0.0
        self.last_success_rate = 0.0
        self._suspended: dict[str, Any] | None = None
        self.lanes: Lanes | None = None
        self.curr_state: StateType = {}
        self.current_episode_buffer = self._new_episode()
        # of what has been cut off the present episode
        self._return_before, self._discount_before = 0.0, 1.0
        self.current_episode_steps_counter = 0
        self.total_reward_in_current_episode: Any = 0.0
        self.total_shaped_reward_in_current_episode: Any = 0.0

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
        state = spaces.state
        filtered = type(state)(
            {
                name: self.pre_network_filter.get_filtered_observation_space(
                    name, self.input_filter.get_filtered_observation_space(name, space)
                )
                for name, space in state.sub_spaces.items()
            }
        )
        self.spaces = SpacesDefinition(
            state=filtered,
            goal=spaces.goal,
            action=self.output_filter.get_unfiltered_action_space(spaces.action),
            reward=self.input_filter.get_filtered_reward_space(spaces.reward),
        )
        if self.in_action_space is not None and hasattr(self.in_action_space, "goal_name"):
            self.in_action_space.set_target_space(state[self.in_action_space.goal_name])
        self._mask_name = filtered.action_mask_name
        self.init_environment_dependent_modules()

    def init_environment_dependent_modules(self) -> None:
        """Build the exploration policy and the networks."""
        action_seed, exploration_seed = self._seeds.spawn(2)
        self.spaces.action.seed(action_seed)
        self.exploration_policy = self._make_exploration_policy()
        self.exploration_policy.seed(exploration_seed)
        self.networks = self.create_networks()
        if not self.learns_from_sequences and self.is_recurrent:
            raise CoachError(
                f"agent '{self.name}' learns from single transitions, which a recurrent network cannot: "
                f"set middleware_parameters to FCMiddlewareParameters, or choose an actor-critic agent"
            )
        self.load_memory_from_file()
        if self.ap.visualization.print_networks_summary:
            for network in self.networks.values():
                print(network.summary())

    def load_memory_from_file(self) -> None:
        """Fill the memory with the recorded transitions that ``load_memory_from_file_path`` names, if it does.

        It is a ``CsvDataset``, a ``PickledReplayBuffer``, or the path of a file that a memory's ``save`` wrote.
        """
        recorded = self.ap.algorithm.load_memory_from_file_path or self.ap.memory.load_memory_from_file_path
        if isinstance(recorded, CsvDataset):
            self.call_memory("load_csv", (recorded, self.input_filter))
        elif isinstance(recorded, PickledReplayBuffer):
            self.call_memory("load_pickled", recorded.filepath)
        elif recorded is not None:
            self.call_memory("load", recorded)

    def _make_exploration_policy(self) -> Any:
        parameters = self.ap.exploration
        if isinstance(parameters, dict):
            fitting = [p for space, p in parameters.items() if isinstance(self.spaces.action, space)]
            if not fitting:
                known = ", ".join(space.__name__ for space in parameters)
                raise CoachError(
                    f"agent '{self.name}' explores in {known}, not in a {type(self.spaces.action).__name__}: "
                    f"choose another agent, or an output filter that maps the actions"
                )
            parameters = fitting[0]
        parameters.action_space = self.spaces.action
        policy = dynamic_import_and_instantiate_module_from_params(parameters)
        parameters.action_space = None
        return policy

    def create_networks(self) -> dict[str, NetworkWrapper]:
        """The agent's networks by name."""
        return {
            name: NetworkWrapper(
                self.ap,
                has_target=parameters.create_target_network,
                has_global=False,
                name=name,
                spaces=self.spaces,
                rng=np.random.default_rng(self._seeds.spawn(1)[0]),
            )
            for name, parameters in self.ap.network_wrappers.items()
        }

    def make_update_rule(self) -> UpdateRule:
        """The algorithm's update as a pure function; see ``rl_coach.architectures.update``."""
        raise NotImplementedError(f"{type(self).__name__} has no update rule: give it one, or a learn_from_batch")

    @property
    def learner(self) -> Learner:
        """Trains the networks by the update rule."""
        if self._learner is None:
            functions = {name: network.state.function for name, network in self.networks.items()}
            step = TrainingStep(functions, self.ap.network_wrappers, self.make_update_rule())
            states = {name: network.state for name, network in self.networks.items()}
            published = tuple(self.networks) if self.acting_networks is None else self.acting_networks
            self._learner = next(iter(self.networks.values())).framework.make_learner(step, states, published)
        return self._learner

    def register_signal(
        self, signal_name: str, dump_one_value_per_episode: bool = True, dump_one_value_per_step: bool = False
    ) -> Signal:
        """A signal for the CSV: statistics over each episode, or its value at each step in the in-episode CSV."""
        signal = Signal(signal_name)
        if dump_one_value_per_episode:
            self.episode_signals.append(signal)
        if dump_one_value_per_step:
            self.step_signals.append(signal)
        return signal

    def setup_logger(self) -> None:
        """Open the CSVs."""
        task, visualization = self.ap.task_parameters, self.ap.visualization
        if task is None:
            return
        self.ap.full_name_id = self.full_name_id
        level = self.level_manager
        graph = level.parent_graph_manager
        stem = ".".join([graph.name, level.name, *self.full_name_id.split("/")])
        if visualization.dump_csv:
            self.agent_logger.set_logger_filenames(
                task.experiment_path,
                logger_prefix=stem,
                task_id=task.task_index,
                resume=task.resume,
                tensorboard=visualization.tensorboard,
            )
            if visualization.tensorboard:
                self.agent_logger.set_hyper_parameters(graph.documentation())
        if visualization.dump_in_episode_signals:
            self.agent_episode_logger.set_logger_filenames(
                task.experiment_path, logger_prefix=stem, task_id=task.task_index
            )

    # the episode

    @property
    def phase(self) -> RunPhase:
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        if self._phase is not value:
            self.reset_evaluation_state(value)
        self._phase = value
        if self.exploration_policy is not None:
            self.exploration_policy.change_phase(value)

    def reset_evaluation_state(self, val: RunPhase) -> None:
        """Begin an evaluation if ``val`` is ``TEST``; otherwise close the one that ran and log its results."""
        if val is RunPhase.TEST and self._phase is not RunPhase.TEST and self.ap.is_a_highest_level_agent:
            screen.announce(f"{self.name}: Starting evaluation phase")
        if val is not RunPhase.TEST and self.num_evaluation_episodes_completed:
            self._log_evaluation()
        self.num_evaluation_episodes_completed = 0
        self.num_successes_across_evaluation_episodes = 0
        self.accumulated_rewards_across_evaluation_episodes = 0.0
        self.accumulated_shaped_rewards_across_evaluation_episodes = 0.0

    def _log_evaluation(self) -> None:
        episodes = self.num_evaluation_episodes_completed
        self.last_success_rate = self.num_successes_across_evaluation_episodes / episodes
        values = (
            self.accumulated_rewards_across_evaluation_episodes / episodes,
            self.accumulated_shaped_rewards_across_evaluation_episodes / episodes,
            self.last_success_rate,
        )
        for name, value in zip(_EVALUATION_COLUMNS, values):
            self.agent_logger.create_signal_value(name, value, time=self.current_episode)
        if self.ap.is_a_highest_level_agent:
            screen.announce(
                f"{self.name}: Finished evaluation phase. Success rate = {round(self.last_success_rate, 2)}, "
                f"Avg Total Reward = {round(values[0], 2)}"
            )

    def get_success_rate(self) -> float:
        """The share of the last evaluation's episodes whose reward reached the environment's threshold."""
        return self.last_success_rate

    def _new_episode(self) -> Episode:
        algorithm = self.ap.algorithm
        bootstraps = getattr(algorithm, "bootstrap_total_return_from_old_policy", False)
        return Episode(algorithm.discount, bootstraps, algorithm.n_step)

    def reset_internal_state(self) -> None:
        """Begin an episode."""
        for signal in self.episode_signals:
            signal.reset()
        for signal in self.step_signals:
            signal.reset()
        if self._logs_steps:
            self.agent_episode_logger.set_episode_idx(self.current_episode)
        self.curr_state = {}
        self.current_episode_steps_counter = 0
        self.current_episode_buffer = self._new_episode()
        self._return_before, self._discount_before = 0.0, 1.0
        self.total_reward_in_current_episode = 0.0
        self.total_shaped_reward_in_current_episode = 0.0
        self.input_filter.reset()
        self.output_filter.reset()
        self.exploration_policy.reset()
        for network in self.networks.values():
            network.online_network.reset_internal_memory()

    def suspend_episode(self) -> None:
        """Park the training episode, with its signals, the filters' histories and statistics, and the random streams:
        training goes on as if there had been no evaluation."""
        self._suspended = {
            "episode": self.park_episode(),
            "filters": {name: getattr(self, name).get_state() for name in self._filters},
            "streams": self._streams(),
            "signals": [signal.values for signal in self.episode_signals + self.step_signals],
            "exploration": self.exploration_policy.get_state(),
        }

    def resume_episode(self) -> None:
        """Go on with the parked episode."""
        if self._suspended is None:
            return
        for name, state in self._suspended["filters"].items():
            getattr(self, name).set_state(state)
        self.take_up_episode(self._suspended["episode"])
        for signal, values in zip(self.episode_signals + self.step_signals, self._suspended["signals"]):
            signal.values = values
        self.exploration_policy.set_state(self._suspended["exploration"])
        self._set_streams(self._suspended["streams"])
        self._suspended = None

    def park_episode(self) -> ParkedEpisode:
        """The present episode, for ``take_up_episode`` to go on with after another one."""
        attributes = vars(self)
        recurrent = None
        if self.is_recurrent:
            recurrent = {name: network.online_network.recurrent_state for name, network in self.networks.items()}
        return ParkedEpisode(
            {name: attributes[name] for name in self._episode_fields},
            self.input_filter.suspend() if self._filters_remember else None,
            self.exploration_policy.suspend(),
            recurrent,
        )

    def take_up_episode(self, parked: ParkedEpisode) -> None:
        """Go on with an episode that was parked."""
        vars(self).update(parked.fields)
        if self._filters_remember:
            self.input_filter.resume(parked.input_filter)
        self.exploration_policy.resume(parked.exploration)
        if parked.recurrent is not None:
            for name, state in parked.recurrent.items():
                self.networks[name].online_network.recurrent_state = state

    @property
    def _filters_remember(self) -> bool:
        return bool(self.input_filter.observation_filters or self.input_filter.reward_filters)

    @cached_property
    def is_recurrent(self) -> bool:
        """Whether a network carries a state from step to step."""
        return any(network.is_recurrent for network in self.networks.values())

    def open_lanes(self, count: int) -> Lanes:
        """Act in so many copies of the environment from now on."""
        self.lanes = Lanes(self, count)
        return self.lanes

    @property
    def _num_lanes(self) -> int:
        return 1 if self.lanes is None else self.lanes.count

    def _streams(self) -> dict[str, Any]:
        """Where the random streams stand, except those of memory and exploration."""
        return {
            "agent": self.rng.bit_generator.state,
            "actions": self.spaces.action.rng.bit_generator.state,
            "networks": {name: network.rng.bit_generator.state for name, network in self.networks.items()},
        }

    def _set_streams(self, states: dict[str, Any]) -> None:
        self.rng.bit_generator.state = states["agent"]
        self.spaces.action.rng.bit_generator.state = states["actions"]
        for name, network in self.networks.items():
            network.rng.bit_generator.state = states["networks"][name]

    def observe(self, env_response: EnvResponse) -> bool:
        """Take in what the environment answered: the first state of an episode, or the outcome of the last action.

        :return: True if the episode is over
        """
        filtered = self._filtered(env_response)
        if self.current_episode_steps_counter == 0:
            self.curr_state = filtered.next_state
            return env_response.game_over
        assert self.last_action_info is not None
        transition = Transition(
            state=self.curr_state,
            action=self.last_action_info.action,
            reward=filtered.reward,
            next_state=filtered.next_state,
            game_over=filtered.game_over,
            info=dict(filtered.info),
            terminated=filtered.terminated,
        )
        self.curr_state = filtered.next_state
        self.total_reward_in_current_episode += env_response.reward
        self.total_shaped_reward_in_current_episode += filtered.reward
        self.reward.add_sample(env_response.reward)
        self.shaped_reward.add_sample(filtered.reward)
        return self.observe_transition(self.update_transition_before_adding_to_replay_buffer(transition))

    def _filtered(self, env_response: EnvResponse) -> EnvResponse:
        if self._phase is RunPhase.TEST:
            return self.input_filter.filter_evaluated(env_response)
        return self.input_filter.filter(env_response, deep_copy=False)[0]

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        """Change a transition before it is stored; nothing by default."""
        return transition

    def observe_transition(self, transition: Transition) -> bool:
        """Store a transition. :return: True if it ended the episode"""
        if self._phase is not RunPhase.TEST:
            self._add_action_info(transition)
            self.current_episode_buffer.insert(transition)
            if not self._stores_whole_episodes:
                self.call_memory("store", transition)
        if self._logs_steps:
            self.update_step_in_episode_log()
        return bool(transition.game_over)

    @property
    def _logs_steps(self) -> bool:
        """Whether the present episode is written step by step; of several at once the first copy's is."""
        return self.ap.visualization.dump_in_episode_signals and (self.lanes is None or self.lanes.current == 0)

    def _add_action_info(self, transition: Transition) -> None:
        """Put what the agent knew when it acted beside the transition; what it did not know takes no room."""
        action_info = self.last_action_info
        if action_info is None or not self.remembers_action_info:
            return
        if np.ndim(action_info.all_action_probabilities):
            transition.info["all_action_probabilities"] = action_info.all_action_probabilities
        transition.info["action_value"] = action_info.action_value
        transition.info["state_value"] = action_info.state_value
        transition.info["max_action_value"] = action_info.max_action_value

    @property
    def remembers_action_info(self) -> bool:
        """Whether transitions keep the values and probabilities that the agent acted by."""
        return getattr(self.ap.algorithm, "bootstrap_total_return_from_old_policy", False)

    @property
    def _stores_whole_episodes(self) -> bool:
        return self._keeps_episodes or self.ap.algorithm.store_transitions_only_when_episodes_are_terminated

    def handle_episode_ended(self) -> None:
        """Close the episode: compute returns, store it where memories keep episodes, and log."""
        episode = self.current_episode_buffer
        episode.is_complete = True
        testing = self._phase is RunPhase.TEST
        if testing:
            self._count_evaluation_episode()
        else:
            self.current_episode += 1
            self._finish_episode(episode)
        if not testing or self._is_evaluating_only:
            if testing:
                self.current_episode += 1
            self.update_log()
        if screen.is_read_by_programs and self.ap.is_a_highest_level_agent:
            self.log_to_screen()

    def _finish_episode(self, episode: Episode) -> None:
        self._compute_returns(episode)
        if not episode.is_empty():
            first = episode.transitions[0].n_step_discounted_rewards
            self.discounted_return.add_sample(self._return_before + self._discount_before * first)
        self._store_episode(episode)

    def cut_episode(self) -> None:
        """Store what there is of the present episode as an episode of its own, which ended without terminating; the
        rest becomes another one. For agents that learn before the episodes of all copies of the environment end."""
        episode = self.current_episode_buffer
        if episode.is_empty() or episode.is_complete:
            return
        last = copy.copy(episode.transitions[-1])
        last.game_over = True
        episode.transitions[-1] = last
        self._compute_returns(episode)
        self._return_before += self._discount_before * episode.transitions[0].n_step_discounted_rewards
        self._discount_before *= self.ap.algorithm.discount ** episode.length()
        self._store_episode(episode)
        self.current_episode_buffer = self._new_episode()

    def _compute_returns(self, episode: Episode) -> None:
        if self.ap.algorithm.override_episode_rewards_with_the_last_transition_reward and not episode.is_empty():
            last = episode.transitions[-1].reward
            for transition in episode.transitions:
                transition.reward = last
        # returns first: once rewards are n-step sums they would be summed a second time
        episode.update_discounted_rewards()
        episode.update_transitions_rewards_and_bootstrap_data()

    def _store_episode(self, episode: Episode) -> None:
        if self._keeps_episodes:
            self.call_memory("store_episode", episode)
        elif self._stores_whole_episodes:
            for transition in episode.transitions:
                self.call_memory("store", transition)

    def _count_evaluation_episode(self) -> None:
        reward = float(np.sum(self.total_reward_in_current_episode))
        self.accumulated_rewards_across_evaluation_episodes += reward
        self.accumulated_shaped_rewards_across_evaluation_episodes += float(
            np.sum(self.total_shaped_reward_in_current_episode)
        )
        self.num_evaluation_episodes_completed += 1
        threshold = self.spaces.reward.reward_success_threshold
        if threshold is not None and reward >= threshold:
            self.num_successes_across_evaluation_episodes += 1

    @property
    def _is_evaluating_only(self) -> bool:
        task = self.ap.task_parameters
        return task is not None and task.evaluate_only is not None

    def replace_last_action(self, action_info: ActionInfo) -> None:
        """Remember what the environment got instead of this agent's choice, as an action of the agent's own space."""
        self.last_action_info = self.output_filter.reverse_filter(action_info)

    def call_memory(self, func: str, args: Any = ()) -> Any:
        """Call a method of the memory by name."""
        return getattr(self.memory, func)(*(args if isinstance(args, tuple) else (args,)))

    # acting

    def act(self, action: ActionType | None = None) -> ActionInfo | None:
        """Choose an action for the current state, or take ``action`` as the choice.

        :return: the action as the environment understands it; None if the agent learns without acting
        """
        if self._phase is RunPhase.TRAIN and self.ap.algorithm.num_consecutive_playing_steps.num_steps == 0:
            return None
        if self._phase is not RunPhase.TEST or self._is_evaluating_only:
            self.total_steps_counter += 1
        self.current_episode_steps_counter += 1
        if action is not None:
            self.last_action_info = ActionInfo(action)
        elif not self.acts_by_networks:
            self.last_action_info = self._random_action()
        elif self.lanes is not None and self.lanes.are_asked_together:
            self.last_action_info = self.choose_action(self.lanes.state)
        else:
            self.last_action_info = self.choose_action(self.run_pre_network_filter_for_inference(self.curr_state))
        return self.output_filter.filter(self.last_action_info)

    @property
    def acts_by_networks(self) -> bool:
        """Whether the networks choose, or at least may choose: not in a random heatup."""
        return self._phase is not RunPhase.HEATUP or self.ap.algorithm.heatup_using_network_decisions

    def acting_prediction(self, curr_state: StateType) -> Any:
        """What the networks say about the state to act in; where several are acted in at once, they are asked once."""
        if self.lanes is not None and self.lanes.are_asked_together:
            return self.lanes.prediction
        return self.predict_states([curr_state])[0]

    def predict_states(self, states: list[StateType]) -> Any:
        """What ``choose_action`` needs of the networks, for each of several states."""
        raise NotImplementedError(f"{type(self).__name__} does not predict")

    def _random_action(self) -> ActionInfo:
        mask = self.action_mask(self.curr_state)
        if mask is None:
            return self.spaces.action.sample_with_info()
        allowed = np.flatnonzero(mask)
        probabilities = np.zeros(len(mask))
        probabilities[allowed] = 1.0 / len(allowed)
        return ActionInfo(int(self.spaces.action.rng.choice(allowed)), all_action_probabilities=probabilities)

    def action_mask(self, state: StateType) -> np.ndarray | None:
        """[A] of 0 and 1: which actions the state allows; None if all are allowed."""
        return None if self._mask_name is None else np.asarray(state[self._mask_name])

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        """Choose an action for one state, observations without a batch dimension."""
        raise NotImplementedError(f"{type(self).__name__} does not choose actions")

    def _explore(self, action_values: Any, state: StateType) -> Any:
        """The exploration policy's choice; it hears of a mask only where there is one, so that policies written
        without masks work."""
        if self._mask_name is None:
            return self.exploration_policy.get_action(action_values)
        return self.exploration_policy.get_action(action_values, self.action_mask(state))

    def prepare_batch_for_inference(
        self, states: StateType | list[StateType], network_name: str
    ) -> dict[str, np.ndarray]:
        """The inputs of a network for one state or a list of them, [B, ...] by name."""
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
        return {name: column[0] for name, column in self.pre_network_filter.filter_columns(columns, update).items()}

    def run_pre_network_filter(self, batch: Batch) -> Batch:
        """The batch as networks see it, whatever learns from it afterwards. The filters' statistics take in its states,
        if ``update_pre_network_filters_state_on_train`` says so."""
        if not (self.pre_network_filter.observation_filters or self.pre_network_filter.reward_filters):
            return batch
        update = self.ap.algorithm.update_pre_network_filters_state_on_train
        filtered = Batch(batch)
        filtered.state_columns = self.pre_network_filter.filter_columns(batch.state_columns, update)
        filtered.next_state_columns = self.pre_network_filter.filter_columns(batch.next_state_columns, False)
        filtered.reward_column = self.pre_network_filter.filter_rewards(batch.reward_column, update)
        return filtered

    def _sample(self, size: int) -> Batch:
        return self.run_pre_network_filter(self.call_memory("sample", size))

    # learning

    @property
    def training_iteration(self) -> int:
        """How many updates the networks have had."""
        return self._training_iteration

    @training_iteration.setter
    def training_iteration(self, value: int) -> None:
        self._training_iteration = value

    @property
    def can_train(self) -> bool:
        return bool(self.networks)

    def should_train(self) -> bool:
        return self._should_update()

    def _should_update(self) -> bool:
        steps = self.ap.algorithm.num_consecutive_playing_steps
        if isinstance(steps, EnvironmentEpisodes):
            return (
                self.current_episode - self.last_training_phase_step >= steps.num_steps
                and self.call_memory("length") > 0
            )
        if not isinstance(steps, EnvironmentSteps):
            raise CoachError(
                f"num_consecutive_playing_steps of agent '{self.name}' counts EnvironmentSteps or "
                f"EnvironmentEpisodes, not {steps!r}"
            )
        if self.total_steps_counter - self.last_training_phase_step < steps.num_steps:
            return False
        if self._num_lanes > 1 and self.is_on_policy:
            return True  # what has been played of the episodes is cut off and learned from
        if self.ap.algorithm.act_for_full_episodes and not self.current_episode_buffer.is_complete:
            return False
        return self.call_memory("num_transitions") > 0

    def _should_train(self) -> bool:
        """Whether the playing steps since the last training phase are over; if so, they count anew."""
        if not self._should_update():
            return False
        is_episodes = isinstance(self.ap.algorithm.num_consecutive_playing_steps, EnvironmentEpisodes)
        self.last_training_phase_step = self.current_episode if is_episodes else self.total_steps_counter
        return True

    def _training_phases_due(self) -> int:
        """How many training phases the steps since the last one make, 0 if it is not time yet. More than one can be
        due where several copies of the environment are stepped at once, for they are made together then."""
        steps, last = self.ap.algorithm.num_consecutive_playing_steps, self.last_training_phase_step
        if not self._should_train():
            return 0
        if self._num_lanes == 1 or not isinstance(steps, EnvironmentSteps):
            return 1
        phases, rest = divmod(self.total_steps_counter - last, max(1, steps.num_steps))
        if phases > self._most_phases:
            return 1  # the steps before training began are not caught up with
        self.last_training_phase_step -= rest
        return phases

    @property
    def _most_phases(self) -> int:
        """How many training phases one step of all copies of the environment can make."""
        steps = self.ap.algorithm.num_consecutive_playing_steps
        if not isinstance(steps, EnvironmentSteps):
            return 1
        return -(-self._num_lanes // max(1, steps.num_steps))

    def train(self) -> SupportsFloat:
        """Make ``num_consecutive_training_steps`` updates on batches from the memory, if it is time.

        :return: the sum of the losses; reading it waits for the updates
        """
        phases = self._training_phases_due() if self.can_train else 0
        if not phases:
            return 0.0
        updates = phases * self.ap.algorithm.num_consecutive_training_steps
        if self.updates_left is not None:
            updates = min(updates, self.updates_left)
        learn = self._train_one_by_one if self._learns_one_by_one else self._train_together
        loss: SupportsFloat = learn(updates)
        self.post_training_commands()
        return loss

    @property
    def _learns_one_by_one(self) -> bool:
        """Updates are separate calls where each depends on the host: the agent computes its own targets, or the memory
        does not draw the batches of several updates at once."""
        return type(self).learn_from_batch is not Agent.learn_from_batch or self._draws_each_batch

    @property
    def _draws_each_batch(self) -> bool:
        """Priorities change from one batch to the next, or no transition may be twice in a batch."""
        return self._has_priorities or not getattr(self.memory, "allow_duplicates", True)

    @property
    def _has_priorities(self) -> bool:
        return isinstance(self.memory, PrioritizedExperienceReplay)

    @property
    def batch_size(self) -> int:
        """Transitions in one update."""
        return next(iter(self.ap.network_wrappers.values())).batch_size

    def _train_one_by_one(self, updates: int) -> float:
        total = 0.0
        for _ in range(updates):
            self.training_iteration += 1
            loss, _, gradients = self.learn_from_batch(self._sample(self.batch_size))[:3]
            self.loss.add_sample(loss)
            self.unclipped_grads.add_sample(gradients)
            total += float(loss)
            if self._should_update_online_weights_to_target():
                self._update_targets()
        self._log_training()
        return total

    def _train_together(self, updates: int) -> LazyArray:
        """All updates in compiled calls, cut only where targets are to follow in between.

        The numbers that they give are not read here, so that the environment can step while updates are computed.
        """
        losses: list[LazyArray] = []
        done = 0
        while done < updates:
            count, follows = self._updates_until_targets_follow(updates - done)
            losses.append(self._learn(self._sample(count * self.batch_size), count, follows))
            done += count
        self._log_training()
        return LazyArray(lambda: sum(map(float, losses)))

    def _updates_until_targets_follow(self, updates: int) -> tuple[int, bool]:
        """How many updates can be made in one call, and whether the targets follow after each of them."""
        period = self.ap.algorithm.num_steps_between_copying_online_weights_to_target
        if not self._has_targets:
            return updates, False
        if isinstance(period, EnvironmentSteps):
            return updates, self.ap.algorithm.num_consecutive_training_steps == 1 and period.num_steps <= 1
        if period.num_steps <= 1:
            return updates, True
        due_in = period.num_steps - (self.training_iteration - self.last_target_network_update_step)
        return min(updates, max(1, due_in)), False

    @property
    def _has_targets(self) -> bool:
        return any(network.has_target for network in self.networks.values())

    def _learn(self, batch: Batch, num_updates: int, targets_follow: bool) -> LazyArray:
        rate = self.ap.algorithm.rate_for_copying_weights_to_target
        follow = {name: rate for name, network in self.networks.items() if network.has_target and targets_follow}
        result = self._update_on(batch, num_updates, follow)
        self.training_iteration += num_updates
        if targets_follow:
            self.last_target_network_update_step = self._target_clock
            self._log_target_update()
        elif self._should_update_online_weights_to_target():
            self._update_targets()
        self.loss.add_sample(LazyArray(lambda: sum(result.losses.values())))
        self.unclipped_grads.add_sample(LazyArray(lambda: next(iter(result.gradient_norms.values()))))
        return LazyArray(lambda: sum(loss.sum() for loss in result.losses.values()))

    def _update_on(self, batch: Batch, num_updates: int, follow: dict[str, float]) -> LearningResult:
        # a phase that is cut, by targets or by the end of the run, makes fewer updates with the same compiled step
        together = self.ap.algorithm.num_consecutive_training_steps * self._most_phases
        compiled = 1 if num_updates == 1 else together
        columns = pad(self.learning_columns(batch), len(batch) // num_updates * compiled)
        result = self.learner.train(
            columns, self.learning_scalars(), num_updates=compiled, count=num_updates, follow=follow
        )
        self._log_rule_signals(result)
        if self._has_priorities and result.errors is not None:
            self.call_memory("update_priorities", (batch.info("idx"), np.abs(result.errors).ravel()))
        return result

    def learn_from_batch(self, batch: Batch) -> tuple[float, list[float], float]:
        """One update on a batch, which the pre-network filters have passed already.

        An agent that overrides this computes its targets itself, from ``self.networks[...].online_network.predict``,
        and calls ``train_and_sync_networks``.

        :return: the loss, each network's loss, and the gradients' norm before clipping
        """
        result = self._update_on(batch, 1, {})
        losses = [float(loss[0]) for loss in result.losses.values()]
        return sum(losses), losses, float(next(iter(result.gradient_norms.values()))[0])

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns of a batch that the update rule needs; see ``Learner.train``."""
        names = self._learning_inputs
        columns = {f"states/{name}": batch.state_columns[name] for name in names}
        columns |= {f"next_states/{name}": batch.next_state_columns[name] for name in names}
        columns["actions"] = batch.action_column
        columns["rewards"] = batch.reward_column
        columns["continues"] = 1.0 - batch.terminated_column
        weights = batch.info_columns.get("weight")
        columns["weights"] = np.ones(len(batch), np.float32) if weights is None else weights
        return columns

    @cached_property
    def _learning_inputs(self) -> list[str]:
        names = dict.fromkeys(name for network in self.networks.values() for name in network.input_names)
        names.pop("action", None)
        if self._mask_name is not None:
            names[self._mask_name] = None
        return list(names)

    def learning_scalars(self) -> dict[str, float]:
        """Numbers that change between updates and that the rule needs."""
        return {}

    def _log_rule_signals(self, result: LearningResult) -> None:
        for name in result.signal_names:
            self._rule_signal(name).add_sample(LazyArray(partial(_signal_of, result, name)))

    def _rule_signal(self, name: str) -> Signal:
        if name not in self._rule_signals:
            self._rule_signals[name] = self.register_signal(name)
        return self._rule_signals[name]

    def _log_training(self) -> None:
        """Take down the learning rate. What was learned since the episode ended belongs to that episode's row, for the
        next episode begins with empty signals."""
        self.curr_learning_rate.add_sample(next(iter(self.networks.values())).learning_rate)
        if self._episode_has_just_ended:
            self.agent_logger.create_signal_value("Training Iter", self.training_iteration)
            self._log_signals()

    @property
    def _episode_has_just_ended(self) -> bool:
        return self.current_episode_buffer.is_complete or (self.lanes is not None and self.lanes.has_ended_episode)

    @property
    def _target_clock(self) -> int:
        """The steps, of the kind that the targets' period counts, that have been taken."""
        period = self.ap.algorithm.num_steps_between_copying_online_weights_to_target
        if isinstance(period, TrainingSteps):
            return self.training_iteration
        if isinstance(period, EnvironmentSteps):
            return self.total_steps_counter
        raise CoachError(
            f"num_steps_between_copying_online_weights_to_target of agent '{self.name}' counts "
            f"EnvironmentSteps or TrainingSteps, not {period!r}"
        )

    def _should_update_online_weights_to_target(self) -> bool:
        """Whether it is time for the targets to follow; if so, the time counts anew."""
        if not self._has_targets:
            return False
        now = self._target_clock
        period = self.ap.algorithm.num_steps_between_copying_online_weights_to_target
        if now - self.last_target_network_update_step < period.num_steps:
            return False
        self.last_target_network_update_step = now
        return True

    def _update_targets(self) -> None:
        for network in self.networks.values():
            if network.has_target:
                network.update_target_network(self.ap.algorithm.rate_for_copying_weights_to_target)
        self._log_target_update()

    def _log_target_update(self) -> None:
        if self.current_episode:  # there is no row before the first episode has ended
            self.agent_logger.create_signal_value("Update Target Network", 1)

    def post_training_commands(self) -> None:
        """What is to be done after a training phase; nothing by default."""

    def _outputs_named(self, network: str, *suffixes: str) -> tuple[str, ...]:
        """Those of a network's outputs that are called so, in the order of the network."""
        names = self.networks[network].online_network.output_names
        return tuple(name for name in names if name.split("_", 2)[2] in suffixes)

    def get_predictions(self, states: dict[str, np.ndarray], prediction_type: type[PredictionType]) -> Any:
        """What this agent's networks say about states [B, ...], for another agent.

        :raises CoachError: no network predicts that
        """
        outputs = {VStateValue: ("v",), QActionStateValue: ("q",), ActionProbabilities: ("probabilities", "mean")}
        for network in self.networks.values():
            for name in network.online_network.output_names:
                if name.split("_", 2)[2] in outputs.get(prediction_type, ()):
                    return network.online_network.predict(states, outputs=[name])
        raise CoachError(f"agent '{self.name}' has no network that predicts {prediction_type.__name__}")

    def set_incoming_directive(self, action: ActionType) -> None:
        """Take a goal from the level above: from now on it is the state's ``desired_goal``."""
        self.curr_state["desired_goal"] = np.asarray(action)

    # the books

    # whether the policy's control parameter says how much it explores
    explores_by_parameter = True

    def log_to_screen(self) -> None:
        """Print the line of the episode that has ended. Called where programs read the lines."""
        task = self.ap.task_parameters
        log_episode(
            self._phase,
            self.full_name_id,
            None if task is None else task.task_index,
            self.current_episode,
            float(np.sum(self.total_reward_in_current_episode)),
            self.exploration_policy.get_control_param() if self.explores_by_parameter else None,
            self.total_steps_counter,
            self.training_iteration,
        )

    def update_log(self) -> None:
        """Write the row of the episode that has ended."""
        log = self.agent_logger.create_signal_value
        self.agent_logger.set_current_time(self.current_episode)
        training = self._phase is RunPhase.TRAIN
        log("Training Iter", self.training_iteration)
        log("In Heatup", int(self._phase is RunPhase.HEATUP))
        log("ER #Transitions", self.call_memory("num_transitions"))
        log("ER #Episodes", self.call_memory("length"))
        log("Episode Length", self.current_episode_steps_counter)
        log("Total steps", self.total_steps_counter)
        log("Epsilon", float(np.mean(self.exploration_policy.get_control_param())))
        log("Shaped Training Reward", self.total_shaped_reward_in_current_episode if training else np.nan)
        log("Training Reward", self.total_reward_in_current_episode if training else np.nan)
        log("Update Target Network", 0, overwrite=False)
        self.agent_logger.update_wall_clock_time(self.current_episode)
        for name in _EVALUATION_COLUMNS + _OFFLINE_COLUMNS:
            log(name, np.nan, overwrite=False)
        self._log_signals()
        if self.current_episode % self.ap.visualization.dump_signals_to_csv_every_x_episodes == 0:
            self.agent_logger.dump_output_csv()

    def _log_signals(self) -> None:
        log = self.agent_logger.create_signal_value
        for signal in self.episode_signals:
            for name, value in signal.get_statistics().items():
                log(f"{signal.name}/{name}", value)

    def update_step_in_episode_log(self) -> None:
        """Write the row of one step to the in-episode CSV."""
        self.agent_episode_logger.set_current_time(self.current_episode_steps_counter)
        log = self.agent_episode_logger.create_signal_value
        log("Training Iter", self.training_iteration)
        log("In Heatup", int(self._phase is RunPhase.HEATUP))
        log("Total steps", self.total_steps_counter)
        log("Epsilon", float(np.mean(self.exploration_policy.get_control_param())))
        for signal in self.step_signals:
            log(signal.name, signal.get_last_value())
        self.agent_episode_logger.dump_output_csv()

    # state

    def sync(self) -> None:
        """Nothing to take over: this agent's networks are its own."""

    def get_state(self) -> dict[str, Any]:
        """Networks, optimizers, memory, filters, exploration, counters and random streams."""
        state: dict[str, Any] = {
            "networks": {name: network.get_state() for name, network in self.networks.items()},
            "memory": self.memory.get_state() if self._checkpoints_memory else None,
            "exploration": self.exploration_policy.get_state(),
            "filters": {name: getattr(self, name).get_state() for name in self._filters},
            "rng": self.rng.bit_generator.state,
            "action_rng": self.spaces.action.rng.bit_generator.state,
            "logger": self.agent_logger.get_state(),
            "rule_signals": list(self._rule_signals),
            "counters": {name: getattr(self, name) for name in self._counters},
        }
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``, with a new episode."""
        for name, network in self.networks.items():
            network.set_state(state["networks"][name])
        if state["memory"] is not None and not self._is_evaluating_only:
            self.memory.set_state(state["memory"])
        self.exploration_policy.set_state(state["exploration"])
        for name in self._filters:
            getattr(self, name).set_state(state["filters"][name])
        self.rng.bit_generator.state = state["rng"]
        self.spaces.action.rng.bit_generator.state = state["action_rng"]
        self.agent_logger.set_state(state["logger"])
        for name in state["rule_signals"]:
            self._rule_signal(name)
        for name in self._counters:
            setattr(self, name, state["counters"][name])

    def fits(self) -> dict[str, str]:
        return {**super().fits(), **{f"network {name}": network.layout for name, network in self.networks.items()}}

    def get_episode_state(self) -> dict[str, Any] | None:
        """The episode in progress, its signals and the state of recurrent networks included.

        :return: None if it holds something that cannot be saved
        """
        signals = {signal.name: signal.read() for signal in self.episode_signals + self.step_signals}
        recurrent = {name: network.online_network.recurrent_state for name, network in self.networks.items()}
        episode = {
            "fields": {name: getattr(self, name) for name in self._episode_fields},
            "signals": signals,
            "recurrent": recurrent,
            # the frames that it will stack are those of the present state, and the memory knows them as such
            "input_filter": self.input_filter.suspend(),
        }
        try:
            packed = episode_state.pack(episode)
        except episode_state.UnsavableError:
            return None
        return {"packed": packed, "steps_logger": self.agent_episode_logger.get_state()}

    def set_episode_state(self, state: dict[str, Any]) -> None:
        """Go on in the middle of an episode; ``set_state`` came before."""
        episode = episode_state.unpack(state["packed"])
        for name, value in episode["fields"].items():
            setattr(self, name, value)
        for signal in self.episode_signals + self.step_signals:
            signal.values = episode["signals"][signal.name]
        for name, recurrent in episode["recurrent"].items():
            self.networks[name].online_network.recurrent_state = recurrent
        self.input_filter.resume(episode["input_filter"])
        self.agent_episode_logger.set_episode_idx(self.current_episode)
        self.agent_episode_logger.set_state(state["steps_logger"])
        if not self._stores_whole_episodes:
            self.call_memory("recognise", (self.curr_state,))

    @property
    def _checkpoints_memory(self) -> bool:
        return self.ap.task_parameters is None or self.ap.task_parameters.checkpoint_memory

    _episode_fields: tuple[str, ...] = (
        "curr_state",
        "last_action_info",
        "current_episode_buffer",
        "_return_before",
        "_discount_before",
        "current_episode_steps_counter",
        "total_reward_in_current_episode",
        "total_shaped_reward_in_current_episode",
    )
    _filters = ("input_filter", "output_filter", "pre_network_filter")
    _counters: tuple[str, ...] = (
        "total_steps_counter",
        "current_episode",
        "_training_iteration",
        "last_target_network_update_step",
        "last_training_phase_step",
        "last_success_rate",
    )

    def close(self) -> None:
        """Write the last row."""
        self.agent_logger.close()
        self.agent_episode_logger.close()
