"""Settings of heads, the last part of a network: the predicted values, and their weights in the loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Sequence

from rl_coach.architectures.layers import LAYERS
from rl_coach.base_parameters import NetworkComponentParameters
from rl_coach.utilities.requirements import FLAG, TEXT, bounds, flags, list_of, number, optional, whole


@dataclass(eq=False, repr=False)
class HeadParameters(NetworkComponentParameters):
    """Settings that all heads have.

    :param parameterized_class_name: the name of the head, or a subclass of ``heads.Head``
    :param activation_function: the activation between the layers of the head
    :param num_output_head_copies: number of equal heads with separate weights
    :param rescale_gradient_from_head_by_factor: factor of the gradient that the head passes to the layers below; with
        0, the head does not train these layers
    :param loss_weight: the weight of this head's loss in the network's loss
    :param dense_layer: the class of fully connected layers; None for ``Dense``
    """

    constraints = {
        "activation_function": optional(TEXT),
        "name": TEXT,
        "num_output_head_copies": whole(1),
        "rescale_gradient_from_head_by_factor": number() | list_of(number()),
        "loss_weight": number() | list_of(number()),
        "is_training": FLAG,
    }

    parameterized_class_name: str
    activation_function: str = "relu"
    name: str = "head"
    num_output_head_copies: int = 1
    rescale_gradient_from_head_by_factor: float = 1.0
    loss_weight: float = 1.0
    dense_layer: Any = None
    is_training: bool = False

    def __post_init__(self) -> None:
        # the base class is not a dataclass, so nothing else calls its constructor
        super().__init__(self.dense_layer)

    @property
    def path(self) -> str:
        """The name of the head, or ``'module:Class'`` for a head that you wrote."""
        return self.parameterized_class_name


@dataclass(eq=False, repr=False)
class _NamedHead(HeadParameters):
    """Settings with the head's name and defaults as class attributes. An argument of None selects the default."""

    parameterized_class_name: str = field(init=False)
    activation_function: Any = None
    name: Any = None
    is_training: bool = field(default_factory=bool, init=False)

    head = ""
    default_name = ""
    default_activation = "relu"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parameterized_class_name = self.head
        if self.activation_function is None:
            self.activation_function = self.default_activation
        self.name = self.default_name if self.name is None else self.name


@dataclass(eq=False, repr=False)
class _HeadWithOutputBias(_NamedHead):
    """Settings of a head with an initial output bias.

    :param output_bias_initializer: a number, or a framework's initializer; None for zeros
    """

    output_bias_initializer: Any = None


@dataclass(eq=False, repr=False)
class _ValueHead(_NamedHead):
    """Settings of a head with one output.

    :param initializer: initial weights of the output layer. ``'normalized_columns'``: columns of norm 1. ``'xavier'``:
        the network's ``initial_weights``, by default Glorot's. None: the default of the class
    :param output_bias_initializer: a number, or a framework's initializer; None for zeros
    """

    initializer: str | None = None
    output_bias_initializer: Any = None

    default_initializer = "normalized_columns"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.initializer = self.default_initializer if self.initializer is None else self.initializer


class _ActorHead(_NamedHead):
    """Settings of a head that outputs a continuous action.

    :param batchnorm: True for batch normalisation before tanh squashes the action
    :ivar state_dependent_noise: True if the features are an output too. The exploration policy
        ``StateDependentNoiseParameters`` sets it
    """

    constraints = {**flags("batchnorm", "state_dependent_noise")}

    def __init__(
        self, activation_function: str | None = None, name: str | None = None, batchnorm: bool = True,
        num_output_head_copies: int = 1, rescale_gradient_from_head_by_factor: float = 1.0, loss_weight: float = 1.0,
        dense_layer: Any = None,
    ):  # fmt: skip
        factor = rescale_gradient_from_head_by_factor
        super().__init__(activation_function, name, num_output_head_copies, factor, loss_weight, dense_layer)
        self.batchnorm = batchnorm
        self.state_dependent_noise = False


class QHeadParameters(_HeadWithOutputBias):
    """Q(s, a) for each discrete action."""

    head, default_name = "QHead", "q_head_params"


class DuelingQHeadParameters(_NamedHead):
    """Q(s, a) = V(s) + A(s, a) - mean A(s, .) (Wang et al. 2016, equation 9)."""

    head, default_name = "DuelingQHead", "dueling_q_head_params"


class _Support(HeadParameters):
    """The fixed returns (atoms) of a categorical distribution. The agent sets them from its algorithm's parameters.

    :ivar atoms: number of returns
    :ivar v_min: the smallest return; ``v_max`` is the largest
    """

    constraints = {"atoms": whole(2), "v_min": number(), "v_max": number()}

    atoms = 51
    v_min = -10.0
    v_max = 10.0


class CategoricalQHeadParameters(_Support, _HeadWithOutputBias):
    """A categorical distribution over fixed returns, for each action (Bellemare et al. 2017)."""

    head, default_name = "CategoricalQHead", "categorical_q_head_params"


