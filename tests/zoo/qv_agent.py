"""An agent with a head of its own, the two places that a new algorithm takes: QV-learning (Wiering 2005).

Q(s, a) and V(s) both learn towards r + discount * V(s'), so that the values of actions need no maximum.
"""

from __future__ import annotations

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.head_parameters import HeadParameters
from rl_coach.architectures.heads import Head
from rl_coach.architectures.update import Update, assert_rank, select, weighted_mean
from rl_coach.spaces import DiscreteActionSpace


class QVHead(Head):
    """``q`` [B, A] and ``v`` [B]."""

    public = ("q",)  # the agent acts by it alone
    supported_actions = (DiscreteActionSpace,)

    def __call__(self, layers, features, inputs):
        q, v = layers.dense(features, self.num_actions), layers.dense(features, 1)
        return {"q": q, "v": layers.ops.squeeze(v, -1)}


class QVAgentParameters(DQNAgentParameters):
    def __init__(self):
        super().__init__()
        self.network_wrappers["main"].heads_parameters = [HeadParameters(QVHead)]

    @property
    def path(self):
        return "tests.zoo.qv_agent:QVAgent"


def qv_rule(ops, networks, batch):
    assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts)
    outputs = networks["main"].online(batch.states)[0]
    v_t = networks["main"].target(batch.next_states)[0]["v"]
    target = ops.stop_gradient(batch.rewards + batch.discounts * v_t)
    q_errors, v_errors = target - select(ops, outputs["q"], batch.actions), target - outputs["v"]
    loss = weighted_mean(ops, q_errors * q_errors + v_errors * v_errors, batch.weights)
    return Update({"main": loss}, errors=q_errors, signals={"V": weighted_mean(ops, outputs["v"], batch.weights)})


class QVAgent(ValueOptimizationAgent):
    @property
    def is_on_policy(self):
        return False

    def make_update_rule(self):
        return qv_rule
