"""What tests of levels are built from."""

from __future__ import annotations

from typing import Any

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.utils import public_attributes
from tests.graph_managers.counting import CountingAgent, CountingAgentParameters, CountingEnvironment


def environment_of(parameters: Any, seed: int = 0) -> CountingEnvironment:
    settings = {**public_attributes(parameters), "seed": seed}
    return CountingEnvironment(**settings, visualization_parameters=VisualizationParameters())


def agent_named(name: str) -> CountingAgent:
    parameters = CountingAgentParameters()
    parameters.name = name
    return CountingAgent(parameters)