class QuantileRegressionQHeadParameters(_HeadWithOutputBias):
    """Quantiles of the return for each action (Dabney et al. 2018).

    :ivar atoms: number of quantiles; the agent sets it from its algorithm's parameters
    """

    constraints = {"atoms": whole(1)}

    head, default_name = "QuantileRegressionQHead", "quantile_regression_q_head_params"
    atoms = 200


class RainbowQHeadParameters(_Support, _NamedHead):
    """A categorical distribution over fixed returns for each action, with dueling layers (Hessel et al. 2018)."""

    head, default_name = "RainbowQHead", "rainbow_q_head_params"


class NAFHeadParameters(_NamedHead):
    """A quadratic advantage around the best action (Gu et al. 2016).

    :ivar diagonal_bounds: the smallest and the largest entry on the diagonal of L; None for no bounds. Without bounds,
        L can fall to 0. Then the advantage is 0 too, and the best action gets no gradient from then on.
    """

    constraints = {"diagonal_bounds": optional(bounds("(0.1, 10)", above=0))}

    head, default_name, default_activation = "NAFHead", "naf_head_params", "tanh"
    diagonal_bounds: Sequence[float] | None = None


class DNDQHeadParameters(_NamedHead):
    """Q(s, a) from a dictionary of embeddings and values (Pritzel et al. 2017)."""

    head, default_name = "DNDQHead", "dnd_q_head_params"


class VHeadParameters(_ValueHead):
    """V(s)."""

    head, default_name = "VHead", "v_head_params"


class _ActionValueHead(_ValueHead):
    """Settings of a head that outputs Q(s, a). The action is an input of the network.

    :ivar value_bounds: ``(smallest, largest)`` value of Q; a sigmoid keeps Q between them. None for no bounds
    """

    constraints = {"value_bounds": optional(bounds("[-50, 0]"))}

    value_bounds: Sequence[float] | None = None


class DDPGVHeadParameters(_ActionValueHead):
    """Q(s, a) of a critic. The action is an input of the network."""

    head, default_name = "DDPGVHead", "ddpg_v_head_params"


class TD3VHeadParameters(_ActionValueHead):
    """Q(s, a) of twin critics."""

    head, default_name, default_initializer = "TD3VHead", "td3_v_head_params", "xavier"


class PPOVHeadParameters(_HeadWithOutputBias):
    """V(s) with PPO's clipped value loss."""

    head, default_name = "PPOVHead", "ppo_v_head_params"


class PolicyHeadParameters(_NamedHead):
    """A policy: probabilities of discrete actions, or mean and standard deviation of continuous ones.

    :ivar state_dependent_noise: True for generalised state-dependent exploration (gSDE): the noise is a function of the
        features. ``StateDependentNoiseParameters`` sets it
    :ivar initial_log_scale: initial logarithm of the standard deviation of this function's weights
    """

    constraints = {"state_dependent_noise": FLAG, "initial_log_scale": number()}

    head, default_name, default_activation = "PolicyHead", "policy_head_params", "tanh"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state_dependent_noise = False
        self.initial_log_scale = -2.0


class PPOHeadParameters(PolicyHeadParameters):
    """PPO's policy: a ``PolicyHead`` with a standard deviation that does not depend on the state."""

    head, default_name, default_activation = "PPOHead", "ppo_head_params", "tanh"


class TeamPolicyHeadParameters(_NamedHead):
    """A policy that the players of a team share."""

    head, default_name, default_activation = "TeamPolicyHead", "team_policy_head_params", "tanh"


class TeamQHeadParameters(_HeadWithOutputBias):
    """Q(s, a) of each player of a team."""

    head, default_name = "TeamQHead", "team_q_head_params"


class MixingHeadParameters(_NamedHead):
    """The weights of QMIX's mixing network (Rashid et al. 2018, section 4.1).

    :ivar units: the number of hidden units of the mixing network
    """

    constraints = {"units": whole(1)}

    head, default_name = "MixingHead", "mixing_head_params"
    units = 32


class ACERPolicyHeadParameters(_NamedHead):
    """ACER's policy over discrete actions."""

    head, default_name = "ACERPolicyHead", "acer_policy_head_params"


class DDPGActorHeadParameters(_ActorHead):
    """A deterministic policy (Lillicrap et al. 2016)."""

    head, default_name, default_activation = "DDPGActor", "policy_head_params", "tanh"


class WolpertingerActorHeadParameters(_ActorHead):
    """A proto-action: a point in the embedding space of discrete actions (Dulac-Arnold et al. 2015)."""

    head, default_name, default_activation = "WolpertingerActorHead", "policy_head_params", "tanh"


class MeasurementsPredictionHeadParameters(_NamedHead):
    """Future measurements for each action (Dosovitskiy & Koltun 2017).

    :ivar num_predicted_steps_ahead: number of offsets in time; the agent sets it from its algorithm's parameters
    """

    constraints = {"num_predicted_steps_ahead": whole(1)}

    head, default_name = "MeasurementsPredictionHead", "measurements_prediction_head_params"
    num_predicted_steps_ahead = 6


