"""The check of pods: where they meet, what they let in, and what each is told.  The lab has it whole."""

import base64
import json
import resource
import socket
import threading
import zlib

import pytest
from healthy_hosts import HEALTHY

from hccl_tools.common.refusal import Refusal
from tools.attempts.wire import Lost
from tools.launch.engines.facts import Cluster
from tools.preflight import before_launch, check, main, probe, words
from tools.preflight.difference import BLOCKS, SLOWS, Difference, Group
from tools.preflight.pods import asked, hub, meeting, messages, place, pod_names, result, spoke
from tools.preflight.pods.place import Place
from tools.preflight.program_files import Program
from tools.preflight.reach import Way
from tools.preflight.words import Found

_VARIABLES = (
    *("MS_ROLE", "MS_WORKER_NUM", "MS_LOCAL_WORKER", "MS_NODE_RANK", "MS_SCHED_HOST", "MS_SCHED_PORT", "NPU_POD"),
    *("JOB_COMPLETION_INDEX", "VK_TASK_INDEX", "VC_TASK_INDEX", "VC_WORKER_HOSTS", "MA_NUM_HOSTS", "MA_NUM_GPUS"),
    *("RANK_TABLE_FILE", "RANK_TABLE_FILE_V_1_0", "ASCEND_VISIBLE_DEVICES", "POD_IP", "XDL_IP", "HOST_IP"),
    *("MS_TOPO_TIMEOUT", "MINDX_TASK_ID", "JOB_UID", "SLURM_JOB_ID", "MA_CURRENT_IP", "KUBERNETES_SERVICE_HOST"),
)


