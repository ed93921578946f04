"""An agent for a loop that you write yourself."""

from __future__ import annotations

import contextlib
import inspect
import json
import pathlib
from typing import Any, Callable, Iterable, Iterator, Literal, Mapping, Sequence, TypeAlias, cast

import numpy as np

from rl_coach.agents import recorded_steps
from rl_coach.base_parameters import AgentParameters
from rl_coach.callbacks.callback import Callback, RunView
from rl_coach.core_types import ActionInfo, ActionType, EnvironmentEpisodes, EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.environments.fed_environment import FedEnvironment, FedEnvironmentParameters
from rl_coach.environments.gym_spaces import ACTION_MASK
from rl_coach.environments.vector_levels import final_of, info_of, with_joined_masks
from rl_coach.graph_managers.own_loop_graph_manager import OwnLoopGraphManager
from rl_coach.installation import default_framework
from rl_coach.memories.non_episodic.demonstration_replay import DemonstrationReplay
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplay
from rl_coach.own_loop import saved
from rl_coach.own_loop.making import algorithm_parameters, make_graph, make_task
from rl_coach.own_loop.places import Places
from rl_coach.policy.export import acting_now, export_acting
from rl_coach.policy.policy import Policy
from rl_coach.space_values import mask_array, mask_space_of, one_number, part_of_observation, row_of_states, truth
from rl_coach.utilities.dynamic_import import class_path, short_dynamic_import
from rl_coach.utilities.raw_actions import together
from rl_coach.utils import CoachError
from rl_coach.vector_level_manager import VectorLevelManager

DEFINITION_FILE = "agent.json"
_AUTORESET_MODES = ("disabled", "next_step", "same_step")
_OBSERVATION = "observation"  # the name of an observation that the environment does not name
_SPECS = "rl_coach.own_loop.specs"  # not imported above, because it imports this module


