"""The INI file of ``-dcp``."""

from __future__ import annotations

import pytest

from rl_coach.coach import BAD_INPUT, main
from rl_coach.orchestrators import distributed_settings
from rl_coach.orchestrators.distributed_settings import PodSettings, quantity
from rl_coach.utils import CoachError, CoachErrors


def read(tmp_path, text):
    (tmp_path / "run.ini").write_text(text)
    return distributed_settings.read(str(tmp_path / "run.ini"))


def mistakes(tmp_path, text):
    with pytest.raises(CoachErrors) as raised:
        read(tmp_path, text)
    return [line.removeprefix(f"'{tmp_path / 'run.ini'}': ") for line in raised.value.mistakes]


def test_a_file_of_coach_means_kubernetes(tmp_path):
    (tmp_path / "credentials").write_text("")
    settings = read(
        tmp_path,
        "[coach]\nimage = registry/coach:1\nmemory_backend = redispubsub\ndata_store = s3\n"
        f"s3_end_point = s3.amazonaws.com\ns3_bucket_name = my-bucket\ns3_creds_file = {tmp_path}/credentials\n",
    )
    assert settings.orchestrator == "kubernetes"
    assert (settings.memory_backend, settings.data_store) == ("redis", "s3")
    assert settings.s3_end_point == "https://s3.amazonaws.com"
    assert settings.s3_creds_file == str(tmp_path / "credentials")


def test_without_an_image_it_is_this_machine(tmp_path):
    assert read(tmp_path, "[coach]\nmemory_backend = redis\n").orchestrator == "local"


def test_a_cluster_of_ray_is_one_that_this_machine_is_a_node_of(tmp_path):
    settings = read(tmp_path, "[coach]\norchestrator = ray\nray_address = 10.0.0.5:6379\n[worker]\ncpu = 2\n")
    assert (settings.orchestrator, settings.ray_address, settings.worker.cpu) == ("ray", "10.0.0.5:6379", "2")
    assert read(tmp_path, "[coach]\norchestrator = ray\n").ray_address == "auto"
    (line,) = mistakes(tmp_path, "[coach]\norchestrator = ray\nray_address = ray://10.0.0.5:10001\n")
    assert line.startswith("[coach] ray_address = ray://10.0.0.5:10001: allowed: auto, or host:port")
    assert line.endswith("ray job submit")


def test_resources_are_those_of_their_pods(tmp_path):
    settings = read(
        tmp_path,
        "[coach]\nimage = a\n[trainer]\ncpu = 2\ngpus = 1\n[worker]\nimage = b\nmemory = 512Mi\nmemory_limit = 1Gi\n",
    )
    assert settings.trainer == PodSettings(cpu="2", gpus=1)
    assert settings.worker == PodSettings(image="b", memory="512Mi", memory_limit="1Gi")
    assert settings.redis.image.startswith("redis:")


PLACEMENT = """\
[coach]
image = a
node_selector = pool=cpu, kubernetes.io/arch=amd64
tolerations = spot
labels = team=rl
env = WANDB_MODE=offline, NO_PROXY=a,b
secrets = wandb
[trainer]
node_selector = pool=gpu
tolerations = nvidia.com/gpu:NoSchedule
    dedicated=rl:NoExecute
    *
env =
    WANDB_MODE=online
    EQUATION=a=b
secrets = WANDB_API_KEY=keys/wandb.key
"""