@pytest.fixture
def pod(world, monkeypatch):
    """pod(NAME=VALUE...): this process is in a pod with these variables and no others."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def make(**variables):
        for name, value in {"KUBERNETES_SERVICE_HOST": "10.0.0.1", **variables}.items():
            monkeypatch.setenv(name, value)

    return make


def here(table=None, wait=None):
    return place.of_environment(table, wait, lambda _: None)


INDEXED = {"MS_WORKER_NUM": "6", "MS_LOCAL_WORKER": "2", "MS_SCHED_HOST": "job-0.job", "POD_IP": "127.0.0.1"}


# ---- where they meet -------------------------------------------------------------------------------------------------


def test_an_indexed_job_meets_at_pod_0_beside_the_schedulers_port(pod):
    pod(**INDEXED, JOB_COMPLETION_INDEX="1", MS_SCHED_PORT="9000")
    found = here()
    assert (found.pods, found.number, found.is_hub, found.host, found.port) == (3, 1, False, "job-0.job", 9001)
    assert (found.scheduler, found.slots, found.address, found.wait) == (9000, 2, "127.0.0.1", place.WAIT)
    pod(JOB_COMPLETION_INDEX="0", MS_TOPO_TIMEOUT="77")
    assert (here().is_hub, here().wait, here(wait=5).wait, here().job) == (True, 77, 5, found.job)
    pod(JOB_UID="other")
    assert here().job != found.job


def test_volcano_names_the_pods(pod):
    pod(VC_WORKER_HOSTS="j-worker-0.j,j-worker-1.j", VC_TASK_INDEX="1", MS_LOCAL_WORKER="1")
    assert (here().pods, here().host, list(here().names)) == (2, "j-worker-0.j", ["j-worker-0.j", "j-worker-1.j"])


def test_an_operators_scheduler_listens_at_its_own_port_and_has_no_ranks(pod):
    pod(MS_ROLE="MS_SCHED", MS_SCHED_HOST="127.0.0.1", MS_WORKER_NUM="4")
    found = here()
    assert (found.is_hub, found.number, found.pods, found.port, found.scheduler) == (True, None, None, 8118, None)
    pod(MS_ROLE="MS_WORKER", MS_LOCAL_WORKER="2", MS_NODE_RANK="1")
    assert (here().is_hub, here().number, here().pods, here().job) == (False, 1, 2, found.job)
    pod(MS_ROLE="MS_SCHED", NPU_POD="true", MS_NODE_RANK="0")
    assert (here().is_hub, here().number, here().slots) == (True, 0, 2)


def test_a_rank_table_says_who_the_pods_are_and_one_that_does_not_come_is_refused(pod, table, world):
    path = world / "hccl.json"
    content = table(2, 2)
    for number, server in enumerate(content["server_list"], 1):
        server["container_ip"] = f"127.0.0.{number}"
    path.write_text(json.dumps({**content, "status": "completed"}))
    pod(RANK_TABLE_FILE=str(path), POD_IP="127.0.0.2")
    found = here()
    assert (found.pods, found.number, found.host, found.is_hub) == (2, 1, "127.0.0.1", False)
    assert found.table[0] == str(path) and list(found.server.devices) == ["0", "1"]
    with pytest.raises(Refusal) as refused:
        here(table=str(world / "none.json"), wait=0)
    assert refused.value.status == 78 and "there is no rank table" in refused.value.lines[0]


def test_a_pod_that_cannot_know_its_job_says_what_is_missing(pod, in_process):
    pod(VC_TASK_INDEX="1")
    status, out, error = in_process(main.main)
    assert (status, out) == (2, "") and "set MS_LOCAL_WORKER" in error
    pod(MS_LOCAL_WORKER="1", MS_WORKER_NUM="2")
    assert "set MS_SCHED_HOST" in in_process(main.main)[2]


def test_a_trial_and_a_wait_that_is_none_are_refused_in_pods(pod, in_process):
    pod(**INDEXED, JOB_COMPLETION_INDEX="1")
    assert in_process(main.main, "--trial")[0] == 2
    status, _, error = in_process(main.main, "--pod_wait", "1s")
    assert status == 2 and "--pod_wait 1s is not a number" in error


def test_a_pod_alone_is_looked_at_as_a_host(pod, in_process, monkeypatch):
    monkeypatch.setattr(check, "run", lambda way, job: Found(hosts=way.hosts, differences=[]))
    pod(MS_WORKER_NUM="2", MS_LOCAL_WORKER="2", JOB_COMPLETION_INDEX="0")
    assert in_process(main.main) == (0, f"{socket.gethostname()}: nothing blocks\n", "")


# ---- what a pod lets itself be asked ---------------------------------------------------------------------------------


@pytest.fixture
def mine(world):
    files = {str(world / "train.py"): "0123"}
    job = check.Job(program=Program(files, []), ports=[9000], data="d")
    return asked.own(
        job, Place(kind="check", pods=2, number=1, is_hub=False, host="h", port=1, job="j", wait=1, slots=2)
    )


def told(world, **changes):
    links = {
        "host": "pod-1",
        "nonce": "ab",
        "seconds": 5.0,
        "quiet": 3.0,
        "address": "fd00::1",
        "listens": [60000],
        "expects": [["pod-0", 60000]],
        "connects": [["pod-0", "10.0.0.1", 60000, "full"]],
    }
    whole = {"host": "pod-1", "hosts": 2, "first": "10.0.0.1", "first_at": "10.0.0.1", "salt": "ab", "links": links}
    return {**whole, "files": {str(world / "own.py"): "45"}, **changes}


def test_the_hub_adds_to_the_question_what_all_pods_have_alike_and_nothing_else(mine, world):
    found = asked.whole(mine, told(world, log_dir="/etc", data="/etc/shadow", set_here=[]))
    assert (found.host, found.hosts, found.salt, found.links["address"]) == ("pod-1", 2, "ab", "fd00::1")
    assert (found.log_dir, found.data, found.slots) == (str(world / "logs"), str(world / "d"), 2)
    assert found.files == {str(world / "own.py"): "45"} and "MS_NODE_RANK" in found.set_here


def test_the_hub_cannot_have_files_read_that_are_not_of_the_program(mine, world):
    paths = ["/etc/shadow", f"{world}/../secret", f"{world}/a/../../b", "/proc/1/environ", str(world) + "x/y"]
    assert asked.whole(mine, told(world, files=dict.fromkeys(paths, "00"))).files == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "-oProxyCommand=x"},
        {"host": 7},
        {"hosts": 0},
        {"hosts": "2"},
        {"first_at": "name"},
        {"salt": "\x1b[2J"},
        {"files": []},
        {"files": {"/a": "\n"}, "host": ""},
        {"links": []},
        {"links": {"host": "a"}},
    ],
)
def test_a_question_of_another_form_ends_the_talk(mine, world, changes):
    with pytest.raises(Lost):
        asked.whole(mine, told(world, **changes))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listens", [0]),
        ("listens", list(range(1, 200))),
        ("expects", [["a"]]),
        ("connects", [["a", "name", 1, "full"]]),
        ("connects", [["a", "10.0.0.1", 1, "rm"]]),
        ("connects", [["a", "10.0.0.1", True, "full"]]),
        ("seconds", 1e9),
        ("seconds", True),
        ("nonce", "x"),
    ],
)
def test_links_of_another_form_end_the_talk(mine, world, name, value):
    links = {**told(world)["links"], name: value}
    with pytest.raises(Lost):
        asked.whole(mine, told(world, links=links))


def test_a_question_without_a_part_ends_the_talk(mine, world):
    for name in told(world):
        with pytest.raises(Lost):
            asked.whole(mine, {key: value for key, value in told(world).items() if key != name})
    for none in (None, 3, [], "x"):
        with pytest.raises(Lost):
            asked.whole(mine, none)


# ---- documents -------------------------------------------------------------------------------------------------------


def test_a_document_arrives_as_it_was_sent():
    assert messages.unpacked(messages.packed({"a": ["é", 1]})) == {"a": ["é", 1]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%",
        "AAAA",
        base64.b64encode(zlib.compress(b"no JSON")).decode(),
        base64.b64encode(zlib.compress(b'"' + b" " * (1 << 24) + b'"')).decode(),  # a few KB that become many
        base64.b64encode(zlib.compress(b"[" * 100_000)).decode(),
        base64.b64encode(zlib.compress(b"1")[:-2]).decode(),
    ],
    ids=["empty", "no base64", "no zlib", "no JSON", "grows", "deep", "half"],
)
def test_what_is_no_document_is_refused(text):
    with pytest.raises(Lost):
        messages.unpacked(text)


# ---- the meeting -----------------------------------------------------------------------------------------------------

ALIKE = [("the version", "aa", "1.0")]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()[1]


class Meeting:
    """A hub without ranks, in a thread, and pods in others; `facts` are those of each by its number."""

    def __init__(self, pods, wait=60):
        self.port, self.said, self.ended = free_port(), [], {}
        self.pods, self.wait, self.threads = pods, wait, []
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.hub = hub.Hub(self.of(None, True), ALIKE, self.said.append)
        self.hub.open()
        self.hub.open = lambda: None  # so that nobody has to wait until it listens

    def of(self, number, is_hub=False, **more):
        return Place(
            **{
                **{"kind": "check", "pods": None if is_hub else self.pods, "number": number, "is_hub": is_hub},
                **{"host": "127.0.0.1", "port": self.port, "job": "j", "wait": self.wait, "address": "127.0.0.1"},
                **more,
            }
        )

    def comes(self, number, alike=ALIKE, **more):
        there = self.of(number, **more)

        def take_part():
            try:
                mine = asked.own(check.Job(quick=True), there)
                self.ended[number] = result.read(spoke.take_part(there, alike, mine, self.said.append))
            except Refusal as refusal:
                self.ended[number] = refusal.lines[0]

        self.threads.append(threading.Thread(target=take_part, daemon=True))
        self.threads[-1].start()

    def checks(self):
        self.hub.meet()
        way = Way(hosts=self.hub.names(), slots={}, ask=self.hub.ask, addresses={})
        found = check.run(way, check.Job(quick=True))
        self.hub.tell(lambda name: result.of_pod(found, name, "hub"))
        self.hub.close()
        for thread in self.threads:
            thread.join(60)
        return found


@pytest.fixture
def facts(monkeypatch, world):
    """{number: facts} of pods; each has those of a healthy host besides."""
    found = {}
    monkeypatch.setattr(pod_names, "own", lambda: "")

    def of(question):
        return {"facts": {**HEALTHY, **found.get(question.host, {})}, "failed": {}, "links": None}

    monkeypatch.setattr(probe, "facts", of)
    return found


def greeting(meeting_, *words_):
    plug = socket.create_connection(("127.0.0.1", meeting_.port), 60)
    plug.sendall(b"".join(words_))
    return plug


@pytest.fixture
def few_files():
    """A soft limit that the meeting raises."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 4096), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_pods_meet_and_each_hears_its_part(facts, few_files):
    facts["pod-1"] = {"mtu": 9000}
    there = Meeting(3)
    for number in range(3):
        there.comes(number)
    found = there.checks()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == there.limits
    assert [each.key for each in found.differences] == ["mtu"] and not found.lines
    assert there.ended[1].line.startswith("pod-1: MTU 9000; the other 2 hosts: ")
    assert there.ended[0].line.startswith("pod-0: nothing was found on it; the log of hub has all: 3 hosts, ")
    assert {each.verdict for each in there.ended.values()} == {"differs"}
    assert there.ended[2].findings[0]["level"] == "slows"


