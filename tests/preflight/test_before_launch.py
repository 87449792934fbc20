"""--preflight: what a launch does with the result, and what it keeps of it for the next one."""

import json
import sys
from types import SimpleNamespace

import json_pages
import jsonschema
import pytest
from healthy_hosts import HEALTHY

from hccl_tools.common import project
from hccl_tools.common.refusal import Refusal
from hccl_tools.hosts import ask
from hccl_tools.hosts.ask import Answer
from tools.diagnosis.bundle.masking import Masker
from tools.features.last_good_hosts import LastGoodHosts
from tools.launch.engines.facts import Cluster, LocalFacts, MpirunFacts, OpenMpi
from tools.launch.engines.hccl_ports import HcclPorts
from tools.launch.planned import Checked
from tools.preflight import before_launch
from tools.run_page import sections
from tools.run_page.markup import Writer

MADE = "2026-11-20T10:00:00Z"


class Hosts:
    """Hosts that answer in this process."""

    def __init__(self):
        self.facts, self.questions, self.agent = {}, {}, None

    def ask(self, asker, words, question, seconds):
        self.agent = list(asker.agent)
        self.questions = {name: question(name) for name in asker.logins}
        content = {name: {**HEALTHY, **self.facts.get(name, {})} for name in asker.logins}
        sent = json.loads(json.dumps(content))
        return [Answer(host=name, content={"facts": sent[name], "failed": {}}, lines=[]) for name in sent], []


@pytest.fixture
def hosts(monkeypatch, world):
    found = Hosts()
    monkeypatch.setattr(ask, "ask", found.ask)
    return found


def plan(world, *names, engine="mpirun", facts=None, hccl=None, **request):
    asked = {
        "script": "run_mpirun_1.sh",
        "engine": engine,
        "placement": None,
        "device_target": "Ascend",
        "ssh": None,
        "log_dir": None,
        "data_path": None,
        "hccn_conf": None,
        "config": None,
        "train_script": "train.py",
        "node_rank": None,
        **request,
    }
    return SimpleNamespace(
        request=SimpleNamespace(**asked),
        run_dir=str(world / "logs" / "run"),
        hosts=list(names),
        spares=[],
        engine=facts or MpirunFacts(mpi=OpenMpi(version="4.1.4"), ranks=len(names)),
        cluster=Cluster(scheduler_port=8118),
        hccl=hccl,
        ranks=[(0, 0), (1, 1)],
        sizes=[1] * max(1, len(names)),
        agreement=None,
        trainer=[sys.executable, "-u", "train.py"],
    )


def test_hosts_of_a_launch_are_asked_the_quick_questions_once_each(hosts, world):
    (world / "train.py").write_text("import numpy\n")
    found = before_launch.look(plan(world, "a@n1", "a@n1", "n2", ssh="ssh -p 7"))
    assert list(found.remarks) == ["2 hosts agree; nothing blocks"]
    first = hosts.questions["n1"]
    assert (first["quick"], first["slots"], first["ports"], first["links"]) == (True, 2, [8118], None)
    assert list(first["files"]) == [str(world / "train.py")] and hosts.agent == ["ssh", "-p", "7"]
    assert (found.told["verdict"], sorted(found.told["digests"]), found.changed) == ("good", ["n1", "n2"], "")


@pytest.mark.parametrize(("version", "agent"), [("4.1.4", "ssh4"), ("5.0.1", "ssh5")])
def test_hosts_are_reached_as_this_open_mpi_reaches_them(hosts, world, monkeypatch, version, agent):
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "ssh4")
    monkeypatch.setenv("PRTE_MCA_plm_ssh_agent", "ssh5")
    before_launch.look(plan(world, "n1", "n2", facts=MpirunFacts(mpi=OpenMpi(version=version), ranks=2)))
    assert hosts.agent[0] == agent


