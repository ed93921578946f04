from __future__ import annotations

import pytest

from rl_coach.runs.documents import read_document
from tests.dashboard.runs import COACH_1_RECORD

CSV = "worker_0.simple_rl_graph.main_level.main_level.agent_0.csv"


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


def test_without_an_index(tmp_path):
    (tmp_path / "worker_0.graph.json").write_text('{"number": 5}')
    assert read_document(tmp_path / "worker_0.graph.level.agent.csv") == {"number": 5}


def test_what_coach_1_0_1_wrote_has_the_names_of_today(tmp_path):
    (tmp_path / "worker_0.simple_rl_graph_0.json").write_text(COACH_1_RECORD)
    document = read_document(tmp_path / CSV)
    assert set(document) == {"agent", "environment", "task", "graph"}
    assert document["agent"]["__class__"] == "ClippedPPOAgentParameters"
    assert document["agent"]["network_wrappers"]["main"]["embedding_merger_type"] == "Concat"
    assert document["agent"]["visualization"]["max_reward_achieved"] == float("-inf")
    assert document["task"]["seed"] == 7
    assert document["graph"] == {"name": "simple_rl_graph", "graph_creation_time": "1556892000.9"}


def test_the_first_of_several_agents_of_coach_1_0_1(tmp_path):
    agents = '0: "DQNAgentParameters" {\n    "number": 0\n}\n1: "DDPGAgentParameters" {\n    "number": 1\n}\n'
    (tmp_path / "worker_0.simple_rl_graph_0.json").write_text(f"agents_params: \n{agents}")
    assert read_document(tmp_path / CSV)["agent"] == {"number": 0, "__class__": "DQNAgentParameters"}
