"""deploy/kubernetes: manifests that Kubernetes takes, whose pods run_pod.sh understands."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import documents
import pytest
import yaml
from suite.needs import needs

from hccl_tools.common import version
from tools.launch import monitored
from tools.launch.engines import ports
from tools.launch.pods import pod_table
from tools.launch.pods.pod_watch import MOVED

ROOT = documents.ROOT
FOLDER = ROOT / "deploy" / "kubernetes"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
WAYS = sorted(path.parent.name for path in FOLDER.glob("*/kustomization.yaml"))
VERSIONS = ("1.29", "1.37")  # of Kubernetes: the schema of 1.28 demands of podFailurePolicy what the server does not
NPUS = "huawei.com/Ascend910"
SCHEMAS = {
    "mindxdl.gitee.com/v1": "ascendjob.schema.json",
    "batch.volcano.sh/v1alpha1": "volcano_job.schema.json",
}
needs_kubernetes_validate = pytest.mark.skipif(
    not importlib.util.find_spec("kubernetes_validate"), reason="needs kubernetes-validate"
)


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def resources(way):
    """The documents of a way, in its kustomization's order."""
    names = load(FOLDER / way / "kustomization.yaml")["resources"]
    return [load(FOLDER / way / name) for name in names]


def templates(job):
    """{role: (replicas, pod template)} of a job of any kind."""
    spec = job["spec"]
    if "replicaSpecs" in spec:
        return {role: (each["replicas"], each["template"]) for role, each in spec["replicaSpecs"].items()}
    if "tasks" in spec:
        return {task["name"]: (task["replicas"], task["template"]) for task in spec["tasks"]}
    return {"worker": (spec["completions"], spec["template"])}


JOBS = {way: next(each for each in resources(way) if "Job" in each["kind"]) for way in WAYS}
PODS = [(way, role) for way, job in JOBS.items() for role in templates(job)]


def container(way, role):
    (only,) = templates(JOBS[way])[role][1]["spec"]["containers"]
    return only


def test_every_file_is_part_of_a_way():
    assert WAYS == ["ascendjob", "indexed_job", "volcano"]
    for way in WAYS:
        names = {path.name for path in (FOLDER / way).iterdir()} - {"kustomization.yaml"}
        assert names == set(load(FOLDER / way / "kustomization.yaml")["resources"])


@pytest.mark.slow
@needs_kubernetes_validate
@pytest.mark.parametrize("of_kubernetes", VERSIONS)
@pytest.mark.parametrize("way", WAYS)
def test_kubernetes_own_kinds_fit_its_schemas(way, of_kubernetes):
    import kubernetes_validate

    for document in resources(way):
        if document["apiVersion"] not in SCHEMAS:
            kubernetes_validate.validate(document, of_kubernetes, strict=True)
    for _, template in templates(JOBS[way]).values():
        pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pod"}, "template": template}
        kubernetes_validate.validate(pod, of_kubernetes, strict=True)


@pytest.mark.parametrize("way", [way for way, job in JOBS.items() if job["apiVersion"] in SCHEMAS])
def test_the_kinds_of_operators_have_the_fields_that_are_documented(way):
    import jsonschema

    schema = json.loads((ROOT / "tests/fixtures/kubernetes" / SCHEMAS[JOBS[way]["apiVersion"]]).read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(JOBS[way])] == []
    wrong = json.loads(json.dumps(JOBS[way]))
    wrong["spec"]["minimumAvailable"] = 2
    assert not jsonschema.Draft7Validator(schema).is_valid(wrong)


@pytest.mark.slow
@needs("kubectl")
@pytest.mark.parametrize("way", WAYS)
def test_kustomize_builds_every_way(way):
    built = subprocess.run(["kubectl", "kustomize", str(FOLDER / way)], capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    found = list(yaml.safe_load_all(built.stdout))
    assert {each["kind"] for each in found} == {each["kind"] for each in resources(way)}
    assert re.search(rf"image: \S+/mindspore-launch:{re.escape(version.number())}\n", built.stdout)


@needs("hadolint")
def test_the_dockerfile_is_good():
    said = subprocess.run(["hadolint", str(DOCKERFILE)], capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, said.stdout


def test_the_image_is_one_installation_of_this_version():
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert re.findall(r"(?m)^ARG VERSION=(.*)$", text) == [version.number()]
    assert set(re.findall(r"mindspore-launch:([\d.]+)", text)) == {version.number()}
    assert text.count("pip install") == 1 and not re.search(r"(?m)^(COPY|ADD) ", text)
    assert re.findall(r"(?m)^ENTRYPOINT (.*)$", text) == ['["mslaunch"]']
    for page in ("docs/kubernetes.md", "docs/zh/kubernetes.md"):
        assert f"mindspore-launch:{version.number()} dist\n" in documents.read(page)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "role"), PODS)
