"""ALE's own vectorised environment against ours, frame by frame: what docs/several_environments.md says of it."""

from __future__ import annotations

import functools

import gymnasium
import numpy as np
import pytest

from rl_coach.environments.gym_environment import AtariInputFilter
from rl_coach.environments.gym_wrappers import MaxOverFramesAndFrameskipEnvWrapper
from rl_coach.environments.vector_levels import make_simulator

pytest.importorskip("ale_py.vector_env")

STEPS = 120
AS_IT_IS = {"noop_max": 0, "use_fire_reset": False, "reward_clipping": False, "stack_num": 1, "num_threads": 1}


def played(rom, steps=STEPS, **image):
    """Observations, rewards and ends of ALE's environment: those of the reset, then of each action."""
    from ale_py.vector_env import AtariVectorEnv

    environment = AtariVectorEnv(rom, 1, **AS_IT_IS, **image)
    yield environment.reset(seed=3)[0][0, 0], 0.0, False
    for action in actions(environment.single_action_space.n, steps):
        observation, reward, terminated, *_ = environment.step(np.array([action]))
        yield observation[0, 0], float(reward[0]), bool(terminated[0])


def played_here(level, steps=STEPS):
    """The same of ours, before the filters."""
    simulator: gymnasium.Env = make_simulator(level, {}, 4, None)
    environment = MaxOverFramesAndFrameskipEnvWrapper(simulator, 4, 2)
    yield environment.reset(seed=3)[0], 0.0, False
    for action in actions(environment.action_space.n, steps):
        observation, reward, terminated, *_ = environment.step(action)
        yield observation, float(reward), terminated


def actions(num_actions, steps):
    return np.random.default_rng(0).integers(num_actions, size=steps)


def preprocessed(observation):
    """84×84 grey pixels, as the filters of Atari presets make them; stacking aside."""
    filters = list(AtariInputFilter().observation_filters["observation"].values())[:3]
    return functools.reduce(lambda image, one: one.filter(image), filters, observation)


GAMES = [("pong", "PongDeterministic-v4"), ("seaquest", "SeaquestDeterministic-v4")]


@pytest.mark.parametrize(("rom", "level"), GAMES)
def test_its_whole_screens_and_rewards_are_ours(rom, level):
    theirs = played(rom, grayscale=False, img_height=210, img_width=160)
    for (screen, *outcome), (our_screen, *our_outcome) in zip(theirs, played_here(level), strict=True):
        np.testing.assert_array_equal(screen, our_screen)
        assert outcome == our_outcome


def test_its_games_are_ours_up_to_the_screen_of_their_last_step():
    theirs = played("seaquest", 5000, grayscale=False, img_height=210, img_width=160)
    for (screen, *outcome), (our_screen, *our_outcome) in zip(theirs, played_here("SeaquestDeterministic-v4", 5000)):
        assert outcome == our_outcome
        if outcome[1]:
            return
        np.testing.assert_array_equal(screen, our_screen)
    raise AssertionError("the game did not end")


@pytest.mark.parametrize(("rom", "level"), GAMES)
def test_its_small_grey_images_are_not_quite_those_of_coachs_filters(rom, level):
    pairs = zip(played(rom), played_here(level), strict=True)
    differences = np.array([np.abs(small.astype(int) - preprocessed(whole)) for (small, *_), (whole, *_) in pairs])
    assert 0 < differences.max() <= 32
    assert 0 < (differences > 0).mean() < 0.05


def test_it_does_not_tell_its_state():
    import ale_py

    offered = [name.lower() for name in dir(ale_py.ALEVectorInterface) if not name.startswith("__")]
    assert not any("state" in name for name in offered)