def test_strangers_are_let_in_nowhere_and_delay_nobody(facts):
    there = Meeting(1)
    hello = json.dumps(["hello", "another", 0, "", "", "1", "00", "aa", "1.0"]).encode() + b"\n"
    launcher = json.dumps(["hello", "digest", 1, "c0ffee", "2"]).encode() + b"\n"
    plugs = [
        greeting(there, *said) for said in ([hello], [launcher], [b"\x00\xff\n"], [b"x" * 20_000], [], [b'["hello"]\n'])
    ]
    there.comes(0)
    assert not there.checks().lines
    answers = [json.loads(plug.makefile("rb").readline() or b"[]") for plug in plugs[:2]]
    assert [answer[0] for answer in answers] == ["refused", "refused"]
    assert there.hub.strangers == 2 and there.ended[0].verdict == "good"
    for plug in plugs:
        plug.close()


def test_a_pod_of_another_version_is_named_at_once_and_the_others_are_compared(facts):
    there = Meeting(2)
    there.comes(1, alike=[("the version", "bb", "2.0")])
    there.comes(0)
    found = there.checks()
    assert there.ended[1].startswith("the version: ") and "pod-1 has 2.0" in there.ended[1]
    assert list(found.silent) == ["pod-1"] and not there.hub.is_late() and "pod-1 has 2.0" in found.lines[0]
    assert there.ended[0].verdict == "blocks"


