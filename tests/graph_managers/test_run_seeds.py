from __future__ import annotations

import random

import numpy as np

from rl_coach.graph_managers.run_seeds import RunSeeds


def numbers(seeds: RunSeeds) -> list[float]:
    drawn = [float(np.random.default_rng(seeds.spawn()).random()) for _ in range(3)]
    seeds.seed_global_generators(0)
    return [*drawn, random.random(), float(np.random.random())]


def test_one_seed_gives_the_same_streams_and_each_component_its_own():
    first = numbers(RunSeeds(7))
    assert first == numbers(RunSeeds(7))
    assert len(set(first)) == len(first)
    assert not set(first) & set(numbers(RunSeeds(8)))


def test_global_generators_get_other_seeds_after_the_levels_are_built():
    seeds = RunSeeds(7)
    drawn = []
    for number in (0, 1):
        seeds.seed_global_generators(number)
        drawn.append((random.random(), float(np.random.random())))
    assert drawn[0][0] != drawn[1][0] and drawn[0][1] != drawn[1][1]


def test_a_seed_is_drawn_where_none_is_given():
    assert RunSeeds().seed != RunSeeds().seed


def test_global_generators_go_on_where_they_stood():
    seeds = RunSeeds(7)
    seeds.seed_global_generators(1)
    state = seeds.get_state()
    expected = (random.random(), float(np.random.random()))
    other = RunSeeds(9)
    other.set_state(state)
    assert other.seed == 7 and (random.random(), float(np.random.random())) == expected
