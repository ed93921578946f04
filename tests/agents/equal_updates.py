"""Updates of every agent on recorded data, in a process with one framework.

``record DIRECTORY`` writes the first updates of each agent: the networks before, the arguments of the learner, and its
results. ``compare DIRECTORY`` makes the same updates on another framework.
"""

from __future__ import annotations

import pathlib
import pickle
import sys
import tempfile
from typing import Any, Callable

import numpy as np

from rl_coach.agents.discrete_cql_agent import DiscreteCQLAgentParameters
from rl_coach.architectures.learner import Learner
from rl_coach.base_parameters import AgentParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from tests.agents import test_bc, test_cil, test_decision_transformer, test_iql, test_offline_actor_critic
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import PROBLEMS, dqn
from tests.zoo.runs import created

MOST_CALLS = 2
DRAWS_NOISE = ("rainbow", "droq")
"""Agents with networks that draw random numbers. These differ between frameworks."""
IN_RUNS = (
    "acer", "ppo", "ppo with an LSTM", "dqfd", "gail", "categorical with an LSTM", "drq",
    "curious DQN in several environments", "curious ClippedPPO in several environments",
)  # fmt: skip
"""Agents of ``tests.zoo.runs`` with rules that ``PROBLEMS`` lacks."""


def _discrete_cql() -> AgentParameters:
    agent = DiscreteCQLAgentParameters()
    agent.memory = EpisodicExperienceReplayParameters()
    return dqn(agent)


OF_RECORDED_STEPS: dict[str, Callable[[], AgentParameters]] = {
    "iql": lambda: test_iql.tiny(0.7, 3.0),
    "cql": test_offline_actor_critic.conservative,
    "awac": test_offline_actor_critic.weighted,
    "discrete_cql": _discrete_cql,
}
"""Agents that learn from steps that another policy has played."""


def _cloning(directory: pathlib.Path) -> Any:
    states = np.eye(2, dtype=np.float32)[[0, 1] * 20]
    recorded = test_bc.saved_memory(directory / "cloned.npz", states, np.arange(40) % 2)
    return graph(test_bc.cloning(recorded), Bandit, directory)


def _branched(directory: pathlib.Path) -> Any:
    return graph(test_cil.imitating(test_cil.recorded(directory)), test_cil.Crossroads, directory)


def _of_trajectories(is_discrete: bool) -> Callable[[pathlib.Path], Any]:
    def made(directory: pathlib.Path) -> Any:
        recorded = test_decision_transformer.played(directory / "played.npz", is_discrete=is_discrete)
        agent = test_decision_transformer.small(recorded)
        # a bias of keys has a gradient of 0, and a small epsilon makes steps of its rounding
        agent.network_wrappers["main"].optimizer_epsilon = 1e-4
        return graph(agent, Bandit if is_discrete else Target, directory)

    return made


OF_FILES = {
    "bc": _cloning,
    "cil": _branched,
    "decision_transformer": _of_trajectories(True),
    "decision_transformer of continuous actions": _of_trajectories(False),
}
"""Agents that imitate the steps of a file."""
NAMES = [*(name for name in PROBLEMS if name not in DRAWS_NOISE), *IN_RUNS, *OF_RECORDED_STEPS, *OF_FILES]
OTHER_SLOPES = {"jax": ("direct_future_prediction",)}
"""Agents with a leaky relu of exactly 0, where JAX has the slope 1, and the other frameworks have the smaller one."""


class Enough(Exception):
    """As many updates as are wanted have been recorded."""


def built(name: str) -> tuple[Any, Callable[[], Any]]:
    """An agent, and a function that trains it."""
    directory = pathlib.Path(tempfile.mkdtemp())
    if name in OF_RECORDED_STEPS:
        problem = Bandit if name == "discrete_cql" else Target
        agent = test_iql.built(OF_RECORDED_STEPS[name](), directory, problem)
        return agent, lambda: agent.update_loop.learn(MOST_CALLS)
    if name in OF_FILES:
        manager = OF_FILES[name](directory)
    elif name in IN_RUNS:
        manager = created(name, 1000, directory)
    else:
        parameters, problem, steps, _ = PROBLEMS[name]
        manager = graph(parameters(), problem, directory, schedule(steps, heatup=40), seed=1)
    return manager.get_agent(), manager.improve


def states(agent: Any) -> dict[str, dict]:
    return {name: network.get_state() for name, network in agent.networks.items()}


def results(agent: Any, result: Any) -> dict[str, Any]:
    numbers = result.wait()
    groups = ("losses", "gradient_norms", "signals", "values")
    found = {f"{group}/{name}": value for group in groups for name, value in getattr(numbers, group).items()}
    found |= {} if numbers.errors is None else {"errors": numbers.errors}
    for name, network in agent.networks.items():
        order, arrays = network.state.function.order.get("weights"), network.state.arrays("weights")
        made = arrays if order is None else [arrays[order.index(place)] for place in range(len(arrays))]
        found[f"weights/{name}"] = np.concatenate([np.zeros(0), *(np.array(array).ravel() for array in made)])
    return found


def record(name: str) -> list[dict[str, Any]]:
    agent, learn = built(name)
    calls: list[dict[str, Any]] = []
    train = Learner.train

    def recorded(self: Learner, *arguments: Any, **named: Any) -> Any:
        if self is not agent.update_loop.learner:
            return train(self, *arguments, **named)
        if name in IN_RUNS:  # their calls make hundreds of updates, which amplify the rounding of the first
            named["count"] = 1
        stages = named.get("stages")
        call = {"arguments": arguments, "named": {**named, "stages": None}, "before": states(agent)}
        call["stages"] = None if stages is None else [self.step.stages.index(one) for one in stages]
        result = train(self, *arguments, **named)
        calls.append({**call, "after": results(agent, result)})
        if len(calls) == MOST_CALLS:
            raise Enough
        return result

    Learner.train = recorded  # type: ignore[method-assign]
    try:
        learn()
    except Enough:
        pass
    finally:
        Learner.train = train  # type: ignore[method-assign]
    return calls


def compare(name: str, calls: list[dict[str, Any]]) -> None:
    agent, _ = built(name)
    learner = agent.update_loop.learner
    for call in calls:
        for network, state in call["before"].items():
            agent.networks[network].set_state(state)
        stages, named = call["stages"], dict(call["named"])
        named["stages"] = None if stages is None else tuple(learner.step.stages[i] for i in stages)
        found = results(agent, learner.train(*call["arguments"], **named))
        assert found.keys() == call["after"].keys()
        for what, expected in call["after"].items():
            differ = np.linalg.norm(found[what] - expected)
            assert differ <= 1e-5 * np.linalg.norm(expected) + 1e-6, (what, differ, np.linalg.norm(expected))


def main(action: str, directory: str, *names: str) -> None:
    for name in names or NAMES:
        file = pathlib.Path(directory) / f"{name}.pickle"
        if action == "record":
            calls = record(name)
            assert calls, name
            file.write_bytes(pickle.dumps(calls))
        elif name not in OTHER_SLOPES.get(FRAMEWORK.name, ()):
            try:
                compare(name, pickle.loads(file.read_bytes()))
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from error


if __name__ == "__main__":
    main(*sys.argv[1:])