@pytest.mark.parametrize(
    ("number", "more", "said"),
    [
        (0, {}, "another pod has number 0"),
        (5, {}, "no host number 5"),
        (1, {"pods": 9}, "the job has 9 pods"),
        (1, {"pods": 1 << 20}, "the job has"),
    ],
)
def test_a_pod_that_does_not_fit_is_told_why(facts, number, more, said):
    there = Meeting(2, wait=0)
    there.hub.come[0] = hub.Pod(messages.connection(socket.socket()), "", "")
    there.hub.pods = 2
    there.comes(number, **more)
    while there.threads[0].is_alive():
        there.hub._step(0.01)
    assert said in there.ended[number]
    there.hub.close()


def test_pods_that_do_not_come_are_one_line_with_the_limit(facts):
    there = Meeting(3)
    there.comes(1)
    while 1 not in there.hub.come:
        there.hub._step(60)
    there.hub.place = there.hub.place.replace(wait=0)
    found = there.checks()
    assert list(found.lines) == ["pod-[0,2]: no answer; it has not come within 0 s; see: kubectl get pods -o wide"]
    assert list(found.silent) == ["pod-0", "pod-2"] and there.hub.is_late() and there.ended[1].verdict == "blocks"


def test_a_pod_whose_answer_is_none_stops_the_job(facts, monkeypatch):
    monkeypatch.setattr(probe, "facts", lambda question: ["x"])
    there = Meeting(1)
    there.comes(0)
    assert "its answer cannot be read" in there.checks().lines[0]


def test_a_listener_that_does_not_know_the_job_asks_nothing(facts):
    with socket.create_server(("127.0.0.1", 0)) as door:
        there = Place(
            kind="check",
            pods=2,
            number=1,
            is_hub=False,
            host="127.0.0.1",
            port=door.getsockname()[1],
            job="j",
            wait=5,
        )

        def listens():
            plug, _ = door.accept()
            with plug, plug.makefile("rb") as lines:
                lines.readline()
                plug.sendall(b'["welcome", "00", 5]\n["asked", "x"]\n')
                lines.readline()

        listener = threading.Thread(target=listens, daemon=True)
        listener.start()
        with pytest.raises(Refusal) as refused:
            spoke.take_part(there, ALIKE, asked.own(check.Job(), there), lambda _: None)
        listener.join(60)
        assert refused.value.status == 78 and "does not know this job" in refused.value.lines[0]