def test_hosts_are_asked_about_the_ports_that_the_job_has(hosts, world):
    (world / "train.py").write_text("")
    before_launch.look(plan(world, "n1", "n2", hccl=HcclPorts(ranges=[(61024, 61055)], origin="chosen")))
    assert {question["hccl"] for question in hosts.questions.values()} == {61024}
    before_launch.look(plan(world, "n1", "n2", hccl=HcclPorts(ranges=[], origin="user")))
    assert {question["hccl"] for question in hosts.questions.values()} == {60000}


def test_ranks_on_processors_need_no_devices(hosts, world):
    before_launch.look(plan(world, "n1", "n2", device_target="CPU"))
    assert hosts.questions["n1"]["slots"] is None


def test_what_would_stop_the_job_refuses_the_launch_with_its_lines(hosts, world):
    hosts.facts["n2"] = {"cann": "8.1.RC1", "kernel": "6.6"}
    with pytest.raises(Refusal) as refused:
        before_launch.look(plan(world, "n1", "n2", "n3"))
    assert refused.value.status == 78
    assert refused.value.lines[:2] == ("This stops the job:", "  n2: CANN 8.1.RC1; the other 2 hosts: 8.2.RC1")
    assert "  n2: kernel 6.6; the other 2 hosts: 5.10.0-60" in refused.value.lines
    assert refused.value.lines[-1] == "--preflight: nothing was started"


def test_what_does_not_stop_it_is_told_and_kept_in_the_form_of_the_schema(hosts, world):
    hosts.facts["n2"] = {"kernel": "6.6"}
    found = before_launch.look(plan(world, "n1", "n2", "n3"))
    assert "  n2: kernel 6.6; the other 2 hosts: 5.10.0-60" in found.remarks
    with open(project.path("schemas", "launch.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    (world / "logs").mkdir()
    with open(found.path, "w", encoding="utf-8") as file:
        file.write(found.kept)
    hosts.facts["n1"] = {"mtu": 1400}
    again = before_launch.look(plan(world, "n1", "n2", "n3"))
    for told in (found.told, again.told):
        jsonschema.validate(told, {"$defs": schema["$defs"], "$ref": "#/$defs/preflight"})
    assert again.told["changed"]["facts"] == [f"n1: MTU 1400 instead of {HEALTHY['mtu']}"]
    assert f"({found.told['made']}): n1: MTU 1400 instead of " in again.changed
    json_pages.check("preflight in launch.json", found.told, again.told)


@pytest.mark.parametrize(
    ("names", "words", "said"),
    [
        (["n1"], {}, "with one host there is nothing to compare"),
        ([], {"engine": "local", "facts": LocalFacts()}, "with one host there is nothing to compare"),
        ([], {"engine": "msrun", "node_rank": 1}, "checks no other host"),
        ([], {"engine": "local", "placement": "server"}, "checks no other host"),
        ([], {"engine": "local", "placement": "pod"}, "with one host there is nothing to compare"),
    ],
)
def test_a_launcher_of_one_host_asks_nobody_and_says_so(hosts, world, names, words, said):
    found = before_launch.look(plan(world, *names, **words))
    assert (found.told, found.kept, hosts.questions) == (None, "", {}) and said in found.remarks[0]


# ---- what has changed ------------------------------------------------------------------------------------------------


def before(world, **facts):
    path = world / "preflight.json"
    path.write_text(before_launch.kept_text(MADE, {name: {**HEALTHY, **own} for name, own in facts.items()}))
    return before_launch.read_kept(str(path))


def changes(world, old, new):
    return before_launch.changes_since(
        before(world, n1=old, n2=old), {name: {**HEALTHY, **new} for name in ("n1", "n2", "n3")}
    )


def test_a_change_is_told_once_for_all_its_hosts_and_new_hosts_have_none(world):
    assert changes(world, {"cann": "8.1.RC1"}, {}) == ["n[1-2]: CANN 8.2.RC1 instead of 8.1.RC1"]


def test_what_always_changes_is_not_told(world):
    assert changes(world, {"memory_free": 5, "shm_free": 1 << 30, "temperature": 3}, {}) == []


def test_another_program_is_no_change_and_the_same_with_other_contents_is_one(world):
    one, other = {"file:/x/a.py": "12"}, {"file:/x/b.py": "34"}
    assert changes(world, one, other) == []
    assert changes(world, one, {"file:/x/a.py": "56"}) == ["n[1-2]: /x/a.py has sha256 56 instead of 12"]


def test_secrets_are_neither_kept_nor_compared(world):
    secret = {"variable:MS_ACCESS_TOKEN": "<12345678>", "variable:HCCL_LONG": "aaa... <12345678>"}
    text = before_launch.kept_text(MADE, {"n1": {**HEALTHY, **secret, "variable:HCCL_BUFFSIZE": "300"}})
    assert "TOKEN" not in text and "LONG" not in text and '"variable:HCCL_BUFFSIZE": "300"' in text
    assert before_launch.digest(secret) == before_launch.digest({})
    assert changes(world, {}, {"variable:HCCL_BUFFSIZE": "300"}) == ["n[1-2]: HCCL_BUFFSIZE=300 instead of none"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"made": "\\u001b[2J", "groups": []}',
        '{"made": "2026-11-20T10:00:00Z", "groups": {}}',
    ],
)
def test_a_file_that_is_none_of_ours_is_no_earlier_check(world, text):
    (world / "preflight.json").write_text(text)
    assert before_launch.read_kept(str(world / "preflight.json")) is None
    assert before_launch.read_kept(str(world / "nothing")) is None


