"""DreamerV3 (Hafner et al. 2023, "Mastering diverse domains through world models")."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from rl_coach.agents.core.batches import BatchSource, MemoryBatches
from rl_coach.agents.core.requirements import HeadRequirement, NetworkRequirement
from rl_coach.agents.core.sequences import stored_state, stored_states
from rl_coach.agents.policy_optimization_agent import PolicyAgent
from rl_coach.agents.rules.dreamer_v3 import DECODER, DreamerSettings, as_features, dreamer_rule, imagined_step
from rl_coach.architectures import world_model
from rl_coach.architectures.network_inputs import NetworkInput
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import UpdateRule
from rl_coach.architectures.values import ValuesParameters
from rl_coach.architectures.world_model import BLOCKS, SHRINKING, SIZES, VARIABLES, ModelSize
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, NetworkParameters
from rl_coach.core_types import LAST_ACTION, ActionInfo, Batch, EnvironmentSteps, GradientClippingMethod, TrainingSteps
from rl_coach.exploration_policies.categorical import categorical_or
from rl_coach.exploration_policies.continuous_entropy import ContinuousEntropyParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import BoxActionSpace
from rl_coach.utilities.requirements import FRACTION, instance, number, one_of, whole

FRAMES, CONTEXT = 50, 5
"""In a video, the model sees 5 of 50 observations and imagines the others, as in the figures of the paper."""


class DreamerV3NetworkParameters(NetworkParameters):
    """World model, actor and critic as one network with one optimizer. A target network is its slow copy."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": world_model.ModelEmbedderParameters()}
        self.middleware_parameters = world_model.StateSpaceMiddlewareParameters()
        self.heads_parameters = [world_model.ModelHeadParameters(head) for head in world_model.HEADS]
        self.create_target_network = True
        self.initial_weights = "truncated_normal"
        self.batch_size = 1024
        self.learning_rate = LinearSchedule(0.0, 4e-5, 1000)
        self.optimizer_type, self.optimizer_epsilon = "LaProp", 1e-20
        self.adam_optimizer_beta1, self.adam_optimizer_beta2 = 0.9, 0.999
        self.gradients_clipping_method, self.clip_gradients = GradientClippingMethod.ClipByWeightNorm, 0.3


