"""RLgraph's components: parts of an agent that you can build and call separately.

``rl_coach.testing.ComponentTest(component=..., input_spaces=...)`` builds a component. Components use Coach's networks,
filters, memories and agents.
"""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.recorded_steps import steps_of
from rl_coach.architectures.head_parameters import HeadParameters, PolicyHeadParameters, VHeadParameters
from rl_coach.architectures.policies import entropy
from rl_coach.architectures.standalone import BuiltNetwork, FeaturesParameters
from rl_coach.core_types import EnvResponse, TrainingSteps, Transition
from rl_coach.environments.gym_spaces import action_space_of, observation_space_of
from rl_coach.filters.filter import InputFilter
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.own_loop.agent import Agent
from rl_coach.own_loop.rlgraph_spaces import Dict, FloatBox, Space, Tuple
from rl_coach.own_loop.spec_parts import Definition, LayerDefaults, put_stack, set_replay, stack_of
from rl_coach.policy.action_choice import CategoricalChoice, GaussianChoice
from rl_coach.space_values import truth
from rl_coach.spaces import DiscreteActionSpace, RewardSpace, SpacesDefinition, StateSpace
from rl_coach.utilities.spec_fields import Fields, shown
from rl_coach.utils import CoachError, dynamic_import_and_instantiate_module_from_params

LAYERS = LayerDefaults("linear", "linear", "valid")
"""Settings of RLgraph's layers that a specification leaves out."""
REPLAY: dict[str, bool | None] = {
    "replay": False, "replay_memory": False, "replay_buffer": False, "prioritized": True, "prioritized_replay": True,
    "mem_prioritized_replay": True,
}  # fmt: skip
"""The types of memories in a specification; True for a memory with priorities."""


class Component:
    """A part of an agent that can be built and called alone.

    :param spec: the settings of the component

    :ivar scope: the first part of the variables' names
    """

    kind: str | None = None
    scope = ""

    def __init__(self, **spec: Any):
        self.scope = str(spec.pop("scope", None) or self.scope)
        self.spec = {**({} if self.kind is None else {"type": self.kind}), **spec}

    @classmethod
    def from_spec(cls, spec: Any = None, **settings: Any) -> Any:
        """The component for a specification.

        :param spec: the component itself, a dict of its settings, or its type
        :param settings: settings that replace settings of ``spec``
        :raises CoachError: if the specification has a wrong form
        """
        if isinstance(spec, cls):
            return spec
        given = {"type": spec} if isinstance(spec, str) else {} if spec is None else spec
        if not isinstance(given, Mapping):
            raise CoachError(f"the spec of a {cls.__name__} must be a dict, not {shown(spec)}")
        return cls(**{**given, **settings})

    def build(self, input_spaces: Mapping[str, Any], action_space: Any, framework: str, seed: int) -> None:
        """Create the networks or filters of the component. :param input_spaces: the spaces of its methods' arguments,
        by name"""

    def add_components(self, *components: Any, expose_apis: Any = ()) -> None:
        """Accept ``Synchronizable``. It has no effect, because in Coach all components with variables have ``sync``.

        :raises CoachError: if another component is added
        """
        for one in components:
            if not isinstance(one, Synchronizable):
                raise CoachError(f"add_components supports only Synchronizable, not {shown(one)}")


class Synchronizable(Component):
    """Marks a component with variables that ``sync`` can set."""


class Optimizer(Component):
    """An optimizer from a specification."""


class AdamOptimizer(Optimizer):
    """The optimizer Adam."""

    kind = "adam"


class Exploration(Component):
    """An exploration policy from a specification."""


class SyncSpecification(Component):
    """The period and the rate of updates of a target network.

    :param sync_interval: number of updates between two updates of the target
    :param sync_tau: the target moves towards the newest weights by this share
    """

    def __init__(self, sync_interval: int = 1, sync_tau: float = 1.0):
        super().__init__(sync_interval=sync_interval, sync_tau=sync_tau)


