"""The graph of an agent that learns from a fixed data set (batch, or offline, reinforcement learning)."""

from __future__ import annotations

import copy
import operator
import time
from typing import Any, Sequence, cast

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.core.recorded_values import learn_statistics_of
from rl_coach.agents.core.update_loop import DataSetLearning
from rl_coach.base_parameters import (
    AgentParameters,
    PresetValidationParameters,
    ScheduleParameters,
    TaskParameters,
    VisualizationParameters,
)
from rl_coach.core_types import Batch, RunPhase, StateType, StepMethod, TrainingSteps
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.filters.filter import changes_nothing
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.building import as_int
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.off_policy_evaluators.behaviour import estimated_behaviour
from rl_coach.off_policy_evaluators.estimators import effective_sample_size, log_weights
from rl_coach.off_policy_evaluators.fitted_q_evaluation import Predict, fitted_q_evaluation
from rl_coach.off_policy_evaluators.ope_manager import OpeEstimation, OpeManager, predictions
from rl_coach.off_policy_evaluators.recorded_episodes import BEHAVIOUR, recorded
from rl_coach.spaces import SpacesDefinition
from rl_coach.utilities.requirements import number, steps, whole
from rl_coach.utils import CoachError

_COLUMNS = {
    "ips": "Inverse Propensity Score",
    "dm": "Direct Method Reward",
    "dr": "Doubly Robust",
    "seq_dr": "Sequential Doubly Robust",
    "wis": "Weighted Importance Sampling",
}
_COLUMNS_OF_DEPLOYED = {
    "seq_dr": "Sequential Doubly Robust of Deployed Policy",
    "wis": "Weighted Importance Sampling of Deployed Policy",
}
_SAMPLE_SIZE = "Effective Sample Size of Deployed Policy"
_FITTED_Q = "Fitted Q Evaluation of Deployed Policy"
_FITTED_Q_NETWORK = "fitted_q"


