"""``coach dataset``: record, look, convert, and learn from it."""

import pytest

from rl_coach.coach import main
from rl_coach.memories import data_set_files

DONE, BAD_INPUT = 0, 2


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_recorded_is_converted_described_and_learned_from(place, capsys):
    pytest.importorskip("minari")
    recording = ["dataset", "record", "-p", "CartPole_DQN", "--steps", "60", "--seed", "3"]
    assert main([*recording, "-o", "random.csv"]) == DONE
    assert [path.name for path in place.iterdir()] == ["random.csv"]  # no experiment of it
    assert main(["dataset", "convert", "random.csv", "minari:cartpole/random-v0"]) == DONE
    data_set = data_set_files.read("random.csv")
    steps, episodes = len(data_set.columns), len(data_set.episode_lengths)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrote")]
    assert said == [
        f"wrote {steps} steps in {episodes} episodes: random.csv",
        f"wrote {steps} steps in {episodes} episodes: minari:cartpole/random-v0",
    ]
    for form in ("random.csv", "minari:cartpole/random-v0"):
        assert main(["dataset", "info", form]) == DONE
        lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
        assert lines["steps"].strip() == str(steps) and lines["values"].strip() == "raw, of the environment"
        assert lines["episodes"].strip() == f"{episodes}, of which {episodes} terminated and 0 were cut off"
        assert lines["probabilities of actions"].strip() == "yes"
    assert main([*recording, "-o", "again.csv"]) == DONE
    assert (place / "again.csv").read_text() == (place / "random.csv").read_text()
    data = "agent_params.memory.load_memory_from_file_path='minari:cartpole/random-v0'; improve_steps=TrainingSteps(5)"
    assert main(["-p", "CartPole_BC", "-cp", data, "--no_summary"]) == DONE


def test_a_trained_policy_is_recorded_as_it_is_deployed(place, capsys):
    short = (
        "heatup_steps=EnvironmentSteps(40); improve_steps=EnvironmentSteps(60); evaluation_steps=EnvironmentSteps(0)"
    )
    assert main(["-p", "CartPole_DQN", "--seed", "1", "-s", "100", "-cp", short, "-ep", "runs", "-e", "one"]) == DONE
    (run,) = (place / "runs" / "one").iterdir()
    before = sorted(path.name for path in run.rglob("*"))
    for flags in (["-p", "CartPole_DQN", "-crd", str(run)], ["--resume", str(run)]):
        output = f"{flags[0].strip('-')}.csv"
        assert main(["dataset", "record", *flags, "--steps", "20", "-o", output]) == DONE
        probabilities = data_set_files.read(output).columns.info("all_action_probabilities")
        assert set(probabilities.max(axis=1)) != {0.5}  # its network's choice, not chance
    assert sorted(path.name for path in run.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["info", "nothing.csv"], "cannot read 'nothing.csv'"),
        (["info", "here.csv", "--steps", "3"], "unknown flag '--steps'"),
        (["convert", "here.csv", "there.npz"], "not a data set that can be written"),
        (["convert", "here.csv", "here.csv"], "'here.csv' exists already"),
        (["record", "-p", "CartPole_DQN", "--steps", "5", "-o", "here.csv"], "'here.csv' exists already"),
        (["record", "-p", "CartPole_DQN", "--steps", "5", "-o", "new.csv", "--polcy", "random"], "unknown flag"),
        (["record", "-p", "CartPole_A3C", "-n", "2", "--steps", "5", "-o", "new.csv"], "leave out -dc, -n"),
        (["record", "-p", "CartPole_A3C", "--seeds", "2", "--steps", "5", "-o", "new.csv"], "leave out --seeds"),
        (["record", "-p", "CartPole_A3C", "--list", "--steps", "5", "-o", "new.csv"], "leave out --list"),
        (["record", "--resume", "../several", "--steps", "5", "-o", "new.csv"], "'../several' has several runs"),
        (["record", "-p", "Spread_PPO", "--steps", "5", "-o", "new.csv"], "only one agent in one copy"),
        ([], "COMMAND"),
    ],
)
def test_bad_input_is_one_line(place, capsys, arguments, message):
    several = place.parent / "several"
    several.mkdir(exist_ok=True)
    (several / "runs.json").write_text('{"arguments": {"preset": "CartPole_DQN"}, "runs": []}')
    (place / "here.csv").write_text("episode_id,action,reward,state_feature_0\n0,1,1,1\n0,1,1,1\n")
    assert main(["dataset", *arguments]) == BAD_INPUT
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert [path.name for path in place.iterdir()] == ["here.csv"]
