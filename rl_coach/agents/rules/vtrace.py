"""V-trace: targets and advantages from segments that an older policy has played (Espeholt et al. 2018, "IMPALA:
scalable distributed deep-RL with importance weighted actor-learner architectures")."""

from __future__ import annotations

import numpy as np


def vtrace(
    rewards: np.ndarray,
    values: np.ndarray,
    ratios: np.ndarray,
    discount: float,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    trace_lambda: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """The targets v_t (equation 1, by the recursion of remark 1), and the advantages rho_t (r_t + discount v_{t+1} -
    V_t) of the policy's gradient (section 4.2).

    Sums have the precision of rewards and values. If all ratios are 1, the results are equal to the results of
    ``n_step_advantages``, bit for bit, because the terms are added in the same order.

    :param rewards: [T]
    :param values: [T + 1]; the last number is the value after the segment: 0 if the episode terminated
    :param ratios: [T], pi(a_t|s_t) / mu(a_t|s_t), with the policy pi that learns and the policy mu that acted
    :param rho_bar: the largest rho_t = min(rho_bar, ratio_t), the weight of temporal differences
    :param c_bar: the largest c_t = lambda min(c_bar, ratio_t), the weight of later differences for earlier steps
    :param trace_lambda: lambda of remark 2; 0 gives one-step targets
    :return: advantages [T] and targets of the critic [T], float64
    """
    assert rewards.ndim == ratios.ndim == 1 and len(values) == len(rewards) + 1 == len(ratios) + 1
    rhos = np.minimum(rho_bar, ratios).tolist()
    traces = (trace_lambda * np.minimum(c_bar, ratios)).tolist()
    values = values.astype(np.result_type(rewards, values))
    advantages, targets = np.empty(len(rewards)), np.empty(len(rewards))
    following = values[-1]
    for t in range(len(rewards) - 1, -1, -1):
        rho, trace = rhos[t], traces[t]
        advantages[t] = rho * (float(rewards[t] + discount * following) - float(values[t]))
        mixture = (rho - trace) * values[t + 1] + trace * following
        following = (1.0 - rho) * values[t] + (rho * rewards[t] + discount * mixture)
        targets[t] = following
    return advantages, targets
