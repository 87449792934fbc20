"""Every format of a rank table to every other, compared, and with every command, as docs/rank_tables.md says."""

import json
import random
import re
from pathlib import Path

import good_tables
import pytest
from suite.cases import for_each

pytest.importorskip("hypothesis", reason="needs hypothesis")
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.build import merging, rank_lists, this_host
from hccl_tools.check import verdict
from hccl_tools.commands import convert, diff, show, validate
from hccl_tools.commands import merge as merge_hccl
from hccl_tools.common.problem import errors
from hccl_tools.common.refusal import Refusal
from hccl_tools.compare import changes, side
from hccl_tools.convert import filling, job, reading, writing
from hccl_tools.machine import host
from hccl_tools.table import rank_table
from tools.launch.hosts import table_servers
from tools.launch.pods import pod_table
from tools.launch.pods.pod_job import Fact, PodJob
from tools.launch.tables import table_fit

ROOT = Path(__file__).resolve().parents[2]

# ---- one job in every format: two hosts with two devices each -----------------------------------------------

NAMES = ("10.0.0.1", "10.0.0.2")


def version_1():
    return good_tables.servers(2, 2)


def super_pod():
    table = {**good_tables.servers(2, 2), "version": "1.2"}
    for number, server in enumerate(table["server_list"]):
        for device in server["device"]:
            device["super_device_id"] = str(number * 64 + int(device["device_id"]))
    pod = {"super_pod_id": "7", "server_list": [{"server_id": name} for name in NAMES]}
    return {**table, "super_pod_list": [pod]}


def nodes():
    found = [
        {
            "node_addr": server["server_id"],
            "ranks": [
                {"rank_id": each["rank_id"], "device_id": each["device_id"], "rank_ip": each["device_ip"]}
                for each in server["device"]
            ],
        }
        for server in version_1()["server_list"]
    ]
    return {"version": "1.1", "status": "completed", "collective_id": "job", "mode": "tcp", "node_list": found}


def ranks(sizes=(2, 2)):
    """Version 2.0, with the addresses of version 1.0 on net_layer 2."""
    tables = [good_tables.host_of_950(number, size) for number, size in enumerate(sizes)]
    for number, table in enumerate(tables):
        for rank in table["rank_list"]:
            rank["level_list"][1]["rank_addr_list"][0]["addr"] = f"192.168.{100 + number}.{rank['device_id'] + 1}"
    return merging.merge([merging.Named(name=str(number), table=table) for number, table in enumerate(tables)])


def group(instances, **counts):
    return {"group_count": "1", "group_list": [{"group_name": "job", **counts, "instance_list": instances}]}


def plain(device):
    return {key: device[key] for key in ("device_id", "device_ip")}


def lab():
    instances = [
        {"devices": [plain(device)], "rank_id": device["rank_id"], "server_id": server["server_id"]}
        for server in version_1()["server_list"]
        for device in server["device"]
    ]
    found = group(instances, device_num="4", server_num="2", instance_count="4")
    return {"status": "completed", "deploy_mode": "lab", **found, "para_plane_nic_location": "device"}


def cloud():
    instances = [
        {"pod_name": f"job-{n}", "server_id": server["server_id"], "devices": list(map(plain, server["device"]))}
        for n, server in enumerate(version_1()["server_list"])
    ]
    return {"status": "completed", **group(instances, device_count="4", instance_count="2")}


def hosts():
    return "".join(f"{name} slots=2\n" for name in NAMES)


JOB = {"1.0": version_1, "1.1": nodes, "1.2": super_pod, "2.0": ranks, "lab": lab, "cloud": cloud, "hosts": hosts}

# What a format needs, and what a file of a format lacks; a lab table has the name of its group, and so of its pods.
NEEDS = {"1.1": "collective_id", "cloud": "the pod_name", "2.0": "level_list"}
LACKS = {"2.0": "the servers of the ranks, which version 2.0 does not have", "hosts": "device_id"}


