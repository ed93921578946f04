from __future__ import annotations

import pytest

from rl_coach.runs.documents import read_document
from rl_coach.runs.experiments import load

CSV = "worker_0.simple_rl_graph.main_level.main_level.agent_0.csv"
OF_COACH = """heatup_steps:~
<rl_coach.core_types.EnvironmentSteps object at 0x7f1ae57a89b0>
env_params:~
"GymVectorEnvironment" {
    "frame_skip": 1,
    "level": "CartPole-v0",
    "seed": null
}

agent_params:~
"ClippedPPOAgentParameters" {
    "algorithm": {
        "discount": 0.999,
        "clip": -Infinity
    },
    "name": "agent"
}

_phase:~
RunPhase.UNDEFINED
task_parameters:~
"TaskParameters" {
    "seed": 7
}

""".replace("~", " ")  # no space at a line's end


@pytest.mark.parametrize(
    "name",
    [
        "worker_0.simple_rl_graph_0.json",
        "worker_0.simple_rl_graph.main_level.main_level.agent_0.json",
    ],
)
def test_the_graphs_document_and_one_of_the_csvs_own(tmp_path, name):
    (tmp_path / name).write_text('{"parameters": {"seed": 3}}')
    (tmp_path / "worker_1.simple_rl_graph_0.json").write_text('{"parameters": {"seed": 4}}')
    assert read_document(tmp_path / CSV) == {"parameters": {"seed": 3}}


def test_each_run_of_a_directory_has_its_own(tmp_path):
    for number in range(2):
        (tmp_path / f"worker_0.graph_{number}.json").write_text(f'{{"number": {number}}}')
    assert read_document(tmp_path / "worker_0.graph.level.agent_1.csv") == {"number": 1}


@pytest.mark.parametrize("text", ["", "{", "[1]", "\0", 'agent_params: \n"A" {\n  "cut'])
def test_a_damaged_one_is_empty(tmp_path, text):
    (tmp_path / "worker_0.graph_0.json").write_text(text)
    assert read_document(tmp_path / "worker_0.graph.level.agent_0.csv") == {}


def test_an_experiment_of_coach_1_0_1_says_what_it_is(tmp_path):
    (tmp_path / CSV).write_text("Episode #,Total steps,Evaluation Reward\n1,10,\n2,20,5.0\n")
    (tmp_path / "worker_0.simple_rl_graph_0.json").write_text(OF_COACH)
    run = load(tmp_path).runs.iloc[0]
    assert (run["agent"], run["environment"], run["seed"], run["steps"]) == ("ClippedPPO", "CartPole-v0", 7, 20)
