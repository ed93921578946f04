"""Whatever a message of a worker says, the trainer's agent refuses it as a whole or learns from it, and goes on."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rl_coach.agents.core.transport import FILTERS, about_played, played_in
from rl_coach.base_parameters import TaskRole
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_crop_filter import ObservationCropFilter
from rl_coach.memories.backend.wire import Chunk, EncodedChunk, decode, pack, unpack
from rl_coach.memories.outgoing import OutgoingMemoryParameters
from rl_coach.utils import CoachError
from tests.agents.test_received_segments import recurrent_actor_critic
from tests.agents.test_taking_in import normalized_dqn
from tests.test_rollout_worker import Pictures, image
from tests.zoo import parameters
from tests.zoo.environments import Bandit, Lottery, Target
from tests.zoo.false_messages import false_messages
from tests.zoo.graphs import graph, schedule

AGENTS = {
    "statistics": (normalized_dqn, Bandit),
    "frames": (image, Pictures),
    "episodes": (parameters.clipped_ppo, Lottery),
    "segments": (recurrent_actor_critic, Lottery),
    "continuous": (parameters.soft_actor_critic, Target),
    "recurrent": (parameters.recurrent_dqn, Lottery),
    "priorities": (parameters.apex, Lottery),
}
STEPS = 20


class Split:
    """A worker and its trainer without a transport in between: messages are kept."""

    def __init__(self, make_agent, environment, directory):
        acting = make_agent()
        acting.memory = OutgoingMemoryParameters(acting.memory)
        self.worker = graph(acting, environment, directory / "worker", schedule(1000), role=TaskRole.ROLLOUT)
        self.trainer = graph(make_agent(), environment, directory / "trainer", schedule(1000), role=TaskRole.TRAINING)
        self.player, self.learner = self.worker.get_agent(), self.trainer.get_agent()
        self.player.signals.reports, self.player.experience.segment_starts = [], []
        self.prioritize, self.player.experience.prioritize = self.player.experience.prioritize, None
        self.worker.phase = self.trainer.phase = RunPhase.TRAIN
        for name in FILTERS:
            getattr(self.player, name).take_gathered()
        self.number = 0

    def message(self):
        """What a worker sends of some steps."""
        player, steps = self.player, 0
        while steps < STEPS or not player.signals.reports:
            self.worker.act(EnvironmentSteps(1))
            steps += 1
        if player.memory.stores_episodes:
            player.cut_episode()
        columns, lengths = player.memory.take()
        gathered = {name: getattr(player, name).take_gathered() for name in FILTERS}
        about = about_played(
            player.signals.reports,
            player.experience.segment_starts,
            {name: one for name, one in gathered.items() if one},
            None if self.prioritize is None else self.prioritize(columns),
        )
        player.signals.reports, player.experience.segment_starts = [], []
        self.number += 1
        chunk = Chunk("run", "worker.1", self.number, self.number, (1, 1), 0, steps, lengths, columns, about)
        return {name: bytes(value) for name, value in EncodedChunk(chunk).fields(self.number).items()}

    def take_in(self, fields):
        """:raises CoachError: the message is refused"""
        self.learner.take_in(played_in(decode(fields, "run")))

    def counts(self):
        """What a message changes."""
        learner = self.learner
        filters = pack({name: one.get_state() for name, one in learner.filters.items()})
        return learner.total_steps_counter, learner.current_episode, learner.memory.num_transitions(), filters

    def train(self):
        """Learn from what there is."""
        for _ in range(3):
            self.learner.train()


@pytest.fixture(params=AGENTS)
def split(request, tmp_path):
    return Split(*AGENTS[request.param], tmp_path)


def test_no_field_of_a_message_can_be_what_ends_the_trainer(split):
    honest = split.message()
    refused = accepted = 0
    for what, fields in false_messages(honest):
        before = split.counts()
        try:
            split.take_in(fields)
        except CoachError as error:
            assert split.counts() == before, (what, error)
            refused += 1
            continue
        accepted += 1
        after = split.counts()
        assert after[0] - before[0] <= 2 * STEPS + 256 and after[1] - before[1] <= 2 * STEPS, what
        assert after[2] - before[2] <= 2 * STEPS, what
    split.train()
    split.take_in(honest)
    split.take_in(split.message())
    split.train()
    assert refused > 500, "and most are refused"
    for network in split.learner.networks.values():
        assert all(np.isfinite(array).all() for array in network.online_network.get_weights())


def test_a_first_message_cannot_decide_what_the_memory_holds(split):
    """An empty memory takes the shapes of its first row."""
    honest = split.message()
    header = unpack(honest[b"header"])
    index, (path, dtype, shape, *details) = next(
        (i, one) for i, one in enumerate(header["columns"]) if one[0].partition("/")[0] in ("frames", "state")
    )
    header["columns"][index] = [path, dtype, [shape[0], 2, *shape[1:]], *details]
    buffer = str(index).encode()
    with pytest.raises(CoachError):
        split.take_in({**honest, b"header": pack(header), buffer: honest[buffer] * 2})
    split.take_in(honest)


def cropped():
    agent = image()
    agent.pre_network_filter = InputFilter()
    agent.pre_network_filter.add_observation_filter(
        "observation", "crop", ObservationCropFilter(np.array([0, 0, 0]), np.array([8, 12, 3]))
    )
    return agent


def test_observations_arrive_as_the_memory_keeps_them(tmp_path):
    """What the filter before the networks makes of them is no message's matter."""
    split = Split(cropped, Pictures, tmp_path)
    assert split.learner.spaces.state["observation"].shape.tolist() == [8, 12, 3]
    split.take_in(split.message())
    assert split.learner.memory.num_transitions() >= STEPS


