"""Curiosity: intrinsic rewards for observations that are new, by random network distillation (Burda et al. 2018,
"Exploration by Random Network Distillation", arXiv 1810.12894)."""

from __future__ import annotations

from typing import Iterator

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import RNDHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import CuriosityParameters, Frameworks, MiddlewareScheme, NetworkParameters
from rl_coach.utilities.requirements import FLAG, FRACTION, instance, number


class RNDNetworkParameters(NetworkParameters):
    """A network that computes features of an observation: the predictor, or the constant network that the predictor
    imitates."""

    constraints = {"should_get_softmax_probabilities": FLAG}

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {
            "observation": InputEmbedderParameters(activation_function="leaky_relu", input_rescaling={"image": 1.0})
        }
        self.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
        self.heads_parameters = [RNDHeadParameters()]
        self.batch_size = 100
        self.learning_rate = 0.0001
        self.should_get_softmax_probabilities = False


class RNDParameters(CuriosityParameters):
    """Random network distillation: ``agent_params.curiosity = RNDParameters()``.

    :param coefficient: the weight of intrinsic rewards; 0 measures them and learns from the environment's rewards only
    :param intrinsic_discount: the discount of intrinsic returns. It is used for their standard deviation and for PPO's
        second value head. Agents with one value use ``algorithm.discount`` for the sum of both rewards
    :param update_proportion: the share of each batch that the predictor learns from. With a smaller share,
        observations stay new for longer
    :ivar network: the network of the predictor and of the constant network. The names of its embedders are the
        observations whose novelty counts; ``batch_size`` has no effect, because the predictor learns from the agent's
        batches
    """

    frameworks = (Frameworks.tensorflow, Frameworks.jax, Frameworks.torch)
    constraints = {
        "coefficient": number(0),
        "intrinsic_discount": number(0, below=1),
        "update_proportion": FRACTION,
        "network": instance(NetworkParameters, "NetworkParameters"),
    }

    def __init__(self, coefficient: float = 1.0, intrinsic_discount: float = 0.99, update_proportion: float = 1.0):
        self.coefficient = coefficient
        self.intrinsic_discount = intrinsic_discount
        self.update_proportion = update_proportion
        self.network: NetworkParameters = RNDNetworkParameters()

    def unmet(self) -> Iterator[str]:
        yield from super().unmet()
        if self.network.batch_size != RNDNetworkParameters().batch_size:
            yield (
                "curiosity.network.batch_size has no effect, because the predictor learns from the agent's batches: "
                "do not set it"
            )
