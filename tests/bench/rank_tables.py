#!/usr/bin/env python3
"""How long rank tables take: to validate a large one, to merge many, to build one of eight devices.

Each is a whole command, from its start to its end, beside a lower bound: parsing the
table alone, reading the inputs alone, one call of hccn_tool (simulated: it sleeps).  The figures are
medians of several runs taken in turns; what can be compared with another machine is their ratio.

  make bench
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import figures

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SERVERS = (125, 1250, 12500)  # with 8 devices each
RUNS = 3

PARSE = "import json, sys; json.load(open(sys.argv[1], encoding='utf-8'))"
JSONSCHEMA = (
    "import json, sys; from jsonschema import Draft202012Validator as V; "
    "V(json.load(open(sys.argv[2]))).validate(json.load(open(sys.argv[1], encoding='utf-8')))"
)
# In a small process of its own: to Linux, the memory of a process is at least that of the one which it was forked from.
ONE_RUN = """import os, sys, time
silent = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_WRONLY, 0) for descriptor in (1, 2)]
began = time.perf_counter()
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, used = os.wait4(process, 0)
print(time.perf_counter() - began, used.ru_maxrss, status)
"""
READ_ALL = "import glob, json, sys; [json.load(open(p)) for p in glob.glob(sys.argv[1] + '/s*.json')]"
CALL_SECONDS = "0.5"  # what the simulated hccn_tool takes for a call


def tables():
    """Measures; yields two figures.Table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [generating(folder)]
    with tempfile.TemporaryDirectory() as folder:
        rows.append(merging(folder))
    simulated = f"The simulated hccn_tool sleeps for {CALL_SECONDS} s."
    note = f"Whole commands beside what they cannot be faster than. {simulated}"
    yield figures.Table("Building and merging rank tables", ["", "ours", "lower bound", "ratio"], rows, note)
    yield validating()


def generating(folder):
    """A table of eight devices beside one call of hccn_tool."""
    tool = os.path.join(folder, "hccn_tool")
    with open(tool, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nsleep {CALL_SECONDS}\n")
        file.write('echo "ipaddr:192.168.100.$(($2 + 1))"\necho netmask:255.255.0.0\n')
    os.chmod(tool, 0o755)
    os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]
    generate = [sys.executable, os.path.join(PROJECT, "hccl_tools", "hccl_tools.py"), "--stdout"]
    runs = in_turns({"one": [tool, "-i", "0", "-ip", "-g"], "eight": generate})
    one, eight = seconds_of(runs["one"]), seconds_of(runs["eight"])
    return ["table of 8 devices / one call of hccn_tool", f"{eight:.3f} s", f"{one:.3f} s", f"{eight / one:.2f}"]


def merging(folder):
    """Merging the tables of many servers, beside reading them."""
    for number, entry in enumerate(table(SERVERS[-1])["server_list"]):
        for rank, device in enumerate(entry["device"]):
            device["rank_id"] = str(rank)
        single = {"version": "1.0", "server_count": "1", "server_list": [entry], "status": "completed"}
        with open(os.path.join(folder, f"s{number}.json"), "w", encoding="utf-8") as file:
            json.dump(single, file, indent=4)
    files = [os.path.join(folder, f"s{number}.json") for number in range(SERVERS[-1])]
    result = os.path.join(folder, "merged.json")
    merge = [sys.executable, os.path.join(PROJECT, "hccl_tools", "merge_hccl.py"), "--output", result, *files]
    runs = in_turns({"read": [sys.executable, "-c", READ_ALL, folder], "merge": merge})
    read, merged = seconds_of(runs["read"]), seconds_of(runs["merge"])
    return [f"{SERVERS[-1]:,} tables merged / read", f"{merged:.2f} s", f"{read:.2f} s", f"{merged / read:.1f}"]


def validating():
    """Tables of a thousand ranks and more, beside parsing alone and jsonschema alone."""
    rows = []
    for servers in SERVERS:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(table(servers), file, indent=4)
            size = os.path.getsize(path) / 1e6
            runs = in_turns(validators(path))
        seconds = {name: seconds_of(of_it) for name, of_it in runs.items()}
        memory = max(each[1] for each in runs["validate"])
        times = (f"{seconds[name]:.3f} s" for name in ("validate", "parse", "jsonschema"))
        ratio = f"{seconds['validate'] / seconds['parse']:.1f}"
        rows.append([f"{servers * 8:,} ranks, {size:.1f} MB", *times, f"{memory:.0f} MB", ratio])
    columns = ["", "validate_hccl.py", "parsing alone", "jsonschema alone", "our memory", "times parsing"]
    return figures.Table("Checking rank tables", columns, rows, f"Whole processes, medians of {RUNS} runs.")


def table(servers):
    """A good table, in the dictionary order of server_id that MindSpore requires."""
    names = sorted(f"10.{n >> 14 & 127}.{n >> 7 & 127}.{(n & 127) + 1}" for n in range(servers))
    entries = []
    for n, name in enumerate(names, 1):
        # a device has the same subnet on every server
        devices = [
            {"device_id": str(k), "device_ip": f"192.{160 + k}.{n >> 8}.{n & 255}", "rank_id": str(8 * n - 8 + k)}
            for k in range(8)
        ]
        entries.append({"server_id": name, "device": devices, "host_nic_ip": "reserve"})
    return {"version": "1.0", "server_count": str(servers), "server_list": entries, "status": "completed"}


def validators(path):
    """{name: command} of what reads the table at `path`."""
    python = sys.executable
    schema = os.path.join(PROJECT, "schemas", "rank_table_v1.0.schema.json")
    return {
        "validate": [python, os.path.join(PROJECT, "hccl_tools", "validate_hccl.py"), path],
        "parse": [python, "-c", PARSE, path],
        "jsonschema": [python, "-c", JSONSCHEMA, path, schema],
    }


def in_turns(commands):
    """{name: [(seconds, MB)]} of several runs of each command, taken in turns."""
    runs = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            runs[name].append(one_run(command))
    return runs


def seconds_of(runs):
    """The median of the times."""
    return statistics.median(each[0] for each in runs)


def one_run(command):
    """(seconds, MB) of one command, which must succeed."""
    done = subprocess.run([sys.executable, "-S", "-c", ONE_RUN, *command], capture_output=True, text=True, check=True)
    seconds, kilobytes, status = done.stdout.split()
    if status != "0":
        raise SystemExit(f"rank_tables.py: {' '.join(command)} ended with status {status}")
    return float(seconds), int(kilobytes) / 1024


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
