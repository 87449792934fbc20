#!/usr/bin/env python3
"""How long check_network.sh takes on the table of 128 hosts with 8 devices each, all of it simulated.

The simulated mpirun asks one host after the other; the real one asks all at once.  So the time of one host
is given as well as the time of all.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import figures

ROOT = Path(__file__).resolve().parents[2]
HOSTS, DEVICES = 128, 8


def tables():
    """Measures; yields one figures.Table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        one = ask(folder, "one", 1)
        every = ask(folder, "all", HOSTS)
    rows = [["1 host", f"{one:.2f} s", f"{one:.2f} s"]]
    rows.append([f"{HOSTS} hosts", f"{every:.1f} s", f"{every / HOSTS:.2f} s"])
    note = "Simulated cards, one run; the simulated mpirun asks one host after the other, the real one all at once."
    yield figures.Table("check_network.sh, 8 devices a host", ["", "in all", "a host"], rows, note)


def prepare(folder):
    """The table, hostfiles for one host and for all, and the simulated cards."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("hccn_tool", "mpirun"):
        (programs / name).symlink_to(ROOT / "tests" / "fixtures" / "bin" / name)
    servers = []
    for number in range(HOSTS):
        ips = [f"10.{number}.0.{device + 1}" for device in range(DEVICES)]
        entries = [
            {"device_id": str(device), "device_ip": ip, "rank_id": str(number * DEVICES + device)}
            for device, ip in enumerate(ips)
        ]
        servers.append({"server_id": f"127.0.1.{100 + number}", "device": entries})
        cards = folder / f"host_{number}"
        cards.mkdir()
        lines = [f"address_{device}={ip}\nnetmask_{device}=255.0.0.0\n" for device, ip in enumerate(ips)]
        (cards / "hccn.conf").write_text("".join(lines))
    table = {"version": "1.0", "server_count": str(HOSTS), "server_list": servers, "status": "completed"}
    (folder / "table.json").write_text(json.dumps(table))
    (folder / "all").write_text("".join(f"{server['server_id']} slots=8\n" for server in servers))
    (folder / "one").write_text(f"{servers[0]['server_id']} slots=8\n")


def ask(folder, hostfile, hosts):
    """Seconds that the check of the hosts in `hostfile` takes."""
    environment = {**os.environ, "PATH": f"{folder / 'programs'}:{os.environ['PATH']}", "MPIRUN_SIM": str(folder)}
    began = time.monotonic()
    script = ["bash", str(ROOT / "scripts" / "check_network.sh"), "--hostfile", hostfile, "table.json"]
    ended = subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    summary = f"{hosts * DEVICES} devices asked on {hosts} of {HOSTS} servers, 0 with a problem"
    assert summary in ended.stdout, ended.stdout[-500:] + ended.stderr[-500:]
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