def test_a_port_that_somebody_has_is_said_with_who_has_it(facts):
    with socket.create_server(("127.0.0.1", 0)) as door:
        there = Place(
            kind="check",
            pods=2,
            number=0,
            is_hub=True,
            host="h",
            port=door.getsockname()[1],
            job="j",
            wait=5,
            address="127.0.0.1",
        )
        with pytest.raises(Refusal) as refused:
            meeting.as_hub(there, check.Job(), [], lambda _: None, lambda _: None)
        assert f"cannot listen at 127.0.0.1 port {there.port}" in refused.value.lines[0]


# ---- the result ------------------------------------------------------------------------------------------------------


def test_what_the_hub_tells_is_harmless_and_of_the_right_form():
    good = {"verdict": "differs", "late": False, "hosts": 2, "line": "a\x1b[2J" + "b" * 9000, "findings": []}
    read = result.read(good)
    assert read.line.isprintable() and len(read.line) <= 4000
    finding = {"level": "blocks", "text": "x", "remedy": ""}
    for changes in (
        {"verdict": "well"},
        {"hosts": 0},
        {"hosts": True},
        {"line": 7},
        {"findings": [finding] * 41},
        {"findings": [{**finding, "level": "?"}]},
        {"findings": [{"level": "blocks"}]},
        {"findings": [7]},
        {"findings": None},
    ):
        with pytest.raises(Lost):
            result.read({**good, **changes})
    assert result.read({**good, "findings": [finding]}).findings == [finding]


def test_the_line_of_a_pod_has_its_own_part_of_each_difference():
    groups = [Group(hosts=["a", "b"], text="MTU 1", value="1"), Group(hosts=["c"], text="MTU 2", value="2")]
    others = Group(hosts=["d", "e", "f", "g"], text="MTU 3", value="3")
    found = Found(hosts=list("abcdefg"), differences=[Difference(key="mtu", level=SLOWS, groups=groups, others=others)])
    line = result.of_pod(found, "c", "a")["line"]
    assert line.startswith("c: MTU 2; the other 4 hosts: 3; the log of a has all: 7 hosts, 1 finding")
    many = Found(
        hosts=["a", "b"], differences=[Difference(key=f"k{n}", level=BLOCKS, groups=groups[:1]) for n in range(9)]
    )
    assert "and 5 more" in result.of_pod(many, "a", "b")["line"]
    assert len(result.of_pod(many, "a", "b")["findings"]) == 9 <= words.MOST_KEPT


@pytest.mark.parametrize(
    ("told_", "known", "names"),
    [
        ({0: "job-0", 1: "job-1"}, [], ["job-0", "job-1", "pod-2"]),
        ({0: "node", 1: "node"}, ["a", "b", "c"], ["a", "b", "c"]),
        ({0: "pod-1"}, [], ["pod-0", "pod-1", "pod-2"]),
        ({}, ["x"], ["x", "pod-1", "pod-2"]),
    ],
)
def test_pods_are_called_by_names_that_are_each_used_once(told_, known, names):
    assert pod_names.choose(3, told_, known) == names


@pytest.mark.parametrize("text", ["", "a b", "x" * 64, "u@h", "-o", "a\n", "::1"])
def test_what_is_no_host_name_names_no_pod(text):
    assert not pod_names.is_name(text)


# ---- before a launch -------------------------------------------------------------------------------------------------


def test_a_launch_is_refused_or_goes_on_by_what_the_first_pod_has_told(world, monkeypatch):
    heard = result.Result(verdict="differs", late=False, hosts=2, line="pod-1: MTU 1", findings=[])
    found = before_launch.of_pod(heard, 124)
    assert (found.told["verdict"], found.told["hosts"], found.told["digests"]) == ("differs", 2, {})
    assert (list(found.remarks), found.kept, found.changed) == (["pod-1: MTU 1"], "", "")
    with pytest.raises(Refusal) as refused:
        before_launch.of_pod(heard.replace(verdict="blocks"), 124)
    assert (refused.value.status, refused.value.lines[-1]) == (78, "--preflight: nothing was started")
    with pytest.raises(Refusal) as refused:
        before_launch.of_pod(heard.replace(verdict="blocks", late=True), 124)
    assert refused.value.status == 124


def test_a_launch_without_a_meeting_is_not_checked():
    plan = type("Plan", (), {"agreement": None, "cluster": Cluster()})()
    assert place.of_plan(plan) is None
