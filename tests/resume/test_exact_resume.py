from __future__ import annotations

import signal

import pytest

from tests.zoo.runs import created, resumed, run_names
from tests.zoo.states import differences, final_state, rows

pytestmark = pytest.mark.resume


def assert_equal_runs(one, other):
    assert differences(final_state(one), final_state(other)) == []
    assert rows(one) == rows(other)


@pytest.mark.parametrize("name", run_names())
def test_twice_n_steps_equal_n_steps_resumed_for_n_more(name, tmp_path):
    """N ends in the middle of an episode."""
    created(name, 600, tmp_path / "whole").run()
    first = created(name, 300, tmp_path / "parts")
    first.run()
    second = resumed(name, 600, tmp_path / "parts", seed=None)
    second.run()
    assert_equal_runs(tmp_path / "whole", tmp_path / "parts")
    assert any(row["Evaluation Reward"] for row in rows(tmp_path / "parts"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DQN", "PG", "SAC"])
def test_a_signal_at_any_step_changes_nothing(name, tmp_path):
    """In heatup, in training and in the middle of an evaluation."""
    created(name, 200, tmp_path / "whole").run()
    interrupted = 0
    run = created(name, 200, tmp_path / "parts")
    for step in (20, 75, 130, 250, 320):
        calls = 0
        environment_step = type(run.environments[0]).step

        def step_and_stop(self, action, step=step, run=run, environment_step=environment_step):
            nonlocal calls
            calls += 1
            if calls == step:
                run.stop_signals.ask(signal.SIGTERM)
            return environment_step(self, action)

        type(run.environments[0]).step = step_and_stop
        try:
            run.run()
            break
        except SystemExit as stop:
            assert stop.code == 143
            interrupted += 1
        finally:
            type(run.environments[0]).step = environment_step
        run = resumed(name, 200, tmp_path / "parts")
    else:
        run.run()
    assert interrupted >= 2
    assert_equal_runs(tmp_path / "whole", tmp_path / "parts")


def test_checkpoints_on_the_way_change_nothing(tmp_path):
    created("DQN", 200, tmp_path / "whole").run()
    created("DQN", 200, tmp_path / "saving", checkpoint_save_steps=30, checkpoint_keep=0).run()
    assert_equal_runs(tmp_path / "whole", tmp_path / "saving")
    names = sorted(path.name for path in (tmp_path / "saving" / "checkpoint").glob("*.ckpt"))
    assert {"0_Step-30.ckpt", "1_Step-60.ckpt"} <= set(names)
    again = created(
        "DQN", 200, tmp_path / "saving", resume=True,
        checkpoint_restore_path=str(tmp_path / "saving" / "checkpoint" / "1_Step-60.ckpt"),
    )  # fmt: skip
    again.run()
    assert_equal_runs(tmp_path / "whole", tmp_path / "saving")


def test_without_its_memory_a_run_goes_on_all_the_same(tmp_path):
    created("DQN", 120, tmp_path, checkpoint_memory=False).run()
    second = resumed("DQN", 240, tmp_path, checkpoint_memory=False)
    assert second.get_agent().memory.num_transitions() == 0
    second.run()
    assert second.get_agent().total_steps_counter >= 240


@pytest.mark.slow
def test_atari_in_the_middle_of_a_life_with_each_frame_stored_once(tmp_path):
    pytest.importorskip("ale_py")
    created("DQN on Breakout", 200, tmp_path / "whole").run()
    created("DQN on Breakout", 100, tmp_path / "parts").run()
    resumed("DQN on Breakout", 200, tmp_path / "parts").run()
    assert_equal_runs(tmp_path / "whole", tmp_path / "parts")
