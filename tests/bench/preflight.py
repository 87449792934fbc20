#!/usr/bin/env python3
"""How long preflight.sh takes for 8 to 1,024 hosts, and its quick part for hosts of the lab.

In the first table one process answers for all hosts, each a second after it was asked: facts of a healthy host, and
good links to those hosts to which it was asked to connect.  This measures what the hosts cost where the command is
typed.  In the second one all hosts are network namespaces of this machine, with sshd, Python and real connections.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import check_network
import figures
import lab_hosts

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "preflight")]

from hccl_tools.hosts.answering import frame, unpacked

HEALTHY = importlib.import_module("healthy_hosts").HEALTHY

FAR, NEAR = (8, 64, 256, 1024), (2, 16, 64)
DIFFERING = 40  # hosts with another version and another variable each
TARGET_SECONDS, TARGET_MEMORY = 10, 200 << 20  # for 1,024 hosts; a second of it is the answer's
# The quick part, as a launch asks for it.
QUICK = """
import time
began = time.monotonic()
from tools.preflight import check, reach
hosts = [f"node{number}" for number in range(int(__import__("sys").argv[1]))]
way = reach.over_ssh({host: host for host in hosts}, {}, None, print)
found = check.run(way, check.Job(quick=True))
assert not found.silent and not found.lines and not found.differences, found.differences[:3] or found.lines
print(time.monotonic() - began)
"""


def tables():
    """Measures; yields figures.Tables."""
    with tempfile.TemporaryDirectory() as name:
        rows = list(far(Path(name)))
    note = (
        f"One process answers for all hosts, each after {check_network.ANSWER_SECONDS:g} s; one run. Memory: the most "
        f"that the command used, without its ssh processes, which are simulated. Wanted for {FAR[-1]:,} hosts: at most "
        f"{TARGET_SECONDS} s and {TARGET_MEMORY >> 20} MiB."
    )
    yield figures.Table("preflight.sh, simulated hosts", ["hosts", "in all", "processor time", "memory"], rows, note)
    if subprocess.run([lab_hosts.LAB, "probe"], capture_output=True, check=False).returncode:
        return  # there can be no lab
    rows = list(near())
    note = (
        f"Hosts of namespaces, which share the {len(os.sched_getaffinity(0))} cores of this machine: sshd, Python and "
        "the connections of all hosts run on these. The quick part has neither links nor programs of the driver. "
        f"Medians of {RUNS} runs."
    )
    columns = ["hosts", "quick part", "whole check", "processor time a host, quick"]
    yield figures.Table("preflight.sh, hosts of the lab", columns, rows, note)


def far(folder):
    """A row for each number of hosts that one process answers for."""
    (folder / "ssh").write_text(check_network.SSH)
    (folder / "ssh").chmod(0o755)
    cases = [*((hosts, 0, 0) for hosts in FAR), (FAR[-1], DIFFERING, 0), (FAR[-1], 0, check_network.HANGING)]
    for hosts, differing, hanging in cases:
        (folder / "hosts").write_text("".join(f"{address(number)} slots=8\n" for number in range(hosts)))
        answer = answers(hosts, differing)
        with check_network.answering(hosts, hanging, answer) as port:
            seconds, processor, memory = checked(folder, hosts, differing, hanging, port)
        name = f"{hosts:,}" + (f", {differing} of them differ" if differing else "")
        name += f", {hanging} of them hang" if hanging else ""
        yield [name, f"{seconds:.1f} s", f"{processor:.1f} s", f"{memory / 2**20:.0f} MiB"]


def address(number):
    return f"10.9{number // 250}.{number % 250}.1"


def answers(hosts, differing):
    """A function of a host's number and its question: its frame.  `differing` hosts are not like the others."""
    every = hosts // differing if differing else 0

    def answer(number, line):
        asked = unpacked(line)
        facts = {**HEALTHY, "memory_free": (1 << 39) + number}
        if every and number % every == 1:
            facts.update({"kernel": f"6.{number}", "variable:HCCL_BUFFSIZE": str(number)})
        content = {"facts": facts, "failed": {}, "links": links(asked["question"]["links"])}
        return frame({"content": content, "lines": [], "version": asked["version"]}, asked["nonce"])

    return answer


def links(asked):
    """Good links to all that the host was asked to connect to."""
    well = {
        "source": asked["address"],
        "seen": asked["address"],
        "trip": 0.0002,
        "offset": 0.0,
        "rtt": 0.0002,
        "took": 0.001,
    }
    made = [[target, port, "ok", well] for target, _, port, _ in asked["connects"]]
    there = {"here": True, "strangers": 0, "busy": {}, "passing": [], "began": 1e9, "ended": 1e9 + 2}
    return {"links": made, **there, "interfaces": {"eth0": [asked["address"]]}}


def checked(folder, hosts, differing, hanging, port):
    """(seconds, seconds of processor time, bytes of memory) of one check, whose result is as it must be."""
    environment = {**os.environ, "PORT": str(port), "PATH": f"{folder}:{os.environ['PATH']}", "LAUNCH_LANG": "en"}
    script = ["bash", str(ROOT / "scripts" / "preflight.sh"), "--hostfile", "hosts", "--json"]
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        process = subprocess.Popen(script, cwd=folder, env=environment, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        out.seek(0)
        said = json.load(out)
    assert os.waitstatus_to_exitcode(status) == (78 if hanging else bool(differing)), said
    named = {host for each in said["differences"] for group in each["groups"] for host in group["hosts"]}
    assert len(said["silent"]) == hanging and len(named) >= differing and bool(named) == bool(differing), said
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


# ---- hosts of the lab ----------------------------------------------------------------------------------------------

RUNS = 3


def near():
    """A row for each number of hosts of the lab."""
    for hosts in NEAR:
        with tempfile.TemporaryDirectory() as name, lab_hosts.lab(hosts):
            whole = ["bash", str(ROOT / "scripts" / "preflight.sh"), "-H", f"node[0-{hosts - 1}]"]
            quick = [sys.executable, "-c", QUICK, str(hosts)]
            before = used()
            in_quick = [float(ran(quick, name)) for _ in range(RUNS)]
            processor = (used() - before) / RUNS / hosts
            in_whole = []
            for _ in range(RUNS):
                began = time.monotonic()
                assert "nothing blocks" in ran(whole, name)
                in_whole.append(time.monotonic() - began)
        yield [hosts, *(f"{sorted(times)[RUNS // 2]:.1f} s" for times in (in_quick, in_whole)), f"{processor:.2f} s"]


def used():
    """Seconds of processor time that this machine has spent outside of its idle loop."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (sum(map(int, words[1:4])) + sum(map(int, words[6:8]))) / os.sysconf("SC_CLK_TCK")


def ran(words, folder):
    """What the command prints on the first host."""
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "LAUNCH_LANG": "en"}
    command = [lab_hosts.LAB, "run", "0", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
