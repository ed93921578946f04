"""Parameters of neural episodic control."""

from __future__ import annotations

from typing import ClassVar, Mapping

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DNDQHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, NetworkParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import ConstantSchedule
from rl_coach.utilities.constraints import FLAG, FRACTION, Constraint, number, whole


class NECNetworkParameters(NetworkParameters):
    """A network of embeddings."""

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "should_get_softmax_probabilities": FLAG,
    }

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters()}
        self.middleware_parameters = FCMiddlewareParameters()
        self.heads_parameters = [DNDQHeadParameters()]
        self.optimizer_type = "Adam"
        self.should_get_softmax_probabilities = False


class NECAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of neural episodic control.

    :ivar dnd_size: number of entries that each action's dictionary keeps; beyond it those looked up least recently go
    :ivar l2_norm_added_delta: added to squared distances; near 0 the nearest entry decides, large ones count alike
    :ivar new_value_shift_coefficient: the step towards a new value of a key that is there; 1 replaces the old one
    :ivar number_of_knn: number of nearest entries that make a value
    :ivar DND_key_error_threshold: the distance up to which two keys are the same; 0 for equal ones
    :ivar propagate_updates_to_DND: learning also moves the keys and values that were looked up
    :ivar n_step: number of rewards before the bootstrapped value
    :ivar bootstrap_total_return_from_old_policy: bootstrap at all; otherwise returns sum ``n_step`` rewards alone
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "dnd_size": whole(1),
        "l2_norm_added_delta": number(above=0),
        "new_value_shift_coefficient": FRACTION,
        "number_of_knn": whole(1),
        "DND_key_error_threshold": number(0),
        "propagate_updates_to_DND": FLAG,
        "bootstrap_total_return_from_old_policy": FLAG,
    }

    def __init__(self) -> None:
        super().__init__()
        self.dnd_size = 500000
        self.l2_norm_added_delta = 0.001
        self.new_value_shift_coefficient = 0.1
        self.number_of_knn = 50
        self.DND_key_error_threshold: float = 0
        self.num_consecutive_playing_steps = EnvironmentSteps(4)
        self.propagate_updates_to_DND = False
        self.n_step = 100
        self.bootstrap_total_return_from_old_policy = True


class NECMemoryParameters(EpisodicExperienceReplayParameters):
    """The episodes that the embeddings are learned from."""

    def __init__(self) -> None:
        super().__init__()
        self.max_size = (MemoryGranularity.Transitions, 100000)


class NECAgentParameters(AgentParameters):
    """Neural episodic control with epsilon-greedy exploration."""

    def __init__(self) -> None:
        super().__init__(
            algorithm=NECAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=NECMemoryParameters(),
            networks={"main": NECNetworkParameters()},
        )
        self.exploration.epsilon_schedule = ConstantSchedule(0.1)
        self.exploration.evaluation_epsilon = 0.01

    @property
    def path(self) -> str:
        return "rl_coach.agents.nec_agent:NECAgent"