class Agent:
    """An agent for your own loop. It acts, stores experience and learns when you call its methods.

    It has the same graph as a run of a preset, so counters, signals, checkpoints, filters, masks, n-step returns and
    priorities work in the same way. ``make_agent`` creates an agent::

        agent = make_agent("DQN", observation_space=env.observation_space, action_space=env.action_space)
        state, _ = env.reset(seed=agent.environment_seed)
        while agent.total_steps < 10_000:
            action = agent.act(state)
            state, reward, terminated, truncated, _ = env.step(action)
            agent.observe(reward, terminated, truncated, state)
            if terminated or truncated:
                state, _ = env.reset()

    :param graph: the created graph, with a ``FedEnvironment``
    :param env_ids: the names of the environments
    :param updates_itself: True: ``observe`` makes the updates of the algorithm. False: only ``update`` learns
    :param definition: the arguments of ``make_agent``, for ``save``

    :ivar graph_manager: the graph
    :ivar updates_itself: True if ``observe`` makes the updates that are due
    """

    def __init__(
        self,
        graph: OwnLoopGraphManager,
        env_ids: Sequence[Any] = (0,),
        updates_itself: bool = True,
        definition: Mapping[str, Any] | None = None,
    ):
        self.graph_manager = graph
        self._level = graph.top_level_manager
        self._core = graph.get_agent()
        self._places = Places(env_ids)
        self.updates_itself = updates_itself
        self._definition = dict(definition or {})
        self._evaluation_rewards: list[float] | None = None
        self._autoreset_mode: str | None = None
        self._waiting: set[int] = set()
        self._policy: tuple[tuple[int, int], Policy] | None = None

    @classmethod
    def from_spec(cls, spec: Any = None, kwargs: Mapping[str, Any] | None = None, **additions: Any) -> Agent:
        """The agent for a specification of TensorForce (0.3, 0.4) or RLgraph.

        ``Agent.from_spec("dqn.json", states=dict(type="float", shape=4), actions=dict(type="int", num_actions=2))``

        Settings that the specification leaves out have Coach's defaults. The agent has the methods of that system:
        see ``rl_coach.own_loop.tensorforce`` and ``rl_coach.own_loop.rlgraph``.

        :param spec: a dict, its JSON or YAML text, or the path of a file with one of these. Its ``type`` selects the
            algorithm
        :param kwargs: keys that replace keys of ``spec``
        :param additions: further keys, such as ``states`` and ``actions`` of TensorForce or ``state_space`` and
            ``action_space`` of RLgraph; and the arguments of ``make_agent`` from ``action_mask`` to
            ``reward_threshold``
        :raises CoachError: if the specification is wrong, or has a key that Coach does not support
        """
        agent: Agent = short_dynamic_import(f"{_SPECS}:agent_from_spec")(spec, {**(kwargs or {}), **additions})
        return agent

    def __repr__(self) -> str:
        spaces = self._core.environment_spaces
        observations = ", ".join(f"{name}: {space!r}" for name, space in spaces.state.sub_spaces.items())
        name = type(self._core.ap).__name__.removesuffix("AgentParameters")
        return (
            f"{type(self).__name__}({name}, observations {{{observations}}}, actions {spaces.action!r}, "
            f"{self.total_steps:,} steps, {self.total_updates:,} updates)"
        )

    # facts

    @property
    def environment_seed(self) -> int:
        """The seed for the first ``reset`` of your environment. With this seed, your loop gives the same results as a
        run of a preset. With several environments, environment i uses this seed plus i.
        """
        return int(self.graph_manager.env_params.seed)

    @property
    def total_steps(self) -> int:
        """Steps in your environments, in heatup and in training."""
        counters = self.graph_manager.total_steps_counters
        return sum(counters[phase][EnvironmentSteps] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))

    @property
    def total_updates(self) -> int:
        """Updates of the networks."""
        return self.graph_manager.total_steps_counters[RunPhase.TRAIN][TrainingSteps]

    @property
    def autoreset_mode(self) -> str | None:
        """Gymnasium's ``AutoresetMode`` of your vector environment: ``"next_step"`` or ``"same_step"``; or
        ``"disabled"`` if the environment does not reset itself. With None, the default, ``act`` raises an error if a
        state shows that the environment resets itself.

        :raises CoachError: if the mode does not exist
        """
        return self._autoreset_mode

    @autoreset_mode.setter
    def autoreset_mode(self, mode: Any) -> None:
        name = str(getattr(mode, "name", mode)).lower()
        if mode is not None and name not in _AUTORESET_MODES:
            raise CoachError(f"there is no autoreset_mode {mode!r}; choose from {', '.join(_AUTORESET_MODES)}")
        self._autoreset_mode = None if mode is None else name

    @property
    def uses_masks_of_infos(self) -> bool:
        """True if the agent needs the ``action_mask`` of each info."""
        return self._environments[0].masks_are_in_infos

    @property
    def _environments(self) -> list[FedEnvironment]:
        """The environments of the user's loop in the current phase."""
        if self._level.has_one_episode:
            return [self._level.active_environment]
        return self._level.environment.copies

    # acting

    def act(
        self,
        states: Any,
        env_ids: Any = None,
        deterministic: bool = False,
        infos: Any = None,
    ) -> Any:
        """Choose an action for the current state of your environment, or of several of them.

        :param states: the state of one environment; with several environments [N, ...], a dict of arrays, or a list
        :param env_ids: the names of the environments of the states; None for all environments. With a single name,
            ``states`` is a single state
        :param deterministic: choose the policy's best action, without exploration
        :param infos: the info of your environment, a dict; with several environments a list of dicts, or the dict of a
            vector environment
        :return: the action in the form of your environment; with several environments a list, or, if actions are tuples
            or dicts, one tuple or dict with an array [N, ...] for each part
        :raises CoachError: if a state has a wrong form, the last action has no answer yet, or the state differs from
            the state that ``observe`` received
        """
        indices, given, about = self._given(states, env_ids, infos)
        if self._evaluation_rewards is None:
            self.graph_manager.enter_phase()
        environments = self._environments
        asked, indices = indices, self._without_waiting(indices, given, about, self._is_batch(env_ids))
        for index in indices:
            fed = environments[index].fed
            if not environments[index].is_fed and not self._episode_is_over(index):
                self._leave(index)  # an episode that ``learn`` left in its simulator
            if fed.action is not None and fed.deferred is None:
                raise CoachError(f"{self._places.name(index)} has not answered the last action: call observe first")
        self._take_deferred({i: (given[i], about[i]) for i in indices if environments[i].fed.deferred is not None})
        for index in indices:
            self._show(index, given[index], about[index])
        chosen = self._choose(indices, deterministic) if indices else {}
        actions = {index: environments[index].expect_answer(chosen[index].action) for index in indices}
        taken = [actions[index] if index in actions else environments[index].lost_action for index in asked]
        if not self._is_batch(env_ids):
            return taken[0]
        return together(taken) if isinstance(taken[0], (tuple, dict)) else taken

    def _without_waiting(
        self, indices: list[int], given: Mapping[int, Any], about: Mapping[int, Any], is_batch: bool
    ) -> list[int]:
        """The environments in which the agent acts now. The others begin an episode in their next step, and ignore the
        action of this step.

        :raises CoachError: if an environment resets itself, and ``autoreset_mode`` does not say when
        """
        if not is_batch or self._autoreset_mode in ("disabled", "same_step"):
            return indices
        environments, resets_itself = self._environments, self._autoreset_mode == "next_step"
        waiting = {i for i in indices if environments[i].shows_end(given[i], about[i], resets_itself)}
        if waiting and self._autoreset_mode is None:
            raise CoachError(
                f"the episode of {self._places.name(min(waiting))} has ended, and act received the same state as "
                f"observe: if your vector environment resets itself, set agent.autoreset_mode to 'next_step' or "
                f"'same_step', as its metadata says; otherwise call its reset, and set autoreset_mode to 'disabled'"
            )
        for index in waiting:
            environments[index].fed.end = "passed"
        self._waiting = (self._waiting - set(indices)) | waiting
        return [index for index in indices if index not in waiting]

    def _given(self, states: Any, env_ids: Any, infos: Any) -> tuple[list[int], dict[int, Any], dict[int, Any]]:
        """The numbers of the environments, their states and their infos, after a check of their form."""
        indices = self._indices(env_ids)
        environments = self._environments
        infos = _checked_infos(infos, len(indices) if self._is_batch(env_ids) else None)
        if not self._is_batch(env_ids):
            given, about = {indices[0]: states}, {indices[0]: infos}
        else:
            count, are_tuples = len(indices), self._observes_tuples
            given = {index: row_of_states(states, number, count, are_tuples) for number, index in enumerate(indices)}
            about = {index: info_of(infos, number) for number, index in enumerate(indices)}
        for index in indices:
            environments[index].require_fitting(given[index])
        return indices, given, about

    @property
    def _observes_tuples(self) -> bool:
        return self._environments[0].observes_tuples

    def _indices(self, env_ids: Any) -> list[int]:
        if self._level.has_one_episode:
            return [0]
        return self._places.indices(env_ids)

    def _is_batch(self, env_ids: Any) -> bool:
        return not self._level.has_one_episode and self._places.is_batch(env_ids)

    def _episode_is_over(self, index: int) -> bool:
        over = self.graph_manager.reset_required
        return over if self._level.has_one_episode else over or index in self._level.due

    def _show(self, index: int, observation: Any, info: Mapping[str, Any]) -> None:
        environment = self._environments[index]
        if self._episode_is_over(index):
            environment.begin_with(observation, info)
        elif not environment.shows(observation, info):
            raise CoachError(
                f"the state of {self._places.name(index)} differs from the state that observe received: call reset if "
                f"you left its episode"
            )

    def _choose(self, indices: list[int], deterministic: bool) -> dict[int, ActionInfo]:
        self.graph_manager.begin_step()
        level, core = self._level, self._core
        if level.has_one_episode:
            level.look()
            chosen = {0: core.act(self._best_action()) if deterministic else level.choose()}
        else:
            level.look_in(indices)
            chosen = level.choose_in(indices) if not deterministic else {}
            for index in indices if deterministic else ():
                core.parallel.enter(index)
                chosen[index] = core.act(self._best_action())
        if None in chosen.values():
            raise CoachError(f"agent '{core.name}' does not act: it only learns from its memory")
        return cast(dict[int, ActionInfo], chosen)

    def _best_action(self) -> ActionType:
        """The current policy's action for the current state, without exploration."""
        core = self._core
        if (override := core.acts_otherwise) is not None:
            raise CoachError(
                f"agent '{core.name}' cannot act without exploration, because its policy_description() does not "
                f"contain {override}: do not ask for the best action, or define policy_description() in the same class"
            )
        description = core.policy_description()
        if description is None:
            raise CoachError(
                f"agent '{core.name}' cannot act without exploration, because its policy_description() returns None: "
                f"do not ask for the best action, or define this method and action_choice() of the exploration policy"
            )
        network, state = description.acting_network(core.networks), core.episode.curr_state
        filtered = core.run_pre_network_filter_for_inference(state)
        before = network.recurrent_state
        if "noise" in before:  # zeros draw the most probable state of a world model, as in the exported policy
            before = network.recurrent_state = {**before, "noise": np.zeros_like(before["noise"])}
        inputs = core.prepare_batch_for_inference(filtered, description.network)
        network.has_noise = False
        try:
            outputs = network.predict(inputs, outputs=list(description.outputs), squeeze_output=False)
        finally:
            network.has_noise = True
        if core.stores_recurrent_states:  # the agent then passes the recurrent state to the network
            network.recurrent_state = before
        mask = core.spaces.action_mask(state)
        masks = None if mask is None else np.asarray(mask)[None]
        return description.choice.choose(outputs, masks, core.rng, True)[0]

    # learning

    def observe(
        self,
        reward: Any,
        terminated: Any,
        truncated: Any = False,
        next_states: Any = None,
        env_ids: Any = None,
        infos: Any = None,
    ) -> None:
        """Observe your environment's answer to the last action, and learn if an update is due.

        Without ``next_states``, the step waits for the states of the next ``act``. A step that terminates its episode
        does not wait: its own state is stored as the next state, because no value depends on the next state.

        :param reward: a number; with several environments [N], like all arguments
        :param terminated: the episode has reached a terminal state
        :param truncated: a limit on its length ended the episode
        :param next_states: the states after the action, also the last state of an episode
        :param env_ids: as for ``act``
        :param infos: as for ``act``. In a vector environment with the autoreset mode ``same_step``, they contain the
            last states of episodes as ``final_obs``
        :raises CoachError: if there was no action, a state or reward has a wrong form, or the last state of a truncated
            episode is missing, so that its value cannot be computed
        """
        if self._evaluation_rewards is None:
            self.graph_manager.enter_phase()  # the agent may have been loaded after the action
        indices, is_batch = self._indices(env_ids), self._is_batch(env_ids)
        values = {"reward": reward, "terminated": terminated, "truncated": truncated, "next_states": next_states}
        answers, are_tuples = {}, self._observes_tuples
        infos = _checked_infos(infos, len(indices) if is_batch else None)
        for number, index in enumerate(indices):
            if index in self._waiting:  # the episode has begun, and the next ``act`` is given its first state
                self._waiting.remove(index)
                continue
            one = {
                name: row_of_states(value, number, len(indices), name == "next_states" and are_tuples)
                if is_batch and value is not None
                else value
                for name, value in values.items()
            }
            for name in ("terminated", "truncated"):
                one[name] = truth(one[name], f"'{name}' of {self._places.name(index)}")
            info = info_of(infos, number) if is_batch else infos
            if is_batch and (one["terminated"] or one["truncated"]):
                one["next_states"], info = self._last_of_episode(index, number, one["next_states"], infos, info)
            answers[index] = self._answer(index, one, info)
        self._take(answers)

    def _last_of_episode(self, index: int, number: int, state: Any, infos: Any, info: Any) -> tuple[Any, Any]:
        """The last state of an episode, and its info. :param number: the environment's row in ``infos``

        :raises CoachError: if ``state`` is the first state of the next episode, and the last state is missing
        """
        if isinstance(infos, Mapping) and "final_obs" in infos:
            return final_of(infos, number)
        if self._autoreset_mode == "same_step":
            raise CoachError(
                f"the last state of the episode of {self._places.name(index)} is missing: pass the infos of your "
                "vector environment, which contain this state as 'final_obs', to observe"
            )
        return state, info

    def _answer(self, index: int, values: dict[str, Any], info: dict[str, Any]) -> tuple[Any, ...]:
        """A checked answer: next state, reward, terminated, truncated, info."""
        environment, name = self._environments[index], self._places.name(index)
        next_state = values["next_states"]
        terminated, truncated = values["terminated"], values["truncated"]
        if environment.fed.action is None or environment.fed.deferred is not None:
            raise CoachError(f"{name} has received no action: call act before observe")
        reward = one_number(values["reward"], f"the reward of {name}")
        if next_state is not None:
            environment.require_fitting(next_state)
        elif truncated and not terminated:
            raise CoachError(
                f"the episode of {name} was truncated, and its value depends on its last state: give next_states"
            )
        return next_state, reward, terminated, truncated, info

    def _take_deferred(self, brought: dict[int, tuple[Any, dict[str, Any]]]) -> None:
        answers = {}
        for index, (observation, info) in brought.items():
            deferred = self._environments[index].fed.deferred
            assert deferred is not None
            reward, before = deferred
            answers[index] = (observation, reward, False, False, {**before, **info})
        if answers:
            self._take(answers)

    def _take(self, answers: dict[int, tuple[Any, ...]]) -> None:
        """Process the answers. An answer without its next state waits for this state, unless its episode has
        terminated."""
        environments, level = self._environments, self._level
        responses = {}
        for index, (next_state, reward, terminated, truncated, info) in answers.items():
            environment = environments[index]
            if next_state is None and not terminated:
                environment.fed.deferred = (reward, info)
                continue
            responses[index] = environment.take_answer(next_state, reward, terminated, truncated, info)
        if not responses:
            return
        *_, response = responses.values()
        if level.has_one_episode:
            level.take_in(response)
        else:
            cast(VectorLevelManager, level).take_in_from(responses)
        self.graph_manager.end_step(response, len(responses))
        self._after_step()

    def _after_step(self) -> None:
        graph = self.graph_manager
        if self._evaluation_rewards is not None:
            if graph.reset_required:
                self._evaluation_rewards.append(float(np.sum(self._level.total_reward_in_current_episode)))
            return
        if graph.phase is RunPhase.HEATUP:
            graph.leave_heatup_if_over()
            return
        if self._learns_now:
            graph.train()
        if graph.writes_checkpoints and graph.checkpoints.schedule.is_regular:
            graph.occasionally_save_checkpoint()

    @property
    def _learns_now(self) -> bool:
        """True if ``observe`` makes updates after the current step."""
        return self.updates_itself

    def update(self, batch: Mapping[str, Any] | None = None) -> float:
        """Learn now: make a phase of updates from the memory, or one update on a batch. The algorithm counts the steps
        to its next training phase from this call.

        :param batch: ``states``, ``actions``, ``rewards``, ``terminals`` and ``next_states``, [B, ...] each, in the
            form of your environment. Optional ``importance_weights`` [B] weight the losses of the rows, and optional
            ``info`` and ``next_info`` contain action masks. None learns from the memory
        :return: the loss; 0 if there is no experience to learn from yet. With a batch, the result is a ``Loss``, which
            also has the loss of each row
        :raises CoachError: if a batch was given, but the agent cannot learn from single recorded steps; a column is
            missing or unknown; or a value does not belong to its space
        """
        graph, core = self.graph_manager, self._core
        counts = graph.total_steps_counters[RunPhase.TRAIN]
        before, loss = core.training_iteration, 0.0
        with graph.phase_context(RunPhase.TRAIN):
            if batch is not None:
                loop, given = core.update_loop, recorded_steps.batch(core, self._environments[0], batch)
                loop.latest = None
                learned = loop.learn_from_batch(loop.filtered(given))
                loss = recorded_steps.Loss.of(core, learned, loop.latest, len(given))
                loop.close_phase()
            elif core.should_train() and self._fills_a_batch:
                loss = float(core.train())
            elif not core.is_on_policy and core.batches.has_rows and self._fills_a_batch:
                loss = float(core.learning.learn(None))
        counts[TrainingSteps] += core.training_iteration - before
        recorded_steps.warn_of_targets(core, before)
        return loss

    @property
    def _fills_a_batch(self) -> bool:
        """False if the memory draws each transition once, and there are too few of them for a batch."""
        memory = self._core.memory
        if not isinstance(memory, PrioritizedExperienceReplay) or isinstance(memory, DemonstrationReplay):
            return True
        networks = self.graph_manager.agent_params.network_wrappers.values()
        return memory.num_transitions() >= max(one.batch_size for one in networks)

    def learn(
        self,
        total_steps: int,
        evaluate_every: int | None = None,
        callback: _GivenCallback | Sequence[_GivenCallback] | None = None,
    ) -> Agent:
        """Act and learn in the environment that the agent was made with, as ``GraphManager.improve`` does.

        :param total_steps: steps of training, without the steps of the heatup
        :param evaluate_every: steps between evaluations of five episodes; None for no evaluation
        :param callback: a ``Callback``; a function that is called with the agent after each evaluation, and ends the
            training by returning False; or a list of these
        :return: this agent
        :raises CoachError: if the agent was made from spaces, without an environment
        """
        graph = self.graph_manager
        if not self._environments[0].has_simulator:
            raise CoachError("learn needs an environment to act in: pass env to make_agent, or call act and observe")
        graph.improve_steps = EnvironmentSteps(total_steps)
        graph.steps_between_evaluation_periods = EnvironmentSteps(evaluate_every or total_steps)
        graph.evaluation_steps = EnvironmentEpisodes(5 if evaluate_every else 0)
        given = callback if isinstance(callback, Sequence) else [] if callback is None else [callback]
        graph.use_callbacks([one if isinstance(one, Callback) else _AfterEvaluations(self, one) for one in given])
        self.reset()
        graph.count_from_here()
        graph.improve()
        return self

    def import_observations(self, data: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> int:
        """Store recorded steps, in order, as if the agent had played them. Steps and updates are not counted.

        If a step does not begin in the next state of the previous step, a new episode begins. A warning reports the
        number of these cases. An unfinished last episode counts as truncated. Filters compute their statistics from all
        steps before the first step is stored.

        :param data: columns ``states``, ``actions``, ``rewards``, ``terminals`` and, if they are known, ``truncated``
            and ``next_states``, [N, ...] each; or a dict of these names for each step. The last step of a truncated or
            unfinished episode needs its ``next_states``. ``info`` and ``next_info`` contain action masks
        :return: number of steps stored
        :raises CoachError: if the agent only learns from its own steps; a column is missing, unknown or has a wrong
            form; a value does not belong to its space; or a filter needs the steps in order, and they are not
        """
        return recorded_steps.store(self._core, self._environments[0], data)

    # using what was learned

    def predict(self, states: Any, deterministic: bool = True, infos: Any = None) -> Any:
        """The policy's action for a state. Nothing is stored or counted, and the random streams of the agent do not
        change.

        A policy that remembers its episode (stacked frames, a recurrent network) continues the episode of earlier
        calls, until ``reset`` or the next update.

        :param states: one state, or a batch [B, ...] of them
        :param deterministic: the best action; otherwise a draw from a separate random stream
        :param infos: the info of your environment, a dict or a list of dicts; required if the agent was made with
            ``action_mask=True``
        :return: an action in the form of your environment, or [B, ...]
        :raises CoachError: if a state has a wrong form, a mask is missing, or the agent does not use masks
        """
        policy = self._acting_policy()
        if infos:
            masks = self._masks_of(infos)
            if ACTION_MASK not in policy.observation_shapes:
                raise CoachError(
                    f"the agent does not use the '{ACTION_MASK}' of infos: make it with action_mask=True, or leave out "
                    f"infos"
                )
            named = dict(enumerate(states)) if self._observes_tuples else states
            states = {**(named if isinstance(named, Mapping) else {_OBSERVATION: named}), ACTION_MASK: masks}
        elif self.uses_masks_of_infos and not (isinstance(states, Mapping) and ACTION_MASK in states):
            raise CoachError(f"predict needs the '{ACTION_MASK}' of each state: give the infos of the states")
        shapes, has_parts = policy.observation_shapes, isinstance(states, Mapping) or self._observes_tuples
        parts = {name: part_of_observation(states, name) if has_parts else states for name in shapes}
        shapes |= self._environments[0].raw_shapes  # the policy has a table of features as a vector
        is_batch = all(np.ndim(part) > len(shapes[name]) for name, part in parts.items() if part is not None)
        return policy.act_batch(states, deterministic) if is_batch else policy.act(states, deterministic)

    def _masks_of(self, infos: Any) -> Any:
        """The mask of an info, or the masks of a list of infos as an array."""
        space = mask_space_of(self._core.environment_spaces.action)
        if space is None:
            raise CoachError("infos are only for discrete actions, which an action_mask can mask: leave out infos")
        try:
            if isinstance(infos, Mapping):
                return mask_array(space, infos[ACTION_MASK])
            return np.stack([mask_array(space, one[ACTION_MASK]) for one in infos])
        except (LookupError, TypeError, ValueError) as error:
            raise CoachError(
                f"infos must be an info with an '{ACTION_MASK}', or a list of such infos: {error!r}"
            ) from error

    def _acting_policy(self) -> Policy:
        core = self._core
        present = (core.clock.optimizer_steps, core.clock.steps)
        if self._policy is None or self._policy[0] != present:
            self._policy = present, acting_now(core, self._about())
        return self._policy[1]

    def _about(self) -> dict[str, Any]:
        framework = self.graph_manager.task_parameters.framework_type.name
        seen = self.graph_manager.env_params.as_seen()
        return {
            "graph": self.graph_manager.name, "framework": framework, "steps": self.total_steps, "environment": seen,
        }  # fmt: skip

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[list[float]]:
        """A context for evaluation: within it, ``act`` and ``observe`` play episodes of one environment without
        learning. Training then continues in the middle of its episodes, with the same results as without the
        evaluation, bit for bit.

        :return: the list of the total rewards of the episodes that ended
        """
        if self._evaluation_rewards is not None:
            raise CoachError("an evaluation is already in progress: leave its 'with' block first")
        with self.graph_manager.evaluation() as rewards:
            self._evaluation_rewards = rewards
            try:
                yield rewards
            finally:
                self._evaluation_rewards = None

    def reset(self, env_ids: Any = None) -> None:
        """End the episodes in progress, which count as truncated. The next states begin new episodes.

        :param env_ids: the environments; None for all
        """
        self._policy = None
        for index in self._indices(env_ids):
            if self._episode_is_over(index):
                self._environments[index].fed.end = "passed"
            else:
                self._leave(index)

    def _leave(self, index: int) -> None:
        level, core, fed = self._level, self._core, self._environments[index].fed
        fed.action = fed.deferred = None
        if not level.has_one_episode:
            core.parallel.enter(index)
            level.due[index] = True
        else:
            self.graph_manager.require_reset()
        if self._evaluation_rewards is None and not core.episode.buffer.is_empty():
            core.handle_episode_ended()

    def get_weights(self) -> dict[str, list[np.ndarray]]:
        """The weights of each network by its name."""
        return {name: network.online_network.get_weights() for name, network in self._core.networks.items()}

    def set_weights(self, weights: Mapping[str, Sequence[np.ndarray]]) -> None:
        """Set the weights from ``get_weights``, also in target networks.

        :raises CoachError: if a network or a shape does not fit; the agent is unchanged then
        """
        networks = self._core.networks
        present = self.get_weights()
        for name in sorted({*weights, *present}):
            shapes = [[np.shape(one) for one in arrays.get(name, ())] for arrays in (weights, present)]
            if shapes[0] != shapes[1]:
                raise CoachError(
                    f"network '{name}' needs weights of the shapes {shapes[1]}, and set_weights got {shapes[0]}"
                )
        for name, network in networks.items():
            network.online_network.set_weights(list(weights[name]))
            if network.has_target:
                network.update_target_network()
        self._policy = None

    # files

    def save(self, path: str | pathlib.Path) -> str:
        """Write a checkpoint with the memory and the episodes in progress, so that ``load`` continues exactly.

        :param path: a directory; an earlier checkpoint there is replaced
        :return: the path of the checkpoint in this directory
        """
        graph, directory = self.graph_manager, pathlib.Path(path)
        definition = self._definition_to_save()
        definition["loop"] = self._loop_state()
        directory.mkdir(parents=True, exist_ok=True)
        (directory / DEFINITION_FILE).write_text(json.dumps(definition, indent=1))
        return graph.checkpoints.save_to(str(directory), graph.get_state(), graph.progress.last_evaluation)

    def _loop_state(self) -> dict[str, Any]:
        """The state of the user's loop, for ``save``."""
        return {"autoreset_mode": self._autoreset_mode, "waiting": sorted(self._waiting)}

    def _set_loop_state(self, state: Mapping[str, Any]) -> None:
        self._waiting = set(state["waiting"])

    def _definition_to_save(self) -> dict[str, Any]:
        return saved.plain_definition(self._definition, self.graph_manager)

    @classmethod
    def load(cls, path: str | pathlib.Path, **arguments: Any) -> Agent:
        """The agent that ``save`` wrote. It continues exactly.

        :param path: the directory
        :param arguments: saved arguments of ``make_agent`` to change; arguments that cannot be saved, such as an
            environment that is an object, must be given again
        :raises CoachError: if the directory has no checkpoint, it is damaged, or an argument is missing
        """
        definition = saved.read_definition(pathlib.Path(path) / DEFINITION_FILE)
        if "spec" in definition:
            agent: Agent = short_dynamic_import(f"{_SPECS}:agent_of_saved_spec")(definition["spec"], arguments)
        else:
            known = inspect.signature(make_agent).parameters
            agent = make_agent(**{"agent_class": cls, **saved.arguments(definition, arguments, known)})
        agent.graph_manager.restore_checkpoint(str(path), continue_run=True)
        agent.autoreset_mode = definition["loop"]["autoreset_mode"]
        agent._set_loop_state(definition["loop"])
        return agent

    def export_model(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write the policy, which acts without a training framework: ``Policy.load(path).act(state)``.

        :param path: a directory that is empty or does not exist
        :return: the directory
        """
        return export_acting(self._core, self._about(), path)

    def close(self) -> None:
        """Write all remaining records, and close the environments."""
        self.graph_manager.close()


def make_agent(
    algorithm: str | AgentParameters | type[AgentParameters],
    env: Any = None,
    *,
    observation_space: Any = None,
    action_space: Any = None,
    action_mask: bool = False,
    num_envs: int = 1,
    env_ids: Iterable[Any] | None = None,
    heatup_steps: int = 0,
    updates_itself: bool = True,
    seed: int | None = None,
    framework: Literal["tensorflow", "jax", "mxnet", "torch"] | None = None,
    num_devices: int | None = None,
    experiment_path: str | None = None,
    reward_threshold: float | None = None,
    agent_class: Callable[..., Agent] | None = None,
    **settings: Any,
) -> Agent:
    """Create an agent for your own loop.

    ``agent = make_agent("DQN", "CartPole-v1", seed=0, learning_rate=1e-3, discount=0.98)``

    :param algorithm: a name such as ``"DQN"`` (``coach algorithms`` lists all names); ``"module:ParametersClass"``; or
        the parameters
    :param env: the environment of ``learn``, which also defines the spaces: an id of Gymnasium, a Gymnasium
        environment, a function that makes one, or parameters such as ``Atari("ALE/Pong-v5")``
    :param observation_space: without ``env``, Gymnasium's space of the observations
    :param action_space: without ``env``, Gymnasium's space of the actions
    :param action_mask: each info of your environment has an ``action_mask``, [A] of 0 and 1
    :param num_envs: number of environments that your loop steps
    :param env_ids: names of the environments, for ``act`` and ``observe``; None numbers them from 0
    :param heatup_steps: steps of random actions before training. With one environment, the last episode is completed at
        random, as in a preset
    :param updates_itself: True: ``observe`` learns as often as the algorithm's settings say. False: only ``update``
        learns
    :param seed: seed of all random numbers; with a seed, the agent is repeatable. None draws a seed
    :param framework: ``tensorflow``, ``jax``, ``mxnet`` or ``torch``; None uses the first of TensorFlow, JAX, PyTorch
        and MXNet that is installed
    :param num_devices: number of devices that share each batch; more than one device needs JAX. None uses one device
    :param experiment_path: directory for signals and checkpoints; None writes no files
    :param reward_threshold: smallest total reward of a successful episode; None uses the environment's threshold
    :param agent_class: a subclass of ``Agent``, or a function with the same arguments
    :param settings: any setting of the algorithm: by its short name (``learning_rate``), by its path from the agent's
        parameters (``**{"algorithm.discount": 0.98}``), or nested (``algorithm={"discount": 0.98}``)
    :raises CoachError: if an argument is wrong
    """
    if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
        raise CoachError(f"num_envs must be the number of your environments, 1 or more, not {num_envs!r}")
    ids = list(range(num_envs)) if env_ids is None else list(env_ids)
    if len(set(ids)) != num_envs:
        raise CoachError(f"env_ids must name each of the {num_envs} environments once, not {env_ids!r}")
    chosen = str(getattr(framework, "name", framework) or default_framework())  # also a member of Frameworks
    parameters = algorithm_parameters(algorithm)
    changed = saved.changed_settings(parameters) if isinstance(algorithm, AgentParameters) else {}
    environment = FedEnvironmentParameters.of(env, observation_space, action_space, num_envs)
    environment.action_mask = action_mask
    environment.num_environments, environment.custom_reward_threshold = num_envs, reward_threshold
    task = make_task(chosen, seed, num_devices, experiment_path)
    graph = make_graph(parameters, environment, heatup_steps, settings, task, experiment_path is not None)
    by_path = isinstance(algorithm, str) and ":" in algorithm
    definition = {
        "algorithm": algorithm if by_path or changed is None else class_path(type(parameters)),
        "env": env,
        "observation_space": observation_space,
        "action_space": action_space,
        "num_envs": num_envs,
        "env_ids": None if env_ids is None else ids,
        "action_mask": action_mask,
        "heatup_steps": heatup_steps,
        "updates_itself": updates_itself,
        "framework": chosen,
        "num_devices": num_devices,
        "reward_threshold": reward_threshold,
        "settings": {**(changed or {}), **settings},
    }
    return (agent_class or Agent)(graph, ids, updates_itself, definition)


def _checked_infos(infos: Any, count: int | None) -> Any:
    """The infos of the user's environments; a mask in parts becomes one array.

    :param count: number of environments; None if ``infos`` is the info of one environment
    :raises CoachError: if the infos have another form, or are not one for each environment
    """
    if infos is None:
        return {}
    if isinstance(infos, Mapping):
        found = infos if count is None else with_joined_masks(infos)
        rows = count if count is None or ACTION_MASK not in found else len(found[ACTION_MASK])
    elif count is None or not isinstance(infos, (list, tuple, np.ndarray)):
        raise CoachError(
            f"infos must be {'one info (a dict)' if count is None else 'a list of infos or a dict'}, not {infos!r:.60}"
        )
    else:
        found, rows = infos, len(infos)
    if rows != count:
        raise CoachError(f"infos has {rows} rows, and there are {count} environments: give an info for each of them")
    return found


_GivenCallback: TypeAlias = Callback | Callable[[Agent], Any]


class _AfterEvaluations(Callback):
    """Calls a function after each evaluation, and ends the training if the function returns False."""

    def __init__(self, agent: Agent, function: Callable[[Agent], Any]):
        self._agent, self._function = agent, function

    def on_evaluation_end(self, run: RunView) -> None:
        if self._function(self._agent) is False:
            run.stop("the callback has returned False")
