"""Agents that a loop of the user's own drives: a robot, a game server, a simulator that calls them."""

from rl_coach.own_loop.agent import Agent, make_agent

__all__ = ["Agent", "make_agent"]
