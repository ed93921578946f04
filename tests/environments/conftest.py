from __future__ import annotations

from typing import Any, Callable

import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import RunPhase
from rl_coach.environments.gym_environment import GymEnvironment, GymEnvironmentParameters, GymVectorEnvironment
from rl_coach.utils import public_attributes


@pytest.fixture
def make_environment() -> Any:
    """Builds environments from their parameters as a graph manager does, and closes them after the test."""
    made: list[GymEnvironment] = []

    def make(
        parameters: GymEnvironmentParameters | str, visualization: VisualizationParameters | None = None, **changes: Any
    ) -> GymEnvironment:
        if isinstance(parameters, str):
            parameters = GymVectorEnvironment(parameters)
        settings = {**public_attributes(parameters), **changes}
        environment = GymEnvironment(
            **settings, visualization_parameters=visualization or VisualizationParameters(video_dump_methods=[])
        )
        made.append(environment)
        return environment

    yield make
    for environment in made:
        environment.close()


@pytest.fixture
def in_training() -> Any:
    """Tells copies of an environment that they are trained in, and closes them after the test."""
    opened: list[Any] = []

    def open_for_training(copies: Any) -> Any:
        opened.append(copies)
        copies.phase = RunPhase.TRAIN
        return copies

    yield open_for_training
    for copies in opened:
        copies.close()


@pytest.fixture
def level_file(tmp_path: Any) -> Callable[[str, str], str]:
    """Writes a user's environment to a file and gives the level that names its class."""

    def write(source: str, class_name: str) -> str:
        file = tmp_path / "my_environment.py"
        file.write_text(source)
        return f"{file}:{class_name}"

    return write