def test_where_pods_run_and_what_they_know_is_set_for_all_and_for_each(tmp_path):
    settings = read(tmp_path, PLACEMENT)
    trainer, worker, redis = settings.trainer, settings.worker, settings.redis
    assert worker.node_selector == redis.node_selector == {"pool": "cpu", "kubernetes.io/arch": "amd64"}
    assert trainer.node_selector == {"pool": "gpu", "kubernetes.io/arch": "amd64"}
    assert worker.tolerations == redis.tolerations == ({"key": "spot", "operator": "Exists"},)
    assert trainer.tolerations == (
        {"key": "spot", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Equal", "value": "rl", "effect": "NoExecute"},
        {"operator": "Exists"},
    )
    assert trainer.labels == worker.labels == redis.labels == {"team": "rl"}
    assert worker.env == {"WANDB_MODE": "offline", "NO_PROXY": "a,b"} and redis.env == {}
    assert trainer.env == {"WANDB_MODE": "online", "NO_PROXY": "a,b", "EQUATION": "a=b"}
    assert worker.secrets == (("", "wandb", ""),) and redis.secrets == ()
    assert trainer.secrets == (("", "wandb", ""), ("WANDB_API_KEY", "keys", "wandb.key"))


def test_the_password_of_a_redis_is_kept_apart_from_its_address(tmp_path):
    settings = read(tmp_path, "[coach]\nredis_url = rediss://me:h%40sh@redis.example.com:6380/2\n")
    assert (settings.redis_url, settings.redis_password) == ("rediss://me@redis.example.com:6380/2", "h@sh")
    assert "h@sh" not in repr(settings)
    settings = read(tmp_path, "[coach]\nredis_url = unix://:h%40sh@/run/redis.sock?db=2\n")
    assert (settings.redis_url, settings.redis_password) == ("unix:///run/redis.sock?db=2", "h@sh")
    (tmp_path / "password").write_text("from a file\n")
    settings = read(tmp_path, f"[coach]\nredis_url = redis://there\nredis_password_file = {tmp_path}/password\n")
    assert settings.redis_password == "from a file"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[coach]\norchestrator = swarm", "[coach] orchestrator = swarm: allowed: local, ray, kubernetes"),
        ("[coach]\ndata_store = ftp", "[coach] data_store = ftp: allowed: redis, nfs, s3"),
        ("[coach]\nnamspace = a", "[coach] namspace = a: no such key; did you mean 'namespace'?"),
        (
            "[coach]\nredis_password = a",
            "[coach] redis_password = ***: no such key; did you mean 'redis_password_file'",
        ),
        ("[coach]\nnamespace = A_b", "[coach] namespace = A_b: allowed: at most 63 characters of a-z, 0-9 and '-'"),
        ("[trainr]\ncpu = 1", "no section [trainr]; did you mean 'trainer'? (the sections are [coach], [trainer],"),
        ("[worker]\nmemory = lots", "[worker] memory = lots: allowed: a quantity such as 2, 500m, 512Mi or 4Gi"),
        ("[worker]\ncpu = 2\ncpu_limit = 500m", "[worker] cpu_limit = 500m: allowed: at least cpu = 2"),
        ("[trainer]\ngpus = -1", "[trainer] gpus = -1: allowed: a whole number, 0 or more"),
        ("[coach]\ndata_store = s3", "[coach] data_store = s3: s3_bucket_name is missing"),
        ("[coach]\ndata_store = nfs", "[coach] data_store = nfs: nfs_path, a directory that all"),
        ("[coach]\norchestrator = kubernetes", "[trainer] image is missing: orchestrator = kubernetes needs"),
        ("[worker]\nimage = a", "[trainer] image is missing: orchestrator = kubernetes needs"),
        ("[coach]\nimage = a\ndata_store = nfs", "[coach] data_store = nfs: allowed: exactly one of nfs_cl"),
        ("[coach]\ns3_creds_file = /nowhere", "[coach] s3_creds_file = /nowhere: allowed: a file that can be read (No"),
        ("[coach]\nredis_url = redis://:hush@a:b", "[coach] redis_url = redis://...@a:b: allowed: redis://host:port"),
        ("[coach]\nredis_url = redis://:hu/sh@a", "[coach] redis_url = redis://...@a: allowed: redis://host:port/database"),
        ("[coach]\nredis_url = redis://:12/sh@a", "[coach] redis_url = redis://...@a: in a password, write special"),
        ("[coach]\nredis_url = redis://:12#sh@a", "[coach] redis_url = redis://...@a: in a password, write special"),
        ("[coach]\nredis_url = redis://a?password=hush", "[coach] redis_url = redis://a?password=...: no set"),
        ("[coach]\nredis_url = redis://a?ssl_ca_certs=/a", "[coach] redis_url = redis://a?ssl_ca_certs=/a: no setting"),
        ("[coach]\nredis_url = unix://a.sock", "[coach] redis_url = unix://a.sock: allowed: the absolute path of a"),
        (
            "[coach]\nredis_url = rediss://a?ssl_keyfile=/k",
            "[coach] redis_url = rediss://a?ssl_keyfile=/k: 'ssl_keyfile' after '?' needs 'ssl_certfile'",
        ),
        (
            "[coach]\nredis_url = rediss://a?ssl_cert_reqs=none&ssl_check_hostname=1",
            "[coach] redis_url = rediss://a?ssl_cert_reqs=none&ssl_check_hostname=1: 'ssl_check_hostname' after '?'",
        ),
        ("[coach]\nredis_url = rediss://a?ssl_ca_certs=/no", "[coach] redis_url = rediss://a?ssl_ca_certs=/no: ssl_"),
        (
            "[coach]\nimage = a\nredis_url = unix:///a",
            "[coach] redis_url = unix:///a: a socket of this machine, which orchestrator = kubernetes cannot reach",
        ),
        ("[worker]\nnode_selector = gpu", "[worker] node_selector = gpu: allowed: labels of nodes such as pool=gpu"),
        ("[worker]\ntolerations = a:Never", "[worker] tolerations = a:Never: allowed: taints such as nvidia.com/gpu"),
        ("[worker]\nlabels = a=b=c", "[worker] labels = a=b=c: allowed: labels such as team=rl"),
        ("[coach]\nlabels = app.kubernetes.io/name=a", "[coach] labels = app.kubernetes.io/name=a: allowed: other"),
        ("[trainer]\nenv = A-B=1", "[trainer] env = A-B=1: allowed: variables such as WANDB_PROJECT=mine, one on each"),
        ("[trainer]\nsecrets = A=b", "[trainer] secrets = A=b: allowed: WANDB_API_KEY=secret/key for a variable, or s"),
        ("[redis]\nenv = A=1", "[redis] env = A=1: no such key"),
        ("[worker]\nenv = A=1", "[worker] env: works only with orchestrator = kubernetes, not with local"),
        ("[worker]\ncpu = 2", "[worker] cpu: works only with orchestrator = kubernetes or ray, not with local"),
        ("[redis]\nmemory = 2Gi", "[redis] memory: works only with orchestrator = kubernetes, not with local"),
        ("[coach]\nray_address = auto", "[coach] ray_address: works only with orchestrator = ray, not with local"),
        ("[coach]\nimage = two words", "[coach] image = two words: allowed: an image such as"),
    ],
)  # fmt: skip
def test_a_mistake_names_section_key_value_and_what_is_allowed(tmp_path, text, line):
    assert mistakes(tmp_path, text)[0].startswith(line)