class Memory(Component):
    """A replay memory, which is built from ``records``, a dict of spaces."""

    def build(self, input_spaces: Mapping[str, Any], action_space: Any, framework: str, seed: int) -> None:
        definition, fields = Definition(PolicyGradientsAgentParameters(), space=FloatBox()), Fields(self.spec, "memory")
        definition.parameters.memory = ExperienceReplayParameters()
        set_replay(definition, fields, REPLAY, {"alpha": "memory.alpha", "beta": "memory.beta"})
        fields.finish()
        parameters = definition.parameters.memory
        for path, value in definition.settings.items():
            setattr(parameters, path.removeprefix("memory."), value)
        self.memory = dynamic_import_and_instantiate_module_from_params(parameters)

    def insert_records(self, records: Mapping[str, Any]) -> None:
        """Store steps.

        :param records: [N, ...] by name, in the form of ``get_records``
        :raises CoachError: if a column is missing, has another length, or contains a wrong value
        """
        names = ("states", "actions", "rewards", "next_states", "terminals")
        if lost := [name for name in names if name not in records]:
            raise CoachError(f"the records have no '{lost[0]}': give {', '.join(names)}")
        if isinstance(records["actions"], Mapping):
            raise CoachError("a memory stores one action for each step, not a dict of actions: join its columns")
        columns = {name: records[name] if isinstance(records[name], Mapping) else np.asarray(records[name])
                   for name in names}  # fmt: skip
        for number, one in enumerate(steps_of(columns)):
            state, after = (
                one[name] if isinstance(one[name], Mapping) else {"observation": one[name]}
                for name in ("states", "next_states")
            )
            ends = truth(one["terminals"], f"'terminals' of record {number}")
            self.memory.store(Transition(state, one["actions"], one["rewards"], after, ends))

    def get_records(self, num_records: int) -> dict[str, Any]:
        """Draw steps from the memory. :param num_records: number of steps :return: [num_records, ...] by name"""
        batch = self.memory.sample(num_records)
        columns: dict[str, Any] = {
            "actions": batch.action_column, "rewards": batch.reward_column, "terminals": batch.game_over_column,
        }  # fmt: skip
        states = {"states": batch.state_columns, "next_states": batch.next_state_columns}
        for name, parts in states.items():
            columns[name] = parts["observation"] if list(parts) == ["observation"] else parts
        return columns


class ReplayMemory(Memory):
    """A memory that draws all steps with equal probability."""

    kind = "replay"


class PrioritizedReplay(Memory):
    """A memory that draws steps by their priorities."""

    kind = "prioritized_replay"


def _observations(space: Any, where: str) -> dict[str, tuple[Any, Any]]:
    """Coach's space for each state of a Gymnasium space, and the function that converts its values (None if they do
    not change)."""
    parts = getattr(space, "spaces", {"observation": space})
    named = parts if isinstance(parts, Mapping) else {str(number): one for number, one in enumerate(parts)}
    return {name: observation_space_of(one, None, where, name) for name, one in named.items()}


def _columns(states: Any, read: Mapping[str, tuple[Any, Any]]) -> dict[str, np.ndarray]:
    """States [B, ...] by name, in Coach's form. :param read: the result of ``_observations``"""
    if isinstance(states, tuple) and "observation" not in read:
        states = dict(zip(read, states))
    named = states if isinstance(states, Mapping) else {"observation": states}
    columns = {name: np.asarray(column) for name, column in named.items()}
    return {name: column if read[name][1] is None else read[name][1](column) for name, column in columns.items()}


class PreprocessorStack(Component):
    """Steps of preprocessing. :param steps: a dict for each step"""

    scope = "preprocessor-stack"

    def __init__(self, *steps: Any, scope: str | None = None):
        super().__init__(scope=scope, steps=list(steps))

    @classmethod
    def from_spec(cls, spec: Any = None, **settings: Any) -> Any:
        return (
            spec if isinstance(spec, cls) else cls(*([spec] if isinstance(spec, Mapping) else spec or ()), **settings)
        )

    def build(self, input_spaces: Mapping[str, Any], action_space: Any, framework: str, seed: int) -> None:
        self.get_preprocessed_space(next(iter(input_spaces.values())))

    def get_preprocessed_space(self, space: Any) -> Space:
        """The space of states after the steps."""
        given = Space.from_spec(space).to_gymnasium()
        definition = Definition(PolicyGradientsAgentParameters(), space=given)
        self._filters = definition.parameters.input_filter = InputFilter()
        definition.preprocess(self.spec["steps"], "preprocessing_spec")
        self._read = _observations(given, self.scope)
        after = {name: self._filters.get_filtered_observation_space(name, one) for name, (one, _) in self._read.items()}
        spaces = {name: FloatBox(shape=tuple(one.shape)) for name, one in after.items()}
        parts = getattr(given, "spaces", None)
        if parts is None:
            return spaces["observation"]
        return Dict(spaces) if isinstance(parts, Mapping) else Tuple(list(spaces.values()))

    def preprocess(self, states: Any) -> Any:
        """States after the steps of preprocessing. :param states: [B, ...], consecutive states of an episode"""
        read = _columns(states, self._read)
        rows = [dict(zip(read, one)) for one in zip(*read.values())]
        found = [self._filters.filter(EnvResponse(one, 0.0, False))[0].next_state for one in rows]
        columns = {name: np.stack([one[name] for one in found]) for name in read}
        if isinstance(states, Mapping):
            return columns
        return columns["observation"] if "observation" in columns else tuple(columns.values())

    def reset(self) -> None:
        """Begin an episode."""
        self._filters.reset()


