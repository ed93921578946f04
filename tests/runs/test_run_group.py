from __future__ import annotations

import json

import pytest

from rl_coach.runs import run_group
from rl_coach.runs.experiments import describe
from rl_coach.utils import CoachError
from tests.dashboard.runs import write_run


def test_runs_that_were_started_together_are_one_experiment(tmp_path):
    path = write_run(tmp_path, "CartPole_DQN", "21_11_2026-10_30/seed_4", seed=4)
    assert describe(path, tmp_path, "id").experiment == "CartPole_DQN/21_11_2026-10_30/seed_4"
    run_group.write(path.parent.parent, {"arguments": {}, "runs": []})
    about = describe(path, tmp_path, "id")
    assert (about.experiment, about.seed) == ("CartPole_DQN/21_11_2026-10_30", 4)
    assert describe(path, path.parent.parent, "id").experiment == "21_11_2026-10_30"


def test_a_group_stands_for_those_of_its_runs_that_have_begun(tmp_path):
    assert run_group.run_directories(tmp_path) == [str(tmp_path)]
    (tmp_path / "seed_1").mkdir()
    run_group.write(tmp_path, {"arguments": {}, "runs": [{"name": "seed_0"}, {"name": "seed_1"}]})
    assert run_group.is_group(tmp_path)
    assert run_group.run_directories(tmp_path) == [str(tmp_path / "seed_1")]


@pytest.mark.parametrize(
    "document",
    [
        {"arguments": {}},
        {"runs": []},
        {"arguments": {}, "runs": ["seed_0"]},
        {"arguments": {}, "runs": [{"name": "../elsewhere"}]},
        {"arguments": {}, "runs": [{"name": ".."}]},
    ],
)
def test_a_damaged_record_is_an_error(tmp_path, document):
    (tmp_path / "runs.json").write_text(json.dumps(document))
    with pytest.raises(CoachError, match="damaged"):
        run_group.read(tmp_path)
