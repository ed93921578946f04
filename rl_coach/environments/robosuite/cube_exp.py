"""A robot that moves its closed hand over a table with a cube, as a task for exploration.

``CubeExp`` extends a task of robosuite (Zhu et al. 2020, "robosuite: a modular simulation framework and benchmark for
robot learning"), which must be installed.
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
from robosuite.environments.manipulation.lift import Lift
from robosuite.utils.placement_samplers import UniformRandomSampler

TABLE_TOP_SIZE = (0.84, 1.25, 0.05)
"""Length, width and thickness of the table's top in meters."""
TABLE_OFFSET = (0, 0, 0.82)
"""The middle of the table's top in meters."""

_MOVEMENT = 3  # the first numbers of an action move the hand, the next ones turn it, and the last one closes it
_SHUT, _STILL = 1.0, 0.0


class CubeExp(Lift):
    """An arm over a table. A cube lies in the middle of the table.

    An action [3] moves the hand along the axes of the table, each number from -1 to 1. The hand keeps its direction and
    stays shut. The task has no goal. The reward is 0, or -1 in a collision if ``penalize_reward_on_collision`` is True.

    :param robots: a robot with one arm, by its name
    :param table_full_size: length, width and thickness of the table's top in meters
    :param table_offset: middle of the table's top in meters
    :param placement_initializer: place of the cube at the start of an episode; None is the middle of the table, always
        with the same rotation
    :param penalize_reward_on_collision: the reward is -1 in a step if the robot touches the table
    :param end_episode_on_collision: the episode ends if the robot touches the table
    :param kwargs: settings of ``Lift`` of robosuite
    :ivar has_collided: the robot touched the table in the last step
    """

    def __init__(
        self,
        robots: Any,
        table_full_size: Sequence[float] = TABLE_TOP_SIZE,
        table_offset: Sequence[float] = TABLE_OFFSET,
        placement_initializer: Any = None,
        penalize_reward_on_collision: bool = False,
        end_episode_on_collision: bool = False,
        **kwargs: Any,
    ):
        self.penalize_reward_on_collision = penalize_reward_on_collision
        self.end_episode_on_collision = end_episode_on_collision
        self.has_collided = False
        if placement_initializer is None:
            placement_initializer = UniformRandomSampler(
                name="cube_in_the_middle",
                x_range=[0.0, 0.0],
                y_range=[0.0, 0.0],
                rotation=0.0,
                ensure_object_boundary_in_range=False,
                reference_pos=table_offset,
                z_offset=0.01,
            )
        self._offset = np.array(table_offset)
        super().__init__(robots, table_full_size=table_full_size, placement_initializer=placement_initializer, **kwargs)

    def _load_model(self) -> None:
        self.table_offset = self._offset  # Lift has just set it for its own table
        super()._load_model()

    @property
    def action_spec(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest action."""
        low, high = super().action_spec
        return low[:_MOVEMENT], high[:_MOVEMENT]

    def _pre_action(self, action: np.ndarray, policy_step: bool = False) -> None:
        rest = np.full(self.action_dim - _MOVEMENT, _STILL)
        rest[-1] = _SHUT
        super()._pre_action(np.concatenate([action, rest]), policy_step)

    def _post_action(self, action: np.ndarray) -> tuple[float, bool, dict[str, Any]]:
        robot = self.robots[0]
        parts = [*robot.robot_model.contact_geoms]
        for gripper in robot.gripper.values():
            parts += gripper.contact_geoms
        self.has_collided = self.check_contact(parts, "table_collision")
        reward, is_over, info = super()._post_action(action)
        self.done = is_over or (self.end_episode_on_collision and self.has_collided)
        return reward, self.done, info

    def reward(self, action: Any = None) -> float:
        """0, or -1 in a collision if that is penalized."""
        return -1.0 if self.penalize_reward_on_collision and self.has_collided else 0.0