class ClassificationHeadParameters(_NamedHead):
    """Probabilities of classes, one for each discrete action."""

    head, default_name = "ClassificationHead", "classification_head_params"


@dataclass(eq=False, repr=False)
class RegressionHeadParameters(_NamedHead):
    """A number for each discrete action, or for each element of a continuous one.

    :param scheme: a list of layers before the output, each followed by the activation; None for one layer of 256 units
    :param output_bias_initializer: a number, or a framework's initializer; None for zeros
    """

    constraints = {"scheme": optional(LAYERS)}

    scheme: Any = None
    output_bias_initializer: Any = None

    head, default_name = "RegressionHead", "q_head_params"


class SACPolicyHeadParameters(_NamedHead):
    """The mean and log standard deviation of a squashed Gaussian (Haarnoja et al. 2018, appendix C).

    :ivar state_dependent_noise: True for generalised state-dependent exploration (gSDE): the noise is a function of the
        features. ``StateDependentNoiseParameters`` sets it
    :ivar initial_log_scale: initial logarithm of the standard deviation of this function's weights
    :ivar mean_limit: the mean before squashing lies between plus and minus this number; None for no limit
    """

    constraints = {
        "state_dependent_noise": FLAG, "initial_log_scale": number(), "mean_limit": optional(number(above=0)),
    }  # fmt: skip

    head, default_name = "SACPolicyHead", "sac_policy_head_params"

    def __init__(self, activation_function: str | None = None, name: str | None = None, dense_layer: Any = None):
        super().__init__(activation_function, name, dense_layer=dense_layer)
        self.state_dependent_noise = False
        self.initial_log_scale = -3.0
        self.mean_limit: float | None = None


class SACQHeadParameters(_NamedHead):
    """Several networks Q(s, a) without shared layers.

    :param layers_sizes: the numbers of units of the hidden layers of each network
    :param output_bias_initializer: a number, or a framework's initializer; None for zeros
    :param num_critics: number of Q networks
    :param num_quantiles: number of quantiles of the return that each network predicts; 1 predicts the mean
    :param dropout_rate: share of the activations of each hidden layer that are set to zero in training; 0 for no
        dropout
    :param layernorm: True for layer normalisation of each hidden layer, before its activation
    :param batchnorm: True for batch normalisation of the input and after each hidden layer
    :param batch_renorm_warm_up: number of training passes after which batch renormalisation replaces batch
        normalisation, for example 100,000 in CrossQ. 0 for batch renormalisation from the start, None for batch
        normalisation only

    :ivar scheme: a list of layers of each network, instead of ``layers_sizes``. No activation or normalisation
        is added between these layers
    :ivar num_atoms: number of returns, evenly spaced from ``v_min`` to ``v_max``, in the distribution that each network
        predicts; 1 for no distribution
    """

    constraints = {
        **flags("layernorm", "batchnorm"),
        "batch_renorm_warm_up": optional(whole(0)),
        "network_layers_sizes": list_of(whole(1)),
        "num_critics": whole(1),
        "num_quantiles": whole(1),
        "dropout_rate": number(0, below=1),
        "num_atoms": whole(1),
        "v_min": number(),
        "v_max": number(),
        "scheme": optional(LAYERS),
    }

    head, default_name = "SACQHead", "sac_q_head_params"

    def __init__(
        self, activation_function: str | None = None, name: str | None = None, dense_layer: Any = None,
        layers_sizes: tuple[int, ...] = (256, 256), output_bias_initializer: Any = None, num_critics: int = 2,
        num_quantiles: int = 1, dropout_rate: float = 0.0, layernorm: bool = False, batchnorm: bool = False,
        batch_renorm_warm_up: int | None = None,
    ):  # fmt: skip
        super().__init__(activation_function, name, dense_layer=dense_layer)
        self.network_layers_sizes = layers_sizes
        self.output_bias_initializer = output_bias_initializer
        self.num_critics = num_critics
        self.num_quantiles = num_quantiles
        self.dropout_rate = dropout_rate
        self.layernorm = layernorm
        self.batchnorm = batchnorm
        self.batch_renorm_warm_up = batch_renorm_warm_up
        self.scheme: list[Any] | None = None
        self.num_atoms, self.v_min, self.v_max = 1, -5.0, 5.0


class RNDHeadParameters(_NamedHead):
    """Features for random network distillation: the error in predicting them measures novelty (Burda et al. 2018).

    :param is_predictor: True for the trained network, False for the network that keeps its initial weights
    """

    constraints = {"is_predictor": FLAG}

    head, default_name = "RNDHead", "rnd_head_params"

    def __init__(self, name: str | None = None, dense_layer: Any = None, is_predictor: bool = False):
        super().__init__(name=name, dense_layer=dense_layer)
        self.is_predictor = is_predictor
        self.initial_weights = "orthogonal"