class NeuralNetwork(Component):
    """A network from a specification of its layers: a list of dicts, or a dict with ``layers``.

    :ivar network: the network; None before it is built
    """

    scope = "neural-network"

    def __init__(self, *layers: Any, network_spec: Any = None, **settings: Any):
        given = network_spec if network_spec is not None else list(layers[0] if len(layers) == 1 else layers)
        given = settings.pop("layers", given)
        super().__init__(network_spec=given, **settings)

    @classmethod
    def from_spec(cls, spec: Any = None, **settings: Any) -> Any:
        if isinstance(spec, (list, tuple, NeuralNetwork)) and not isinstance(spec, cls):
            return cls(network_spec=spec, **settings)
        return super().from_spec(spec, **settings)

    @property
    def layers(self) -> Any:
        """The specification of the layers."""
        given = self.spec["network_spec"]
        return given.layers if isinstance(given, NeuralNetwork) else given

    def _heads(self, action: Any) -> list[HeadParameters]:
        """The network's heads, without the features."""
        return []

    def build(self, input_spaces: Mapping[str, Any], action_space: Any, framework: str, seed: int) -> None:
        names = [one for one in ("nn_input", "preprocessed_states", "states", "inputs") if one in input_spaces]
        space = Space.from_spec(input_spaces[names[0]] if names else next(iter(input_spaces.values()))).to_gymnasium()
        definition = Definition(PolicyGradientsAgentParameters(), space=space)
        stack = stack_of(self.layers, "network_spec", LAYERS)
        if stack.cells is not None:
            raise CoachError("the spec's 'network_spec': a component does not support an LSTM, only an agent does")
        put_stack(definition, "main", stack, "network_spec")
        actions = Space.from_spec(action_space or 2).to_gymnasium()
        self.action, self._to_user = action_space_of(actions, self.scope)
        parameters = definition.parameters.network_wrappers["main"]
        parameters.heads_parameters = [FeaturesParameters(), *self._heads(self.action)]
        self._read = _observations(space, self.scope)
        states = StateSpace({name: one for name, (one, _) in self._read.items()})
        spaces = SpacesDefinition(states, None, self.action, RewardSpace(1))
        self.network, self._stack = BuiltNetwork(parameters, spaces, framework, seed), stack
        self.rng = np.random.default_rng(seed)

    def _outputs(self, nn_input: Any) -> list[dict[str, np.ndarray]]:
        return self.network.outputs(_columns(nn_input, self._read))

    @property
    def variable_registry(self) -> dict[str, int]:
        """The names of the variables, each with its index in the network's weights."""
        network = getattr(self.spec["network_spec"], "scope", None) or self._stack.scope or NeuralNetwork.scope
        heads = ("action-adapter/action-layer", "action-adapter/deviation-layer")
        own = "" if type(self) is NeuralNetwork else f"{network}/"
        layers, names = iter([*(own + one for one in self._stack.scopes), *heads]), dict[str, int]()
        for number, weight in enumerate(self.network.get_weights()):
            if weight.ndim > 1:
                layer, kinds = next(layers), iter(("kernel", "bias", "scale", "offset"))
            names[f"{self.scope}/{layer}/dense/{next(kinds)}"] = number
        return names

    def variables(self) -> dict[str, np.ndarray]:
        """The variables by name."""
        weights = self.network.get_weights()
        return {name: weights[number] for name, number in self.variable_registry.items()}

    def sync(self, values: Mapping[str, np.ndarray]) -> None:
        """Set variables by name."""
        self.network.set_weights(list({**self.variables(), **values}.values()))

    def call(self, nn_input: Any) -> np.ndarray:
        """The layers' output, [B, F]."""
        return self._outputs(nn_input)[0]["features"]


