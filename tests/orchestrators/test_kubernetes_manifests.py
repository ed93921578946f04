"""Manifests of runs: against the schemas, and what they promise."""

from __future__ import annotations

import dataclasses
import json

import kubernetes_validate
import pytest
import yaml

from rl_coach.coach import BAD_INPUT, DONE, main
from rl_coach.orchestrators import kubernetes_manifests as manifests
from rl_coach.orchestrators.distributed_settings import DistributedSettings, PodSettings
from rl_coach.orchestrators.kubernetes_manifests import Container, KubernetesRun, Volume
from rl_coach.orchestrators.run_order import RunOrder
from rl_coach.runs.status import STATUS_COPY

OLDEST = "1.29"
BARE = KubernetesRun(
    name="coach-pole", namespace="rl", run="abc", trainer=Container("coach:1", ("python", "-m", "trainer")),
    worker=Container("worker:1", ("python",)), num_workers=3, redis=Container("redis:7"), redis_password="hush",
    order="{}\n",
)  # fmt: skip
FULL = dataclasses.replace(
    BARE, trainer=Container("coach:1", (), {"cpu": "2"}, {"memory": "4Gi", "nvidia.com/gpu": "1"}),
    s3_credentials=b"[default]\n", volume=Volume(server="nfs.example.com", path="/export"),
    settings=DistributedSettings(service_account="trainer", image_pull_secret="registry"),
)  # fmt: skip
PLACED = Container("coach:1", pod=PodSettings(
    node_selector={"pool": "gpu"}, tolerations=({"key": "nvidia.com/gpu", "operator": "Exists"},),
    labels={"team": "rl"}, env={"WANDB_MODE": "offline", "HOME": "/coach"},
    secrets=(("", "wandb", ""), ("WANDB_API_KEY", "keys", "wandb")),
))  # fmt: skip
RUNS = {
    "bare": BARE, "full": FULL,
    "placed": dataclasses.replace(BARE, trainer=PLACED, worker=PLACED),
    "external Redis": dataclasses.replace(BARE, redis=None, redis_password=None),
    "claim": dataclasses.replace(BARE, volume=Volume(claim="mine")),
    "class": dataclasses.replace(BARE, volume=Volume(storage_class="shared")),
}  # fmt: skip


def of(run: KubernetesRun, kind: str, suffix: str = "") -> dict:
    (found,) = [
        one for one in manifests.manifests(run) if one["kind"] == kind and one["metadata"]["name"].endswith(suffix)
    ]
    return found


def pods(run: KubernetesRun) -> list[dict]:
    return [one["spec"]["template"]["spec"] for one in manifests.manifests(run) if "template" in one.get("spec", {})]


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
@pytest.mark.parametrize("name", RUNS)
def test_manifests_satisfy_the_schemas(name, version):
    objects = manifests.manifests(RUNS[name])
    owner = {**objects[0], "metadata": {**objects[0]["metadata"], "uid": "1"}}
    for manifest in [*objects, manifests.suspended(objects[0]), *(manifests.owned(one, owner) for one in objects[1:])]:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_pods_run_and_know_what_their_settings_say():
    for suffix in ("trainer", "worker"):
        template = of(RUNS["placed"], "Job", suffix)["spec"]["template"]
        spec, (body,) = template["spec"], template["spec"]["containers"]
        assert spec["nodeSelector"] == {"pool": "gpu"}
        assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
        assert template["metadata"]["labels"]["team"] == "rl"
        assert template["metadata"]["labels"]["app.kubernetes.io/instance"] == "coach-pole"
        variables = {one["name"]: one.get("value", one.get("valueFrom")) for one in body["env"]}
        assert len(variables) == len(body["env"]) and variables["HOME"] == "/coach"
        assert variables["WANDB_MODE"] == "offline" and variables[STATUS_COPY] == "/dev/termination-log"
        assert variables["WANDB_API_KEY"] == {"secretKeyRef": {"name": "keys", "key": "wandb"}}
        assert body["envFrom"] == [{"secretRef": {"name": "wandb"}}]
    assert "nodeSelector" not in of(RUNS["placed"], "StatefulSet")["spec"]["template"]["spec"]


def test_all_but_the_owner_and_what_cannot_be_owned_go_with_it():
    objects = manifests.manifests(FULL)
    owner = {**objects[0], "metadata": {**objects[0]["metadata"], "uid": "1"}}
    owned = [manifests.owned(one, owner) for one in objects[1:]]
    free = [one["kind"] for one in owned if "ownerReferences" not in one["metadata"]]
    assert free == ["PersistentVolume"]
    assert all(one["metadata"]["namespace"] == "rl" for one in objects if one["kind"] != "PersistentVolume")