@pytest.fixture
def command(world, in_process):
    """command(main, "x", ...): a command in a folder that has the job in every format, x_1.0, x_1.1 and so on."""
    for name, make in JOB.items():
        document = make()
        (world / f"x_{name}").write_text(document if isinstance(document, str) else json.dumps(document))

    def start(main, *words):
        return in_process(main, *words)

    return start


def test_every_form_of_the_job_is_good():
    for make in JOB.values():
        document = make()
        assert isinstance(document, str) or errors(verdict.check(document)) == []


@for_each("target", JOB)
@for_each("source", JOB)
def test_every_format_to_every_other_or_what_is_missing_by_its_name(command, source, target):
    status, out, err = command(convert.main, f"x_{source}", "--to", target)
    lack = LACKS.get(source) or NEEDS.get(target)
    if source == target or not lack or (source, target) == ("lab", "cloud"):
        assert status == 0, err
    else:
        assert (status, out) == (1, "") and f"needs {lack}" in err, err
        assert "--" in err.splitlines()[0].partition("; ")[2]  # the option that gives it


@pytest.mark.slow
@for_each("target", JOB)
@for_each("source", JOB)
def test_with_facts_every_format_becomes_every_other_and_comes_back(command, world, source, target):
    status, out, err = command(convert.main, f"x_{source}", "--to", target, "--facts", f"x_{target}")
    assert status == 0, err
    (world / "there").write_text(out)
    assert command(diff.main, "there", f"x_{target}")[0] == 0  # it says all that the target can say
    status, out, err = command(convert.main, "there", "--to", source, "--facts", f"x_{source}")
    assert status == 0, err
    (world / "back").write_text(out)
    status, out, err = command(diff.main, "back", f"x_{source}")
    assert status == 0, out


@for_each("b", JOB)
@for_each("a", JOB)
def test_every_format_is_compared_with_every_other(command, a, b):
    """They are one job: nothing differs but the format, and what one of them has no place for is named."""
    status, out, err = command(diff.main, f"x_{a}", f"x_{b}", "--json", *(["--facts", "x_1.0"] if a != b else []))
    found = json.loads(out)
    kinds = [change["kind"] for change in found["changes"] if change.get("key") not in _OF_SOME]
    assert kinds == ([] if a == b else ["format"]), (out, err)
    assert status == (0 if a == b else 1)
    by = {("2.0", "2.0"): "networks", ("hosts", "hosts"): "hosts"}.get((a, b), "servers")
    assert found["compared_by"] == by


# Keys that a format has, and that this job's table of another format has not, though it could.
_OF_SOME = frozenset(["host_nic_ip", "group_name"])


def keys_of(found):
    """{part: keys} of a Job."""
    return {
        "head": set(found.head),
        "server": {key for each in found.servers for key in each},
        "device": {key for each in found.devices for key in each},
    }


@pytest.mark.slow
@for_each("target", JOB)
@for_each("source", JOB)
def test_nothing_is_lost_in_silence(command, world, source, target):
    status, out, err = command(convert.main, f"x_{source}", "--to", target, "--facts", f"x_{target}")
    assert status == 0, err
    before, after = (reading.read(data, "")[0] for data in ((world / f"x_{source}").read_bytes(), out.encode()))
    named = {word for line in err.splitlines() for word in re.findall(r"[a-z_]+", line)}
    for part, keys in keys_of(before).items():
        gone = keys - keys_of(after)[part] - named
        assert not gone or (part, gone) == ("server", {"server_id"}), (part, gone, err)


# ---- what the page says of each format and command ---------------------------------------------------------


def across_clusters():
    table = version_1()
    for server in table["server_list"]:
        server["server_ip"], server["pod_ip"] = server["server_id"], "127.0.0.1"
    clusters = [{"cluster_id": name, "server_list": [{"server_id": name}]} for name in NAMES]
    return {**table, "cluster_list": clusters}


ROWS = {**JOB, "1.0 across clusters": across_clusters, "list of hosts": hosts}
del ROWS["hosts"]