class Policy(NeuralNetwork):
    """A policy for a discrete action, or a Gaussian policy for a continuous action.

    :param network_spec: the layers
    :param action_space: the space of actions; None uses the action space of the test
    :param deterministic: ``get_action`` returns the best action
    """

    scope = "policy"

    def __init__(self, network_spec: Any = None, action_space: Any = None, deterministic: bool = True, **settings: Any):
        self.action_space, self.deterministic = action_space, deterministic
        fields = Fields({**settings, "network_spec": network_spec}, "policy_spec")
        for name in ("scope", "network_spec", "action_adapter_spec"):
            fields.get(name)
        fields.choice("type", ("policy",))
        fields.finish()
        super().__init__(network_spec=network_spec, scope=settings.get("scope"))

    def _heads(self, action: Any) -> list[HeadParameters]:
        return [PolicyHeadParameters()]

    def build(self, input_spaces: Mapping[str, Any], action_space: Any, framework: str, seed: int) -> None:
        super().build(input_spaces, action_space if self.action_space is None else self.action_space, framework, seed)

    @property
    def _is_choice(self) -> bool:
        return isinstance(self.action, DiscreteActionSpace)

    def get_nn_output(self, nn_input: Any) -> dict[str, Any]:
        """The output of the layers. :param nn_input: states [B, ...]"""
        return {"output": self.call(nn_input), "last_internal_states": None}

    def get_action_layer_output(self, nn_input: Any) -> dict[str, Any]:
        """The logits [B, A] for discrete actions; the means and standard deviations for continuous actions."""
        return {"output": self._parts(nn_input)["logits"], "last_internal_states": None}

    def get_logits_parameters_log_probs(self, nn_input: Any) -> dict[str, Any]:
        """The outputs of the policy. For discrete actions, these are ``logits``, ``parameters`` (the probabilities)
        and ``log_probs``, [B, A] each. For continuous actions, ``logits`` and ``parameters`` are both the means and the
        standard deviations, and ``log_probs`` is None.
        """
        return {**self._parts(nn_input), "last_internal_states": None}

    def _parts(self, nn_input: Any) -> dict[str, Any]:
        found = self._outputs(nn_input)[1]
        if self._is_choice:
            names = {"logits": "logits", "parameters": "probabilities", "log_probs": "log_probabilities"}
            return {name: found[output] for name, output in names.items()}
        pair = (found["mean"], found["standard_deviation"])
        return {"logits": pair, "parameters": pair, "log_probs": None}

    def get_action(self, nn_input: Any, deterministic: bool | None = None) -> dict[str, Any]:
        """An action for each state, [B, ...]."""
        is_best = self.deterministic if deterministic is None else deterministic
        found = self._outputs(nn_input)[1]
        if self._is_choice:
            chosen = CategoricalChoice().choose([found["probabilities"]], None, self.rng, is_best).astype(np.int32)
        else:
            chosen = GaussianChoice().choose([found["mean"], found["standard_deviation"]], None, self.rng, is_best)
            chosen = np.clip(chosen, self.action.low, self.action.high).astype(np.float32)
        action = chosen if self._to_user is None else np.stack([self._to_user(one) for one in chosen])
        return {"action": action, "last_internal_states": None}

    def get_deterministic_action(self, nn_input: Any) -> dict[str, Any]:
        """The best action for each state, [B, ...]."""
        return self.get_action(nn_input, True)

    def get_stochastic_action(self, nn_input: Any) -> dict[str, Any]:
        """An action for each state, drawn from the policy, [B, ...]."""
        return self.get_action(nn_input, False)

    def get_entropy(self, nn_input: Any) -> dict[str, Any]:
        """The entropy of each state's policy, [B]."""
        return {"entropy": entropy(np, self._outputs(nn_input)[1]), "last_internal_states": None}


class ValueFunction(NeuralNetwork):
    """The value function V(s) of states."""

    scope = "value-function"

    def _heads(self, action: Any) -> list[HeadParameters]:
        return [VHeadParameters()]

    def value_output(self, nn_input: Any) -> np.ndarray:
        """The value of each state, [B, 1]."""
        return self._outputs(nn_input)[1]["v"][:, None]