def test_a_pod_has_time_memory_and_devices(way, role):
    replicas, template = templates(JOBS[way])[role]
    spec, only = template["spec"], container(way, role)
    assert spec["terminationGracePeriodSeconds"] >= 25 + 5  # the default of --grace, and the report
    assert only["name"] == "ascend"
    shown = subprocess.run(
        ["bash", str(ROOT / "scripts/run_pod.sh"), "--help"], capture_output=True, text=True, timeout=300
    )
    assert only["args"][0] == "run_pod" and "command" not in only  # the entry point of the image is mslaunch
    options = [word for word in only["args"] if word.startswith("--")]
    assert all(f"\n  {option} " in shown.stdout for option in options)
    config = only["args"][-1]
    assert (ROOT / config).is_file()
    if role == "Scheduler":
        assert NPUS not in json.dumps(only)
        return
    assert replicas == 2 and only["resources"]["limits"] == only["resources"]["requests"] == {NPUS: 8}
    mounts = {mount["mountPath"]: mount["name"] for mount in only["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert set(mounts.values()) == set(volumes)
    assert volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory"


@pytest.mark.parametrize(("way", "role"), [pod for pod in PODS if pod[1] != "Scheduler"])
def test_a_pod_is_asked_whether_its_job_moves(way, role):
    only = container(way, role)
    ports_of = {each["name"]: each["containerPort"] for each in only["ports"]}
    place = only["args"][only["args"].index("--metrics") + 1]
    assert monitored.address(place) == ("", ports_of["metrics"])
    for probe in ("startupProbe", "livenessProbe"):
        assert only[probe]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    starts = only["startupProbe"]
    assert starts["periodSeconds"] * starts["failureThreshold"] > pod_table.WAIT  # in which nobody answers


def test_exit_codes_decide_between_a_restart_and_the_end():
    rules = JOBS["indexed_job"]["spec"]["podFailurePolicy"]["rules"]
    codes = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules if "onExitCodes" in rule}
    assert codes == {"FailJob": [2, 78], "Ignore": [MOVED]}
    policies = JOBS["volcano"]["spec"]["policies"]
    assert {rule["exitCode"] for rule in policies if rule["action"] == "AbortJob"} == {2, 78}
    position = {rule.get("event", rule.get("exitCode")): place for place, rule in enumerate(policies)}
    assert max(position[2], position[78]) < position["PodFailed"]  # the first that fits


def kubelets_environment(way, role, index):
    """What the container of pod `index` finds: the manifest's values, and those of operator, plugin or Job."""
    fields = {
        "status.podIP": "127.0.0.1",
        "metadata.labels['batch.kubernetes.io/controller-uid']": "u",
        f"metadata.annotations['{NPUS}']": ",".join(f"Ascend910-{device}" for device in range(8)),
    }
    found = {
        each["name"]: each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container(way, role)["env"]
    }
    if way == "ascendjob":
        host = "127.0.0.1" if role == "Scheduler" else "localhost"
        found.update(
            MS_SCHED_HOST=host, MS_SCHED_PORT="2222", MS_SERVER_NUM="0", MS_WORKER_NUM="16", MS_LOCAL_WORKER="8"
        )
        found.update(
            MS_NODE_RANK=str(index), MS_ROLE={"Scheduler": "MS_SCHED", "Worker": "MS_WORKER"}[role], NPU_POD="false"
        )
    elif way == "volcano":
        name = JOBS[way]["metadata"]["name"]
        found.update(VK_TASK_INDEX=str(index), VC_TASK_INDEX=str(index), VC_WORKER_NUM="2")
        found.update(VC_WORKER_HOSTS=",".join(f"{name}-worker-{number}.{name}" for number in range(2)))
    else:
        found.update(JOB_COMPLETION_INDEX=str(index))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "role"), PODS)
def test_run_pod_plans_what_the_manifest_is_for(way, role, tmp_path):
    environment = {**os.environ, **kubelets_environment(way, role, 0)}
    environment["PATH"] = f"{ROOT / 'tests/fixtures/bin'}:{environment['PATH']}"  # eight NPUs
    environment["PYTHONPATH"] = str(ROOT / "tests/fixtures/stub_mindspore")
    environment["MS_SCHED_PORT"] = str(ports.near(os.getpid()))  # other tests may have the default one
    environment.pop("DATA_PATH", None)
    if "RANK_TABLE_FILE" in environment:
        servers = [
            {
                "server_id": f"192.168.0.{node + 1}",
                "container_ip": f"127.0.0.{node + 1}",
                "device": [
                    {"device_id": str(n), "device_ip": f"10.{node}.0.{n + 1}", "rank_id": str(8 * node + n)}
                    for n in range(8)
                ],
            }
            for node in range(2)
        ]
        table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
        (tmp_path / "hccl.json").write_text(json.dumps(table))
        environment["RANK_TABLE_FILE"] = str(tmp_path / "hccl.json")
    (tmp_path / "config.yaml").write_text("system:\n  distribute: True\n")
    preset, *options = container(way, role)["args"][:-1]
    trainer = str(ROOT / "tests/fixtures/stub_trainer.py")
    mslaunch = [sys.executable, str(ROOT / "mindspore_launch" / "__main__.py")]
    command = [*mslaunch, preset, "--dry_run", "--train_script", trainer, *options, "config.yaml"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    ranks = re.findall(r"(?m)^# rank (\d+) on device (\d+)$", ended.stdout)
    assert ranks == ([] if role == "Scheduler" else [(str(n), str(n)) for n in range(8)]), ended.stdout
    assert "MS_WORKER_NUM=16" in ended.stdout
    has_scheduler = "mindspore_scheduler.py" in ended.stdout
    assert has_scheduler == (role == "Scheduler" or way != "ascendjob")