def test_entries_of_another_form_are_left_out_and_texts_made_harmless(world):
    groups = [1, {"hosts": 3, "facts": {}}, {"hosts": ["n1", 2], "facts": {"cann": "\x1b[2J", "x": 1}}]
    (world / "preflight.json").write_text(json.dumps({"made": MADE, "groups": groups}))
    found = before_launch.read_kept(str(world / "preflight.json"))
    assert found.facts == {"n1": {"cann": "\\x1b[2J"}}


# ---- the end of the job, and its page --------------------------------------------------------------------------------


def ended(world, status, **checked):
    said = []
    run = SimpleNamespace(
        plan=SimpleNamespace(preflight=Checked(path=str(world / "preflight.json"), **checked)),
        say=said.append,
        note=said.append,
        supervisor=SimpleNamespace(judge=SimpleNamespace(first=status or None)),
    )
    feature = LastGoodHosts(run)
    run.plan = SimpleNamespace(preflight=None)  # that of a restart
    feature.settle(status)
    feature.reported("")
    return said


def test_only_a_job_that_ends_well_is_the_one_to_compare_with(world):
    assert ended(world, 1, kept="bad", changed="it was so") == ["it was so"]
    assert not (world / "preflight.json").exists()
    assert ended(world, 0, kept="good", changed="it was so") == []
    assert (world / "preflight.json").read_text() == "good"


def test_a_folder_of_logs_that_is_gone_is_a_note(world):
    assert ended(world / "gone", 0, kept="x") == ["gone/preflight.json cannot be written: No such file or directory"]


def page(**told):
    return sections.before_start(SimpleNamespace(launch={"preflight": told}), Writer(Masker({})))


def test_the_page_has_a_section_only_where_something_was_found():
    assert page(findings=[], verdict="good") == "" and page(findings=7, changed=[]) == ""
    found = page(findings=[{"text": "n2: <MTU>", "remedy": "do it"}, 3], changed={"since": MADE, "facts": ["a: b", 4]})
    assert "<li>n2: &lt;MTU&gt;; do it</li>" in found and f"({MADE}):" in found and "<li>a: b</li>" in found
    assert sections.before_start(SimpleNamespace(launch={"preflight": []}), Writer(Masker({}))) == ""


@pytest.mark.parametrize("text", ["{}", '{"made": "now", "verdict": "good"}', "mine"])
def test_a_file_of_that_name_that_is_not_ours_stays(world, hosts, text):
    logs = world / "logs"
    logs.mkdir()
    (logs / "preflight.json").write_text(text)
    found = before_launch.look(plan(world, "n1", "n2"))
    assert found.kept == "" and "preflight.json is a different file" in found.remarks[-1]
    (logs / "preflight.json").unlink()
    assert before_launch.look(plan(world, "n1", "n2")).kept
