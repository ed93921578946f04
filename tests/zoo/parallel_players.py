"""Environments in PettingZoo's parallel form: ``tests.zoo.parallel_players:Scripted``."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from pettingzoo import ParallelEnv


class Scripted(ParallelEnv):
    """Players that come and go at given steps. The reward of each step is 1, an observation is (step, player's number),
    and an episode has twelve steps.

    :param present: by player, (step of coming, step of leaving) of each of its stays; the first state is step 0
    :param mask: the mask of each player's two actions in its infos; None gives no mask
    :param masks_from: the first step with a mask
    :param infos: what reset and step return as infos, ``"dicts"``, ``"none"`` or ``"empty"``
    :param fails_in: ``"reset"`` or ``"step"``, of which the call after the third one fails
    :param actions: the number of actions of each player in turn
    """

    metadata = {"name": "scripted", "render_modes": []}
    LENGTH = 12

    def __init__(self, present=None, mask=None, masks_from=0, infos="dicts", fails_in="", actions=(2, 2), **_: Any):
        self.present = present or {"a": [(0, 12)], "b": [(0, 12)]}
        self.possible_agents = list(self.present)
        self.mask, self.masks_from, self.infos, self.fails_in, self.actions = mask, masks_from, infos, fails_in, actions
        self.calls = {"reset": 0, "step": 0}
        self.taken: list[tuple[str, int]] = []

    def observation_space(self, agent):
        return gym.spaces.Box(0, 20, (2,), np.float32)

    def action_space(self, agent):
        return gym.spaces.Discrete(self.actions[self.possible_agents.index(agent)])

    def _call(self, name):
        self.calls[name] += 1
        if self.fails_in == name and self.calls[name] > 3:
            raise RuntimeError("the licence server does not answer")

    def _is_here(self, agent):
        return any(come <= self.t < leave for come, leave in self.present[agent])

    def _looks(self, agents):
        return {one: np.array([self.t, self.possible_agents.index(one)], np.float32) for one in agents}

    def _infos(self, agents):
        if self.infos != "dicts":
            return {"none": None, "empty": {}}[self.infos]
        has_mask = self.mask is not None and self.t >= self.masks_from
        return {one: {"action_mask": np.array(self.mask)} if has_mask else {} for one in agents}

    def reset(self, seed=None, options=None):
        self._call("reset")
        self.t = 0
        self.agents = [one for one in self.possible_agents if self._is_here(one)]
        return self._looks(self.agents), self._infos(self.agents)

    def step(self, actions):
        self._call("step")
        assert sorted(actions) == sorted(self.agents)
        self.taken += actions.items()
        self.t += 1
        before, is_last = self.agents, self.t >= self.LENGTH
        self.agents = [] if is_last else [one for one in self.possible_agents if self._is_here(one)]
        told = [one for one in self.possible_agents if one in before or one in self.agents]
        ends = {one: one not in self.agents for one in told}
        return self._looks(told), dict.fromkeys(told, 1.0), ends, dict.fromkeys(told, False), self._infos(told)


def make(**settings: Any) -> Scripted:
    """As a function, for levels."""
    return Scripted(**settings)