@pytest.mark.parametrize("name", RUNS)
def test_all_pods_are_restricted(name):
    for pod in pods(RUNS[name]):
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
            }  # fmt: skip
        assert {kind for volume in pod["volumes"] for kind in volume} <= {
            "name", "emptyDir", "configMap", "secret", "persistentVolumeClaim",
        }  # fmt: skip


def test_no_secret_stands_outside_of_secrets():
    for manifest in manifests.manifests(FULL):
        if manifest["kind"] != "Secret":
            assert "hush" not in str(manifest) and "aHVza" not in str(manifest)
        assert "env" not in str(manifest) or "secretKeyRef" not in str(manifest)
    assert "hush" not in repr(FULL)


def test_only_pods_of_the_run_reach_its_redis():
    spec = of(BARE, "NetworkPolicy", "redis")["spec"]
    labels = of(BARE, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"].items() <= labels.items()
    (rule,) = spec["ingress"]
    allowed = [peer["podSelector"]["matchLabels"] for peer in rule["from"]]
    for job in ("trainer", "worker"):
        labels = of(BARE, "Job", job)["spec"]["template"]["metadata"]["labels"]
        assert any(one.items() <= labels.items() for one in allowed)
    assert all(one[manifests.INSTANCE_LABEL] == "coach-pole" for one in allowed)
    assert (rule["ports"], spec["egress"]) == ([{"protocol": "TCP", "port": 6379}], [])


def test_workers_are_indexed_and_replaced_each_for_itself():
    spec = of(BARE, "Job", "worker")["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    assert spec["backoffLimitPerIndex"] == 5
    actions = [rule["action"] for rule in spec["podFailurePolicy"]["rules"]]
    assert actions == ["Ignore", "FailJob"]


def test_resources_and_gpus_reach_the_container():
    (container,) = of(FULL, "Job", "trainer")["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "2"}, "limits": {"memory": "4Gi", "nvidia.com/gpu": "1"}}


@pytest.mark.parametrize("settings", ["", "data_store = nfs\nnfs_claim = mine\n", "redis_url = redis://there:6379\n"])
def test_a_dry_run_prints_manifests_alone(settings, tmp_path, capfd):
    (tmp_path / "k8s.ini").write_text(f"[coach]\norchestrator = kubernetes\nimage = coach:2.0.0\n{settings}")
    with pytest.raises(SystemExit) as ended:
        main(["-p", "CartPole_ClippedPPO", "-dc", "-dcp", str(tmp_path / "k8s.ini"), "--dry_run"])
    assert ended.value.code == DONE
    printed = list(yaml.safe_load_all(capfd.readouterr().out))
    for manifest in printed:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    order = next(one for one in printed if one["kind"] == "ConfigMap")["data"]["order.json"]
    assert '"--preset=CartPole_ClippedPPO"' in order


def test_the_order_says_how_the_run_was_started(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k8s.ini").write_text("[coach]\norchestrator = kubernetes\nimage = coach:2.0.0\n")
    flags = ["-p", "CartPole_DQN", "-dc", "-dcp", "k8s.ini", "--dry_run"]
    monkeypatch.setattr("sys.argv", ["coach", *flags])
    with pytest.raises(SystemExit):
        main(flags)
    printed = yaml.safe_load_all(capfd.readouterr().out)
    (tmp_path / "order.json").write_text(
        next(one for one in printed if one["kind"] == "ConfigMap")["data"]["order.json"]
    )
    order = RunOrder.read(tmp_path / "order.json")
    assert order.command_line == ["coach", *flags] and order.config_path == str(tmp_path / "k8s.ini")


def test_a_run_of_a_cluster_goes_on_here_with_settings_of_this_machine_alone(tmp_path, monkeypatch, capsys):
    """Its record names the file of the cluster, which has no place for what lies here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k8s.ini").write_text("[coach]\norchestrator = kubernetes\nimage = coach:2.0.0\n")
    record = {
        "arguments": {
            "preset": "CartPole_DQN", "distributed_coach": True,
            "distributed_coach_config_path": str(tmp_path / "k8s.ini"),
        },
        "evaluate_only": False, "resumed": [],
    }  # fmt: skip
    (tmp_path / "experiment.json").write_text(json.dumps(record))
    assert main(["--resume", "."]) == BAD_INPUT
    error = capsys.readouterr().err
    assert "--resume does not work with orchestrator = kubernetes" in error and error.count("\n") == 1
    assert "to continue here, use -dcp FILE with orchestrator = local" in error
    (tmp_path / "here.ini").write_text("[coach]\norchestrator = local\n")
    assert main(["--resume", ".", "-dcp", "here.ini", "--keep"]) == BAD_INPUT
    assert "--keep works only with orchestrator = kubernetes" in capsys.readouterr().err, (
        "the run is one of this machine"
    )