def rows(page):
    """{format: [the cells]} of the table of formats and commands."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    (start,) = (n for n, line in enumerate(lines) if line.count("|") == 13 and "`--hostfile`" in line)
    found = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[name] = cells
    return found


COMMANDS = ["validate", "show", "merge", "built", "from", "to", "diff", "here", "each", "hostfile", "pods"]
SERVER = [("10.0.0.1", 2), ("10.0.0.2", 2)]


@pytest.fixture
def works(command, world, monkeypatch):
    """works("show", name): whether the command takes the job in this format."""
    monkeypatch.setattr(host, "owns", lambda name: name == "10.0.0.1")
    for name, make in ROWS.items():
        document = make()
        (world / f"{name}.json").write_text(document if isinstance(document, str) else json.dumps(document))

    def takes(call):
        try:
            return bool(call())
        except Refusal:
            return False

    def in_pods(path):
        known = PodJob(
            world=None, local=Fact(source="x", value=2), pods=None, node=Fact(source="y", value=0), role="",
            has_ranks=True, scheduler=None, devices=None, addresses={"POD_IP": "10.0.0.1"}, names=[],
        )  # fmt: skip
        return len(pod_table.take(path, known, False, None).servers) == 2

    def try_one(what, name):
        path = f"{name}.json"
        target = {"list of hosts": "hosts"}.get(name, name)
        calls = {
            "validate": lambda: command(validate.main, path)[0] == 0,
            "show": lambda: command(show.main, path, "--json")[0] == 0,
            "merge": lambda: _merges(command, world, path),
            "built": lambda: name in output_versions(),
            "from": lambda: command(convert.main, path, "--to", "hosts", "--facts", "x_hosts")[0] == 0,
            "to": lambda: target in writing.TARGETS,
            "diff": lambda: command(diff.main, path, path)[0] == 0,
            "here": lambda: bool(table_fit.examine(_of_one_host(world, name), [0, 1], None, is_named=True).ranks),
            "each": lambda: table_servers.read_table(path, None, SERVER if name == "2.0" else None),
            "hostfile": lambda: table_servers.read_table(path, None, SERVER, "--hostfile"),
            "pods": lambda: in_pods(path),
        }
        return takes(calls[what])

    return try_one


def _merges(command, world, path):
    """Whether two tables of the format become one."""
    text = (world / path).read_text()
    other = text.replace("10.0.0.", "10.0.9.").replace("192.168.", "172.16.").replace("srv", "rack")
    other = re.sub(r'"0{28}(?=[0-9a-f]{4}")', '"1' + "0" * 27, other).replace(
        '"super_pod_id": "7"', '"super_pod_id": "8"'
    )
    (world / "other.json").write_text(other)
    return command(merge_hccl.main, path, "other.json", "--stdout")[0] == 0


def _of_one_host(world, name):
    """The path of a table of the format with the first host alone."""
    document = ROWS[name]()
    if isinstance(document, str):
        return f"{name}.json"
    if "rank_list" in document:
        document = rank_lists.only(document, [0, 1])
    elif "node_list" in document:
        document["node_list"] = document["node_list"][:1]
    elif "group_list" in document:
        (found,) = document["group_list"]
        found["instance_list"] = found["instance_list"][: 2 if "deploy_mode" in document else 1]
        numbers = {"device_num": "2", "server_num": "1", "device_count": "2"}
        found.update({key: value for key, value in numbers.items() if key in found})
        found["instance_count"] = str(len(found["instance_list"]))
    else:
        document.update(server_list=document["server_list"][:1], server_count="1")
        for key in ("super_pod_list", "cluster_list"):
            for entry in document.get(key, []):
                entry["server_list"] = [each for each in entry["server_list"] if each["server_id"] == NAMES[0]]
            if key in document:
                document[key] = [entry for entry in document[key] if entry["server_list"]]
    (world / "one.json").write_text(json.dumps(document))
    return "one.json"


def output_versions():
    """The versions of the tables that hccl_tools.py makes."""
    one = rank_table.build([(0, "192.168.0.1")], "10.0.0.1")
    pod = this_host.SuperPod(super_pod_id="7", super_device_ids={0: "1"})
    described = rank_lists.RootInfo("x", {0: {"device_id": 0, "local_id": 0, "level_list": []}})
    return {
        one["version"],
        this_host.with_super_pod(one, pod)["version"],
        rank_lists.of_950([0], described)[0]["version"],
    }


@for_each("name", ROWS)
@for_each("column", COMMANDS)
def test_the_page_says_what_each_command_does_with_each_format(works, name, column):
    said = rows("docs/rank_tables.md")[name][COMMANDS.index(column)]
    assert works(column, name) == (said != "no"), said


def test_both_pages_say_the_same():
    words = {"no": "否", "yes": "是", "if named": "须指定", "as 1.0": "作为 1.0"}
    english, chinese = rows("docs/rank_tables.md"), rows("docs/zh/rank_tables.md")
    assert [[words.get(cell, cell) for cell in cells] for cells in english.values()] == list(chinese.values())
    assert set(english) == set(ROWS)


# ---- any job ------------------------------------------------------------------------------------------------

FEW = settings(max_examples=25, deadline=None, database=None)


def of(document):
    data = document if isinstance(document, str) else json.dumps(document)
    return reading.read(data.encode(), "t")[0]


def written(found, target, *facts, layer=None):
    """The job in a format that a user types, with these facts."""
    form = writing.TARGETS[target]
    for each in facts:
        found = filling.filled(found, filling.Facts(name="f", job=of(each)), form)
    if layer is not None:
        found = filling.with_addresses(found, layer)
    return writing.write(job.only(found, form)[0], form, form)


@pytest.mark.slow
@FEW
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 99), st.sampled_from(["1.0", "1.2", "1.1"]))
def test_version_2_0_there_and_back_by_a_list_of_hosts_is_the_same_table(sizes, seed, target):
    table = ranks(sizes)
    random.Random(seed).shuffle(table["rank_list"])
    listed = "".join(f"10.0.0.{n + 1} slots={size}\n" for n, size in enumerate(sizes))
    there = written(of(table), target, listed, *([nodes()] if target == "1.1" else []), layer=2)
    assert errors(verdict.check(there)) == []
    addresses = [device.get("device_ip") for device in of(there).devices]
    expected = [f"192.168.{100 + host}.{n + 1}" for host, size in enumerate(sizes) for n in range(size)]
    assert addresses == expected
    back = written(of(there), "2.0", table)
    assert back["rank_list"] == sorted(table["rank_list"], key=lambda rank: rank["rank_id"])
    assert written(of(table), "hosts", listed) == listed
    sides = [side.of(json.dumps(each).encode(), "t") for each in (table, back)]
    assert changes.compare(*sides).changes == []


@pytest.mark.slow
@FEW
@given(st.lists(st.integers(1, 3), min_size=2, max_size=5), st.data())
def test_hosts_of_version_2_0_that_change_places_are_told_and_told_back(sizes, data):
    order = data.draw(st.permutations(range(len(sizes))))
    tables = [good_tables.host_of_950(host, size) for host, size in enumerate(sizes)]
    one, other = (
        side.of(json.dumps(merging.merge([merging.Named(name=str(n), table=tables[n]) for n in hosts])).encode(), "t")
        for hosts in (range(len(sizes)), order)
    )
    there, back = changes.compare(one, other), changes.compare(other, one)
    assert there.by == back.by == "networks"
    assert {each.kind for each in (*there.changes, *back.changes)} <= {"ranks-renumbered"}
    assert (there.changes == []) == (list(order) == sorted(order))
    renumbered = [{a: b for c in found.changes for a, b in zip(c.data["a"], c.data["b"])} for found in (there, back)]
    assert renumbered[0] == {b: a for a, b in renumbered[1].items()}