class SACAgentComponent(Component):
    """Soft actor-critic with batches from the caller.

    :param agent: not supported
    :param policy: the policy, a squashed Gaussian
    :param q_function: the layers of each critic
    :param preprocessor: not supported; states must be preprocessed already
    :param memory: the memory
    :param optimizer: the optimizer of the policy
    :param vf_optimizer: the optimizer of the critics
    :param alpha_optimizer: the optimizer of the temperature; None keeps ``initial_alpha``
    :param q_sync_spec: the updates of the critics' targets
    :param num_q_functions: 1 or 2
    :raises CoachError: if an argument is wrong
    """

    scope = "sac-agent-component"

    def __init__(
        self, agent: Any, policy: Policy, q_function: ValueFunction, preprocessor: Any, memory: Memory, discount: float,
        initial_alpha: float, target_entropy: float | None = None, optimizer: Any = None, vf_optimizer: Any = None,
        alpha_optimizer: Any = None, q_sync_spec: Any = None, num_q_functions: int = 2,
    ):  # fmt: skip
        if agent is not None or PreprocessorStack.from_spec(preprocessor).spec["steps"]:
            raise CoachError("SACAgentComponent: give agent=None and a preprocessor without steps")
        if num_q_functions not in (1, 2):
            raise CoachError(f"SACAgentComponent: num_q_functions must be 1 or 2, not {shown(num_q_functions)}")
        self._policy, self._optimizer, self.vf_optimizer = policy, optimizer, vf_optimizer
        self._q_functions = [q_function] * num_q_functions
        sync = dict((SyncSpecification() if q_sync_spec is None else q_sync_spec).spec)
        sync["sync_interval"] = TrainingSteps(sync["sync_interval"])  # counted in updates
        super().__init__(
            network_spec=policy.layers, value_function_spec=q_function.layers, memory_spec=memory.spec,
            discount=discount, initial_alpha=initial_alpha, target_entropy=target_entropy, update_spec=sync,
            double_q=num_q_functions == 2, optimizer_spec=getattr(optimizer, "spec", None),
            value_function_optimizer_spec=getattr(vf_optimizer, "spec", None),
            alpha_optimizer_spec=False if alpha_optimizer is None else alpha_optimizer.spec,
        )  # fmt: skip

    def build(self, input_spaces: Mapping[str, Any], action_space: Any, framework: str, seed: int) -> None:
        states = Space.from_spec(input_spaces["states"]).with_batch_rank(False)
        spaces = {"state_space": states, "action_space": action_space}
        self.agent: Any = Agent.from_spec({"type": "sac", **self.spec, **spaces}, framework=framework, seed=seed)

    def update_from_external_batch(
        self, preprocessed_states: Any, actions: Any, rewards: Any, terminals: Any, preprocessed_next_states: Any,
        importance_weights: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Make an update on a batch. :return: ``actor_loss``, ``critic_loss`` and ``alpha_loss``"""
        loss = self.agent.update({
            "states": preprocessed_states, "actions": actions, "rewards": rewards, "terminals": terminals,
            "next_states": preprocessed_next_states, "importance_weights": importance_weights,
        })  # fmt: skip
        names = {"actor_loss": "policy", "critic_loss": "q", "alpha_loss": "temperature"}
        return {name: np.float32(loss.by_network.get(network, 0.0)) for name, network in names.items()}

    def get_q_values(self, preprocessed_states: Any, actions: Any) -> list[np.ndarray]:
        """The value of each state and action by each critic, [B, 1] each."""
        rows, core = len(preprocessed_states), self.agent.graph_manager.get_agent()
        steps = {"states": preprocessed_states, "actions": actions, "next_states": preprocessed_states}
        columns = self.agent.columns_of({**steps, "rewards": np.zeros(rows), "terminals": np.ones(rows, bool)})
        inputs = {name.removeprefix("states/"): one for name, one in columns.items() if name.startswith("states/")}
        found = core.networks["q"].online_network.predict(
            {**inputs, "action": columns["actions"]}, squeeze_output=False
        )
        return [values.reshape(rows, 1) for values in found[: len(self._q_functions)]]

    def action_from_preprocessed_state(self, preprocessed_states: Any, deterministic: bool = False) -> tuple[Any, None]:
        """An action for each state, and the state of a recurrent network, which is None."""
        return np.asarray(self.agent.get_action(preprocessed_states, None, not deterministic), np.float32), None