def test_each_key_without_effect_is_a_line(tmp_path):
    keys = "labels = team=rl\nnamespace = rl\nimage = a\nstart_seconds = 9\nray_address = auto\nrestarts = 1\n"
    pods = "[worker]\ncpu = 2\ncpu_limit = 3\n[redis]\ncpu = 2\n"
    lines = mistakes(tmp_path, f"[coach]\norchestrator = ray\n{keys}{pods}")
    found = [line.partition(": works only with orchestrator = kubernetes, not with ray")[0] for line in lines]
    where = [*(f"[coach] {key}" for key in ("labels", "namespace", "image", "restarts")), "[worker] cpu_limit"]
    assert found == [*where, "[redis] cpu"]
    (line,) = mistakes(tmp_path, "[coach]\nimage = a\nray_address = auto\n[worker]\ncpu = 2\n")
    assert line == "[coach] ray_address: works only with orchestrator = ray, not with kubernetes"
    assert len(mistakes(tmp_path, "[coach]\norchestrator = swarm\nnamespace = rl\n")) == 1


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"\xff\xfe"])
def test_a_password_file_without_one_password_is_refused(tmp_path, content):
    (tmp_path / "password").write_bytes(content)
    (line,) = mistakes(tmp_path, f"[coach]\nredis_url = redis://a\nredis_password_file = {tmp_path}/password\n")
    assert line.startswith(f"[coach] redis_password_file = {tmp_path}/password: allowed: a ")


def test_all_mistakes_are_told_at_once_a_line_each(tmp_path, capsys):
    file = tmp_path / "run.ini"
    file.write_text("[coach]\ndata_store = ftp\n[worker]\ncpu = x\nmemry = 1\n")
    assert main(["-p", "CartPole_DQN", "-dc", "-dcp", str(file)]) == BAD_INPUT
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all(line.startswith(f"coach: '{file}': [") for line in lines)


@pytest.mark.parametrize("text", ["image = a", "[coach]\nimage = a\nimage = b", "[coach\n"])
def test_what_is_no_ini_file_is_one_line(tmp_path, text):
    with pytest.raises(CoachError, match=r"-dcp: '.*run.ini' is not an INI file: .*"):
        read(tmp_path, text)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(CoachError, match=r"-dcp: cannot read '.*none.ini': No such file"):
        distributed_settings.read(str(tmp_path / "none.ini"))


@pytest.mark.parametrize("flag", ["--dry_run", "--attach", "--keep"])
def test_flags_of_kubernetes_want_kubernetes(flag, capsys):
    assert main(["-p", "CartPole_DQN", "-dc", flag]) == BAD_INPUT
    assert f"coach: {flag} works only with orchestrator = kubernetes" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["-dcp", "a.ini"], ["--dry_run"], ["--attach"], ["--keep"], ["--dump_worker_logs"]])
def test_flags_of_distributed_runs_want_one(flags, capsys):
    assert main(["-p", "CartPole_DQN", *flags]) == BAD_INPUT
    assert "only with -dc" in capsys.readouterr().err


def test_quantities_are_those_of_kubernetes():
    assert [quantity(text) for text in ("500m", "2", "1.5Gi", "3M")] == [quantity("0.5"), 2, 1.5 * 2**30, 3_000_000]