class BatchRLGraphManager(BasicRLGraphManager):
    """Graph of one agent that learns from a data set. The agent does not act in the environment while it learns.

    The data come from the first of these sources that is set:

    1. the file ``load_memory_from_file_path`` of the agent's memory or algorithm
    2. another agent, which learns in the environment (``experience_generating_agent_params``)
    3. random actions in heatup

    Training steps of the schedule are epochs: ``TrainingSteps(10)`` are ten passes over the training part of the data.

    The agent does not learn from the newest episodes, a fifth of the data by default (``train_to_eval_ratio``). If the
    agent has a network ``reward_model``, off-policy evaluation with these episodes runs after each period of training.
    If the data have no probabilities of actions, the probabilities are estimated. A network ``fitted_q`` adds fitted Q
    evaluation. If there is an environment, the agent is also evaluated in the environment.

    :param agent_params: the agent, with a memory of episodes
    :param env_params: the environment; None if there are only data
    :param schedule_params: the length of each part of the run
    :param vis_params: settings of rendering, videos and log files
    :param preset_validation_params: the reward that tests of the preset require
    :param name: the graph's name, part of the names of its files
    :param spaces_definition: the spaces, if there is no environment
    :param reward_model_num_epochs: number of passes over the training data to train the reward model
    :param train_to_eval_ratio: the share of the steps that the agent learns from, in (0, 1]
    :param experience_generating_agent_params: the agent that generates the data; None if no agent generates data
    :param experience_generating_schedule_params: the lengths of that agent's heatup and training
    :param fitted_q_num_epochs: number of passes over the evaluation episodes at each evaluation, to train the network
        ``fitted_q``
    """

    training_steps_are = "epochs"

    constraints = {
        "steps_between_evaluation_periods": steps(TrainingSteps, low=1),
        "improve_steps": steps(TrainingSteps),
        "reward_model_num_epochs": whole(0),
        "fitted_q_num_epochs": whole(1),
        "train_to_eval_ratio": number(above=0, high=1),
    }

    def __init__(
        self,
        agent_params: AgentParameters,
        env_params: EnvironmentParameters | None,
        schedule_params: ScheduleParameters,
        vis_params: VisualizationParameters | None = None,
        preset_validation_params: PresetValidationParameters | None = None,
        name: str = "batch_rl_graph",
        spaces_definition: SpacesDefinition | None = None,
        reward_model_num_epochs: int = 100,
        train_to_eval_ratio: float = 0.8,
        experience_generating_agent_params: AgentParameters | None = None,
        experience_generating_schedule_params: ScheduleParameters | None = None,
        fitted_q_num_epochs: int = 20,
    ):
        environment = cast(EnvironmentParameters, env_params)
        super().__init__(agent_params, environment, schedule_params, vis_params, preset_validation_params, name)
        self.spaces_definition = spaces_definition
        self.reward_model_num_epochs = reward_model_num_epochs
        self.train_to_eval_ratio = train_to_eval_ratio
        self.experience_generating_agent_params = experience_generating_agent_params
        self.experience_generating_schedule_params = experience_generating_schedule_params
        self.fitted_q_num_epochs = fitted_q_num_epochs
        self.ope_manager: OpeManager | None = None
        self._seed_of_data = 0
        self._has_own_filter = False

    # building

    def _create_graph(self, task_parameters: TaskParameters) -> tuple[list[LevelManager], list[Any]]:
        if not (task_parameters.role.acts and task_parameters.role.trains):
            raise CoachError("learning from a data set cannot be split into trainer and workers: leave out -dc and -n")
        if self.experience_generating_agent_params is not None:
            self._require_generator_that_fits()
        if self.env_params is not None:
            levels, environments = super()._create_graph(task_parameters)
        else:
            agent_seed = self.spawn_seed()
            learner = self._create_agent(task_parameters)
            learner.seed(agent_seed)
            level = LevelManager("main_level", learner, None, spaces_definition=self.spaces_definition)
            levels, environments = [level], []
        agent: Any = levels[0].agent
        if not isinstance(agent.learning, DataSetLearning):
            played = f"{type(agent).__name__} learns from its newest episodes, not from a data set"
            raise CoachError(f"{played}: choose another agent")
        levels[0].training_steps_of = operator.attrgetter("batches.epoch")
        self._seed_of_data = as_int(self.spawn_seed())
        return levels, environments

    def _require_generator_that_fits(self) -> None:
        """Check the agent that generates the data. :raises CoachError: if this agent cannot generate data"""
        own, generating = self.agent_params, self.experience_generating_agent_params
        assert generating is not None
        if self.env_params is None or self.experience_generating_schedule_params is None:
            raise CoachError(
                "an agent that generates experience needs env_params and experience_generating_schedule_params"
            )
        if not isinstance(generating.memory, EpisodicExperienceReplayParameters):
            raise CoachError(_memory_of_episodes("experience_generating_agent_params"))
        if generating.output_filter is not None or own.output_filter is not None:
            raise CoachError("output_filter of agent_params and of experience_generating_agent_params must be None")
        if getattr(self.env_params, "num_environments", 1) > 1:
            raise CoachError(
                "an agent that generates experience acts in one copy of the environment: set "
                "env_params.num_environments to 1"
            )

    def _create_agent(self, task: TaskParameters) -> AgentInterface:
        self.agent_params = copy.deepcopy(self.agent_params)
        memory = self.agent_params.memory
        self._has_own_filter = self.agent_params.input_filter is not None
        if not isinstance(memory, EpisodicExperienceReplayParameters):
            raise CoachError(_memory_of_episodes("agent_params"))
        self.agent_params.is_batch_rl_training = True
        memory.train_to_eval_ratio = self.train_to_eval_ratio
        algorithm = self.agent_params.algorithm
        if (
            not changes_nothing(self.agent_params.pre_network_filter)
            and algorithm.update_pre_network_filters_state_on_train
        ):
            algorithm.update_pre_network_filters_state_on_train = False
            screen.warning(
                f"{self.name}: update_pre_network_filters_state_on_train has no effect: the statistics of "
                f"pre_network_filter are computed from the whole data set"
            )
        agent: Any = super()._create_agent(task)
        self._count_updates_for_targets(agent)
        return agent

    def _count_updates_for_targets(self, agent: Any) -> None:
        """Count updates between two changes of the target networks: the agent takes no steps while it learns."""
        period = self.agent_params.algorithm.num_steps_between_copying_online_weights_to_target
        agent.clock.plays = False
        has_targets = any(one.create_target_network for one in self.agent_params.network_wrappers.values())
        if has_targets and not isinstance(period, TrainingSteps):
            screen.announce(
                f"{self.name}: no environment steps are played while the agent learns, so its target networks are "
                f"updated after every {period.num_steps:,} updates (the setting is {period!r})"
            )

    def documentation(self) -> dict[str, Any]:
        return {
            **super().documentation(),
            "experience_generating_agent": self.experience_generating_agent_params,
            "reward_model_num_epochs": self.reward_model_num_epochs,
            "train_to_eval_ratio": self.train_to_eval_ratio,
            "fitted_q_num_epochs": self.fitted_q_num_epochs,
        }

    def setup_logger(self) -> None:
        super().setup_logger()
        if self._estimates:  # the header has all columns from the first row on
            fitted = [_FITTED_Q] if _FITTED_Q_NETWORK in self.get_agent().networks else []
            self.get_agent().agent_logger.add_columns([*_COLUMNS_OF_DEPLOYED.values(), _SAMPLE_SIZE, *fitted])

    @property
    def _estimates(self) -> bool:
        """True if off-policy evaluation is possible."""
        return "reward_model" in self.get_agent().networks

    # data

    def _heat_up(self) -> None:
        memory, algorithm = self.get_agent().memory, self.agent_params.algorithm
        filters = self.get_agent().pre_network_filter
        before = filters.get_state()
        is_recorded = algorithm.load_memory_from_file_path or self.agent_params.memory.load_memory_from_file_path
        if self.experience_generating_agent_params is not None:
            if not memory.num_transitions():
                self._generate_experience()
        elif self.env_params is not None and not is_recorded:
            super()._heat_up()
        if not memory.num_training_transitions():
            raise CoachError(
                "there are no data to learn from: set agent_params.memory.load_memory_from_file_path, "
                "experience_generating_agent_params or heatup_steps"
            )
        filters.set_state(before)  # a heatup that uses the networks has updated the filters already
        if learn_statistics_of(memory, filters):
            screen.announce(
                f"{self.name}: the statistics of pre_network_filter were computed from all "
                f"{memory.num_transitions():,} steps of the data"
            )
        if self._estimates:
            self.get_agent().improve_reward_model(self.reward_model_num_epochs)

    def _generate_experience(self) -> None:
        """Let another agent learn in the environment, and store its episodes."""
        generating = self._generating_graph()
        progress = self.progress.get_state()
        generating.progress, generating.run_status = self.progress, self.run_status
        generating.other_fields = lambda: (("generates", "data"),)
        screen.announce(f"{self.name}: {type(generating.get_agent()).__name__} generates experience")
        try:
            generating.heatup(generating.heatup_steps)
            generating.improvement.begin()
            generating.improvement.set_end(generating.improve_steps)
            generating.train_and_act(generating.improve_steps)
            if not generating.reset_required:
                generating.handle_episode_ended()  # truncated
        finally:
            generating.close()
            self.progress.set_state({**progress, "seconds": self.progress.seconds})
        agent = self.get_agent()
        own = agent.input_filter if self._has_own_filter else None
        agent.experience.add_episodes(generating.get_agent().memory.get_all_complete_episodes(), own)

    def _generating_graph(self) -> BasicRLGraphManager:
        schedule, agent = self.experience_generating_schedule_params, self.experience_generating_agent_params
        assert schedule is not None and agent is not None
        environment = copy.deepcopy(self.env_params)
        environment.seed = None  # the generating graph draws its own seed
        unseen = VisualizationParameters(dump_csv=False)
        graph = BasicRLGraphManager(agent, environment, schedule, unseen, name="experience_generating_graph")
        task = copy.copy(self.task_parameters)
        task.seed, task.checkpoint_restore_path, task.checkpoint_save_secs = self._seed_of_data, None, None
        graph.create_graph(task)
        is_changed = agent.input_filter is not None or self._has_own_filter
        if is_changed and not changes_nothing(graph.get_agent().input_filter):
            graph.close()
            raise CoachError(
                "the input_filter of the agent that generates experience would change the data before the filter of "
                "the learning agent: set both input_filters to None, and add all filters to "
                "env_params.default_input_filter"
            )
        graph.get_agent().remember_probabilities()
        return graph

    # learning

    def train_and_act(self, steps: StepMethod) -> None:
        """Learn for a number of epochs.

        :param steps: the number of epochs, as ``TrainingSteps``
        :raises CoachError: if steps are not ``TrainingSteps``
        """
        if not isinstance(steps, TrainingSteps):
            raise CoachError(f"graph '{self.name}' trains in epochs: ask for TrainingSteps(n), not {steps!r}")
        super().train_and_act(steps)

    def _step(self) -> None:
        if self._phase is not RunPhase.TRAIN:
            super()._step()
        elif time.monotonic() >= self._attention_at:
            self.attend()

    def _is_episode_endless(self) -> bool:
        return self._phase is not RunPhase.TRAIN and super()._is_episode_endless()

    def _uncounted_updates(self) -> int:
        return self.get_agent().optimizer_steps - self.total_steps_counters[RunPhase.TRAIN][TrainingSteps]

    def advanced(self) -> tuple[str, int]:
        return "Epoch", self.total_steps_counters[RunPhase.TRAIN][TrainingSteps]

    # evaluation

    def evaluate(self, steps: StepMethod) -> bool:
        """Evaluate the policy: during training with off-policy evaluation on the evaluation episodes, and in the
        environment if there is an environment.

        :param steps: the length of the evaluation in the environment
        :return: True if the run should stop because the success rate is reached
        :raises CoachError: if there is no environment, and no training
        """
        is_training = self.improvement.end is not None
        if is_training:
            self.run_off_policy_evaluation()
        if self.env_params is not None:
            return super().evaluate(steps)
        if not is_training:
            raise CoachError(f"graph '{self.name}' learns only from data: it has no environment to evaluate in")
        return False

    def initialize_ope_models_and_stats(self) -> None:
        """Select the evaluation episodes, and predict their rewards with the reward model.

        If the data have no probabilities of actions, they are estimated from the training episodes.

        :raises CoachError: if there are no evaluation episodes
        """
        agent = self.get_agent()
        network, memory = agent.networks["reward_model"], agent.memory
        memory.prepare_evaluation_dataset()
        if any(BEHAVIOUR not in step.info for step in memory.evaluation_dataset_as_transitions):
            self._estimate_behaviour(network.input_names)
        self._filter(memory.evaluation_dataset_as_transitions)
        temperature = self.agent_params.network_wrappers["main"].softmax_temperature
        self.ope_manager = OpeManager(temperature, agent.spaces.action_mask_name)
        self.ope_manager.gather_static_shared_stats(
            memory.evaluation_dataset_as_transitions,
            self.agent_params.network_wrappers["reward_model"].batch_size,
            network.online_network,
            network.input_names,
        )

    def _filter(self, kept_back: Sequence[Any]) -> None:
        """Apply the agent's pre-network filter to the states and rewards of the evaluation steps, in place. The
        evaluation episodes contain the same transitions, so they change too. The filters' statistics do not change."""
        if changes_nothing(self.get_agent().pre_network_filter):
            return
        filtered = self.get_agent().update_loop.filtered(Batch(kept_back), may_update=False)
        for row, step in enumerate(kept_back):
            step.state = {name: column[row] for name, column in filtered.state_columns.items()}
            step.next_state = {name: column[row] for name, column in filtered.next_state_columns.items()}
            step.reward = filtered.reward_column[row]

    def _estimate_behaviour(self, names: Sequence[str]) -> None:
        agent = self.get_agent()
        training = agent.memory.transitions_at(np.arange(agent.memory.num_training_transitions()))
        kept_back = agent.memory.evaluation_dataset_as_transitions
        states = [
            np.concatenate([np.reshape(batch.state_columns[name], (len(batch), -1)) for name in names], axis=1)
            for batch in (training, Batch(kept_back))
        ]
        rows = estimated_behaviour(states[0], training.actions(), states[1], agent.spaces.action.num_actions)
        for step, probabilities in zip(kept_back, rows):
            step.info[BEHAVIOUR] = probabilities
        screen.warning(
            f"{self.name}: the data have no probabilities of actions; off-policy evaluation estimates them from "
            f"the frequencies of actions in the nearest states"
        )

    def run_off_policy_evaluation(self) -> None:
        """Estimate the value of the agent's policy from the evaluation episodes, if there is a reward model. The
        estimates are written to the CSV row of the epoch that has ended. Then call the agent's method of this name.

        Two policies are estimated: softmax(Q / ``softmax_temperature``), as in Intel's Coach, and the greedy policy,
        which a trained agent uses. The effective sample size is written for the greedy policy."""
        if self._estimates:
            self._estimate()
        self.get_agent().run_off_policy_evaluation()

    def _estimate(self) -> None:
        if self.ope_manager is None:
            self.initialize_ope_models_and_stats()
        assert self.ope_manager is not None
        deployed = copy.copy(self.ope_manager)
        deployed.temperature = 0
        for manager, columns in ((self.ope_manager, _COLUMNS), (deployed, _COLUMNS_OF_DEPLOYED)):
            estimation = self._estimated_by(manager)
            for name, column in columns.items():
                self.log_signal(column, getattr(estimation, name))
        # the loop above has estimated the deployed policy last, so the steps hold its importance ratios
        data = recorded(self.get_agent().memory.evaluation_dataset_as_episodes, self.agent_params.algorithm.discount)
        self.log_signal(_SAMPLE_SIZE, effective_sample_size(log_weights(data.log_ratios, data.mask)[:, -1]))
        if _FITTED_Q_NETWORK in self.get_agent().networks:
            self.log_signal(_FITTED_Q, self._fit_q(deployed))

    def _fit_q(self, deployed: OpeManager) -> float:
        """The mean value of the greedy policy in the first states of the evaluation episodes, by fitted Q evaluation.
        The network ``fitted_q`` starts with its weights from the last evaluation."""
        agent = self.get_agent()
        main, network = agent.networks["main"], agent.networks[_FITTED_Q_NETWORK]
        size = self.agent_params.network_wrappers[_FITTED_Q_NETWORK].batch_size
        steps = Batch(agent.memory.evaluation_dataset_as_transitions)
        first = Batch([episode[0] for episode in agent.memory.evaluation_dataset_as_episodes if len(episode)])
        # a resumed run draws the same order
        rng = np.random.default_rng([self._seed_of_data, agent.batches.epoch])

        def values(states: StateType) -> np.ndarray:
            return predictions(network.online_network, {name: states[name] for name in network.input_names}, size)

        def policy(states: StateType) -> np.ndarray:
            inputs = {name: states[name] for name in main.input_names}
            return deployed.policy(predictions(main.online_network, inputs, size), states)

        def fit(states: StateType, actions: np.ndarray, targets: np.ndarray) -> Predict:
            for rows in np.array_split(rng.permutation(len(actions)), -(-len(actions) // size)):
                own = {name: column[rows] for name, column in states.items()}
                agent.regress(_FITTED_Q_NETWORK, own, actions[rows], targets[rows])
            self.stop_signals.stop_if_asked()
            return values

        q = fitted_q_evaluation(
            steps.state_columns, steps.actions(), steps.rewards(), steps.next_state_columns, steps.terminateds(),
            policy(steps.next_state_columns), self.agent_params.algorithm.discount, self.fitted_q_num_epochs,
            fit, values,
        )  # fmt: skip
        return float(np.mean(np.sum(policy(first.state_columns) * q(first.state_columns), axis=1)))

    def _estimated_by(self, manager: OpeManager) -> OpeEstimation:
        agent, parameters = self.get_agent(), self.agent_params
        main = agent.networks["main"]
        return manager.evaluate(
            agent.memory.evaluation_dataset_as_episodes,
            agent.memory.evaluation_dataset_as_transitions,
            parameters.network_wrappers["main"].batch_size,
            parameters.algorithm.discount,
            main.online_network,
            main.input_names,
        )


def _memory_of_episodes(whose: str) -> str:
    return f"a data set consists of episodes: set {whose}.memory to EpisodicExperienceReplayParameters()"
