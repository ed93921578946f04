from __future__ import annotations

import pytest

from tests.zoo.runs import created, run_names
from tests.zoo.states import differences, final_state, rows

pytestmark = pytest.mark.resume


@pytest.mark.parametrize("name", run_names("DQN", "SAC"))
def test_two_runs_with_one_seed_are_equal_to_the_bit_and_a_third_is_not(name, tmp_path):
    for directory, seed in (("one", 5), ("other", 5), ("third", 6)):
        created(name, 200, tmp_path / directory, seed=seed).run()
    assert differences(final_state(tmp_path / "one"), final_state(tmp_path / "other")) == []
    assert rows(tmp_path / "one") == rows(tmp_path / "other")
    assert differences(final_state(tmp_path / "one"), final_state(tmp_path / "third"))
