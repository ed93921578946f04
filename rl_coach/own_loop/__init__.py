"""Agents for a loop that you write yourself: for a robot, a game server, or a simulator that calls the agent."""

from rl_coach.own_loop.agent import Agent, make_agent
from rl_coach.own_loop.runner import Runner

__all__ = ["Agent", "Runner", "make_agent"]
