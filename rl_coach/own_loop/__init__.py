"""Agents that a loop of the user's own drives: a robot, a game server, a simulator that calls them."""

from rl_coach.own_loop.agent import Agent, make_agent
from rl_coach.own_loop.runner import Runner

__all__ = ["Agent", "Runner", "make_agent"]