def message_of(split, **changes):
    honest = split.message()
    return {**honest, b"header": pack({**unpack(honest[b"header"]), **changes})}


@pytest.fixture
def value_learner(tmp_path):
    return Split(*AGENTS["statistics"], tmp_path)


def test_a_message_cannot_count_more_than_it_brings(value_learner):
    value_learner.learner.experience.most_steps_ahead = 32
    with pytest.raises(CoachError, match="counts 90000 steps"):
        value_learner.take_in(message_of(value_learner, steps=90_000))
    report = [RunPhase.TRAIN.name, 1, 1.0, 1.0, {}]
    with pytest.raises(CoachError, match="50000 episodes that ended in only"):
        value_learner.take_in(message_of(value_learner, about={"reports": [report] * 50_000}))
    with pytest.raises(CoachError, match="an episode with a reward of 'much'"):
        value_learner.take_in(message_of(value_learner, about={"reports": [["TRAIN", 1, "much", 1.0, {}]]}))


def test_an_index_of_two_bytes_cannot_stand_for_terabytes(tmp_path):
    split = Split(*AGENTS["frames"], tmp_path)
    honest = split.message()
    header = unpack(honest[b"header"])
    paths = [one[0] for one in header["columns"]]
    frames, state, following = (paths.index(f"{kind}/observation") for kind in ("frames", "state", "next_state"))
    rows = header["columns"][state][2][0]
    header["columns"][frames] = ["frames/observation", "|u1", [1, 1 << 20]]
    header["columns"][state] = ["state/observation", "<u2", [rows, 400_000], -1, "observation"]
    sizes = {frames: 1 << 20, state: rows * 800_000, following: len(honest[str(following).encode()])}
    zeros = {str(index).encode(): bytes(size) for index, size in sizes.items()}
    fields = {**honest, b"header": pack(header), **zeros}
    tracemalloc.start()
    with pytest.raises(CoachError, match="too large"):
        split.take_in(fields)
    assert tracemalloc.get_traced_memory()[1] < 256 << 20
    tracemalloc.stop()
