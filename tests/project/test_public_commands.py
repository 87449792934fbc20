"""docs/public_commands.md: each line that people publish, and what our command for it does in a world of stubs."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import socket
import subprocess

import documents
import pytest
from suite.needs import need

ROOT = documents.ROOT
PAGE = "docs/public_commands.md"
ROW = re.compile(r"^\| ([0-9]+) \| `(.+?)` \| `(.+?)` \| (.*?) \| (.*?) \|$", re.MULTILINE)
TABLES = {
    "hccl_4p.json": (("127.0.0.1", 4),),
    "hccl_8p.json": (("127.0.0.1", 8),),
    "hccl_2s_16p.json": (("127.0.0.1", 8), ("192.0.2.2", 8)),
}
PORT = "8118"
# Of a Slurm allocation of two nodes, as srun and scontrol tell it.
SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "node[1-2]",
    "SLURM_NTASKS_PER_NODE": "8",
    "SLURM_JOB_NUM_NODES": "2",
}
NODES = "for n in 1 2; do echo NodeName=node$n NodeAddr=192.0.2.$n NodeHostName=node$n CPUTot=64; done"
PROGRAMS = {
    "salloc": 'while [[ $1 == -* ]]; do [[ $1 == *=* ]] && shift || shift 2; done; exec "$@"',
    "scontrol": f'case "$*" in *hostnames*) printf "node%s\\n" 1 2 ;; *config*) ;; *) {NODES} ;; esac',
    "srun": "exit 0",
}
OTHER_HOST = "192.0.2."  # addresses that nobody has
OWN_HOST = "10.0.0.1"  # on the page: this host


class Row:
    """One row: its number, the published line, ours, what it does, and what it says."""

    def __init__(self, match):
        self.number, self.published, self.ours, self.outcome, self.said = match.groups()
        self.text = re.fullmatch(r"`(.*)`", self.said)[1] if self.said.startswith("`") else ""

    def as_typed(self):
        """Whether ours has the words of the published line, with another name in front."""
        theirs, ours = (
            re.sub(r"^(?:\w+=\S+ |cd \S+ && )*(?:bash )?(?:launch.sh --zoo )?\S+ ?", "", line)
            for line in (self.published, self.ours)
        )
        return theirs == ours


def rows(page=PAGE):
    return [Row(match) for match in ROW.finditer(documents.read(page))]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder with the programs, configs, rank tables and data that the lines name, on a host of eight NPUs."""
    shutil.copytree(ROOT / "tests" / "fixtures" / "zoo", tmp_path / "net")
    cards, programs = tmp_path / "cards", tmp_path / "bin"
    cards.mkdir()
    programs.mkdir()
    shutil.copyfile(ROOT / "configs" / "demo_hccn.conf", cards / "hccn.conf")
    (cards / "devices").write_text("8\n")
    (cards / "pod").write_text("none\n")
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    for name in (name for name in os.environ if name.startswith(("RANK", "DEVICE", "MS_", "SLURM_", "OMPI_"))):
        monkeypatch.delenv(name)
    folders = [str(programs), str(ROOT / "tests" / "fixtures" / "bin"), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    for name, value in {
        "HCCN_SIM": cards,
        "NPU_SIM": cards,
        "PYTHONPATH": ROOT / "tests" / "fixtures" / "stub_mindspore",
        "LAUNCH_LOCKS": tmp_path / "locks",
        "STUB_OUT": tmp_path,
        "STUB_SCHEDULER_EXIT": "0",
        "LC_ALL": "C.UTF-8",
    }.items():
        monkeypatch.setenv(name, str(value))
    return tmp_path


def prepare(folder, line):
    """Makes the files that the line names, where they are missing."""
    for name, servers in TABLES.items():
        (folder / name).write_text(table(servers))
    (folder / "data").mkdir()
    (folder / "hosts").write_text(f"{OTHER_HOST}1 slots=8\n{OTHER_HOST}2 slots=8\n")
    for script in (folder / "net" / "scripts").glob("*.sh"):
        script.write_text(script.read_text().replace("--bind_core=True ", "").replace(PORT, free_port()))
    trainer = (ROOT / "tests" / "fixtures" / "zoo" / "train.py").read_text()
    if "ascend8p" in line:  # typed in MindOCR's folder
        line += " tools/train.py"
    where = folder / "net" / "scripts" if "--zoo" in line else folder
    for name in re.findall(r"[\w./-]+\.(?:py|ya?ml|ckpt)\b", line):
        path = where / name
        if not path.exists() and not name.startswith("/"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(trainer if name.endswith(".py") else "system:\n  distribute: True\n")
    (folder / "run.sh").write_text("#!/bin/bash\nexec python net.py\n")
    (folder / "run.sh").chmod(0o755)


def table(servers):
    """A rank table of these servers: (address, number of devices)."""
    listed, rank = [], 0
    for number, (name, devices) in enumerate(servers):
        found = [
            {"device_id": str(n), "device_ip": f"10.{number}.1.{n + 1}", "rank_id": str(rank + n)}
            for n in range(devices)
        ]
        listed.append({"server_id": name, "device": found})
        rank += devices
    document = {"version": "1.0", "server_count": str(len(listed)), "server_list": listed, "status": "completed"}
    return json.dumps(document)


def free_port():
    """A port in the place of the published one, which a job of another test may have."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def own_address():
    """An address of this host that is not the loopback's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this host has no address but the loopback's")
        return probe.getsockname()[0]


def command(line):
    """Our line as it can be typed here: the plan alone, without other hosts, GPUs and more cores than there are."""
    options = [] if "--zoo" in line else ["--dry_run"]
    if re.search(rf"{OTHER_HOST}|hosts|HOST|salloc", line):
        options.append("--no_check")
    if "run_gpu.sh" in line:
        options += ["--device_target", "CPU"]
    line = line.replace("--bind_core=True", "--bind_core=False")  # the test may run on few cores
    line = line.replace(PORT, free_port())
    if OWN_HOST in line:
        line = line.replace(OWN_HOST, own_address())
    return re.sub(
        r"\bbash (\w+\.sh)",
        lambda found: shlex.join(["bash", str(ROOT / "scripts" / found[1]), *options]),
        line,
        count=1,
    )


def run(folder, line):
    """(exit code, number of ranks, what it says) of our line: of its plan, or of a start script's run with stubs."""
    ended = subprocess.run(
        ["bash", "-c", command(line)], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    planned = re.search(r"^# \S+: ([0-9]+) ranks?; ", ended.stdout, re.MULTILINE)
    logs = list(folder.glob("net/scripts/**/latest/rank_*.log"))
    return ended.returncode, int(planned[1]) if planned else len(logs), ended.stderr


def start_script(row):
    """The text of the start script that the line runs; empty: it runs none."""
    named = re.search(r"--zoo (?:\S+/)?(\w+\.sh)", row.ours)
    path = ROOT / "tests" / "fixtures" / "zoo" / "scripts" / (named[1] if named else "none")
    return path.read_text() if path.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize("row", rows(), ids=lambda row: row.number)
def test_a_published_line_does_what_the_page_says(row, world, monkeypatch):
    need(*(["mpirun"] if "mpi" in row.ours or "run_gpu" in row.ours or "mpirun" in start_script(row) else []))
    if "salloc" in row.ours:
        for name, value in SLURM.items():
            monkeypatch.setenv(name, value)
    if "zoo run_msrun" in row.ours:
        if not shutil.which("msrun") or not importlib.util.find_spec("mindspore"):
            pytest.skip("needs MindSpore")
        monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "fixtures" / "quick_msrun"))
    prepare(world, row.ours)
    code, ranks, said = run(world, row.ours)
    if row.outcome == "refused":
        assert code in (2, 78), said
        assert row.text and row.text in said
    else:
        assert code == 0, said
        assert f"{ranks} rank{'s' * (ranks != 1)}" == row.outcome
        assert row.text in said


def test_the_page_counts_its_rows():
    found = rows()
    assert [row.number for row in found] == [str(number) for number in range(1, len(found) + 1)]
    typed, refused = sum(row.as_typed() for row in found), sum(row.outcome == "refused" for row in found)
    assert f"Of {len(found)} commands, {typed} keep all their arguments" in documents.read(PAGE)
    assert f"Refused: {refused}," in documents.read(PAGE)


def test_the_chinese_page_has_the_same_rows():
    chinese = rows("docs/zh/public_commands.md")
    fields = [[(row.number, row.published, row.ours, row.text) for row in each] for each in (rows(), chinese)]
    assert fields[0] == fields[1]
    for here, there in zip(rows(), chinese):
        number = here.outcome.partition(" ")[0]
        assert there.outcome == ("拒绝" if number == "refused" else f"{number} 个 rank")