class DreamerV3AlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of DreamerV3.

    :ivar size: the size of the world model: a ``ModelSize``, or a name from ``size1m`` to ``size400m``
    :ivar imagination_horizon: number of steps that the world model imagines from each state of a batch
    :ivar return_lambda: lambda; 0 bootstraps from the next state, 1 from the last imagined state
    :ivar entropy_weight: weight of the policy's entropy; with 0, the policy may become deterministic
    :ivar num_consecutive_playing_steps: steps for each update; the paper's train ratio is 1024 divided by this number
    :ivar rate_for_copying_weights_to_target: at each update, the slow critic moves towards the newest weights by this
        share
    """

    constraints = {
        "size": one_of(*SIZES) | instance(ModelSize, "a ModelSize"),
        "imagination_horizon": whole(1),
        "return_lambda": FRACTION,
        "entropy_weight": number(0),
    }

    def __init__(self) -> None:
        super().__init__()
        self.size: str | ModelSize = "size1m"
        self.imagination_horizon = 15
        self.return_lambda = 0.95
        self.entropy_weight = 3e-4
        self.discount = 1 - 1 / 333
        self.num_consecutive_playing_steps = EnvironmentSteps(2)
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
        self.rate_for_copying_weights_to_target = 0.02


class DreamerV3AgentParameters(AgentParameters):
    """DreamerV3, which samples from its policy. Evaluations take the best action or the mean."""

    path = "rl_coach.agents.dreamer_v3_agent:DreamerV3Agent"
    algorithm: DreamerV3AlgorithmParameters

    def __init__(self) -> None:
        percentiles = ValuesParameters(kept={"low": 0.0, "high": 0.0})
        super().__init__(
            algorithm=DreamerV3AlgorithmParameters(),
            exploration=categorical_or(ContinuousEntropyParameters()),
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": DreamerV3NetworkParameters(), "returns": percentiles},
        )
        self.exploration[BoxActionSpace].evaluation_noise = 0.0


class ModelReplay(MemoryBatches):
    """Sequences of L + 1 states, which cross the ends of short episodes. An update refreshes the stored states.

    :param agent: the agent, which draws the random numbers
    """

    gives_sequences = wants_values = True

    def __init__(self, agent: DreamerV3Agent):
        super().__init__(agent.memory)
        self._agent, self._length = agent, agent.ap.network_wrappers["main"].middleware_parameters.sequence_length

    def sample(self, updates: int, batch_size: int) -> Batch:
        return self._memory.sample_states(updates * max(1, batch_size // self._length), self._length + 1)

    def columns(self, batch: Batch, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        is_transition = batch.info("is_transition")
        found = {name: column for name, column in columns.items() if not name.startswith(("states/", "next_states/"))}
        found["weights"] = found["weights"] * is_transition
        for name in self._agent.spaces.state.sub_spaces:
            # the last state of an episode is only known as a next state
            found[f"states/{name}"] = states = np.array(columns[f"states/{name}"])
            states[~is_transition] = columns[f"next_states/{name}"][~is_transition]
        found |= {f"states/{name}": one for name, one in stored_states(batch, self._agent.recurrent_state).items()}
        return found | self._agent.random_columns(len(is_transition))

    def take_values(self, batch: Batch, values: dict[str, np.ndarray]) -> None:
        has_new = (batch.info("is_transition") & ~batch.info("begins_episode")).reshape(-1, self._length + 1)[:, 1:]
        serials = batch.info("transition_serial").reshape(-1, self._length + 1)[:, 1:]
        for name, states in values.items():
            states = states.reshape(*has_new.shape, -1)
            self._agent.memory.replace_info(stored_state(name), serials[has_new], states[has_new])


class DreamerV3Agent(PolicyAgent):
    """Learns a model of the world from sequences of its memory, and a policy from steps that the model imagines."""

    network_requirements = {
        "main": NetworkRequirement(
            (
                HeadRequirement("ModelHeadParameters", ()),
                HeadRequirement("ModelHeadParameters", ("probabilities_of_state",)),
                HeadRequirement("ModelHeadParameters", ("reward_logits", "continue_logits")),
                HeadRequirement("ModelHeadParameters", ("probabilities",), ("mean", "standard_deviation")),
                HeadRequirement("ModelHeadParameters", ("return_logits",)),
            ),
            has_target=True,
        )
    }
    acting_networks = ("main",)
    batch_network = "main"
    learns_from_stored_states = True
    learns_from_recorded_steps = False  # recorded steps have no states of the world model
    is_on_policy = False
    episode_attributes = ()
    _imagined: dict[str, Any] = {}

    @property
    def size(self) -> ModelSize:
        """The size of the world model."""
        return SIZES.get(self.ap.algorithm.size, self.ap.algorithm.size)

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        name = f"agent '{self.name}'"
        if self.ap.is_batch_rl_training:
            yield (
                f"{name} learns from sequences, and batch reinforcement learning makes passes over single "
                f"transitions: choose CQL, IQL or DiscreteCQL"
            )
        if not self.memory.samples_sequences:
            yield f"{name} learns from sequences of whole episodes: set memory to EpisodicExperienceReplayParameters()"
        if self.ap.algorithm.override_episode_rewards_with_the_last_transition_reward:
            yield f"{name} cuts episodes: set override_episode_rewards_with_the_last_transition_reward to False"
        if self.size.deter % BLOCKS:
            yield f"{name} has {BLOCKS} blocks: set deter of algorithm.size to a multiple of {BLOCKS}"
        if isinstance(self.spaces.action, BoxActionSpace) and not self.spaces.action.is_bounded:
            yield f"{name} needs actions with bounds: choose ClippedPPO or A2C, or give the space bounds"
        if self.spaces.action_mask_name is not None:
            yield f"{name} does not support action masks: choose ClippedPPO, A2C or DQN"
        if self._images and self.size.depth % 2:
            yield f"{name} needs an even depth of algorithm.size for images, not {self.size.depth}"
        for image, (height, width, _) in self._images.items():
            if not all(side % SHRINKING == 0 and 48 <= side <= 256 for side in (height, width)):
                yield (
                    f"{name} needs images with sides of 48, 64, 80, ... or 256, and '{image}' is {height} "
                    f"x {width}: add an ObservationRescaleToSizeFilter to the input filter"
                )

    @property
    def _images(self) -> dict[str, tuple[int, ...]]:
        """The shape of each observation that is an image."""
        given = {name: NetworkInput.named(name, self.spaces, "main") for name in self.spaces.state.sub_spaces}
        return {name: one.shape for name, one in given.items() if one.kind == "image"}

    def create_networks(self) -> dict[str, NetworkWrapper]:
        main, names = self.ap.network_wrappers["main"], self.spaces.state.sub_spaces
        # the model predicts all observations, so it also reads all of them
        given = main.input_embedders_parameters.items()
        own = {name: embedder for name, embedder in given if name in names or name != "observation"}
        main.input_embedders_parameters = {name: world_model.ModelEmbedderParameters() for name in names} | own
        world_model.set_size(main, self.size, self.spaces.action)
        return super().create_networks()

    def make_batches(self) -> BatchSource:
        return ModelReplay(self)

    def make_update_rule(self) -> UpdateRule:
        algorithm, middleware = self.ap.algorithm, self.ap.network_wrappers["main"].middleware_parameters
        return dreamer_rule(DreamerSettings(
            self.size, middleware.sequence_length, algorithm.imagination_horizon, algorithm.return_lambda,
            algorithm.entropy_weight, self.spaces.action, tuple(self._images),
        ))  # fmt: skip

    def random_columns(self, rows: int) -> dict[str, np.ndarray]:
        """The random numbers of an update with ``rows`` rows; see ``dreamer_rule``."""
        horizon, action = self.ap.algorithm.imagination_horizon, self.spaces.action
        is_box = isinstance(action, BoxActionSpace)
        draw, count = (self.rng.standard_normal, action.num_elements) if is_box else (self.rng.random, 1)
        posterior = self.rng.random((rows, VARIABLES), np.float32)
        imagined = self.rng.random((rows, horizon, VARIABLES), np.float32)
        imagined = np.concatenate([imagined, draw((rows, horizon, count), np.float32)], axis=-1)
        return {"extra/posterior": posterior, "extra/imagined": imagined.reshape(rows, -1)}

    @property
    def pictures_beside(self) -> Callable[[int], list[np.ndarray]] | None:
        """A function that returns the frames that the model predicts; None if the model reads no images."""
        return self._predicted_frames if self._images else None

    def _predicted_frames(self, step: int) -> list[np.ndarray]:
        main, size = self.networks["main"].state, self.size
        ops = self.update_loop.learner.ops
        model = main.function.in_parts([ops.convert_to_tensor(weights) for weights in main.arrays("weights")])
        before = {name: ops.convert_to_tensor(part) for name, part in self.recurrent_state.items()}
        if step:
            nothing = ops.zeros_like(model.embed(self.prepare_batch_for_inference(self.episode.curr_state, "main")))
            is_seen = (step - 1) % FRAMES < CONTEXT
            state = imagined_step(ops, model, size, before if is_seen else before | self._imagined, nothing)
        else:
            # the state before an episode is zeros; the agent still has the state of the episode before
            state = ops.concatenate([ops.zeros_like(before[one]) for one in ("deter", "stoch")], axis=-1)
        self._imagined = {"deter": state[:, : size.deter], "stoch": state[:, size.deter :]}
        decoded = model.head(DECODER, as_features(ops, size, state))
        return [(255 * ops.convert_to_numpy(decoded[name])[0]).astype(np.uint8) for name in self._images]

    def observe_transition(self, transition: Any) -> bool:
        has_ended = super().observe_transition(transition)
        # the memory samples from complete episodes, and a long episode must not wait for its end
        long = 4 * self.ap.network_wrappers["main"].middleware_parameters.sequence_length
        if not has_ended and not self.is_in_evaluation and self.episode.buffer.length() >= long:
            self.cut_episode()
        return has_ended

    def note_action(self, chosen: ActionInfo) -> None:
        network = self.networks["main"].online_network
        network.recurrent_state = {
            **network.recurrent_state,
            LAST_ACTION: self.spaces.action.encoded(np.asarray([chosen.action])),
            "noise": self.rng.random((1, VARIABLES), np.float32),
        }
