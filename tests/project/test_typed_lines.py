"""The lines that README.md and docs/compared.md tell to type: each starts what its row says, on eight NPUs."""

import re
from contextlib import closing

import documents
import pytest
from documents_world import World
from suite.needs import needs

pytestmark = [pytest.mark.thorough, needs("mpirun")]

_SLURM = {"SLURM_JOB_ID": 7, "SLURM_JOB_NUM_NODES": 1, "SLURM_NTASKS": 8, "SLURM_JOB_NODELIST": "localhost"}
_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": 8118}
_POD |= {"MS_WORKER_NUM": 8, "MS_LOCAL_WORKER": 8, "MS_NODE_RANK": 0, "POD_IP": "127.0.0.1"}
# {what is in the first cell of a row of README.md: what is exported there, and a line that the launch prints}
_PLACES = {
    "one_machine": ({}, "built for devices 0-7"),
    "over ssh": ({}, "Open MPI starts the ranks"),
    "rank_tables": ({}, "table.json has 2 servers: this host starts its own ranks"),
    "Slurm": (_SLURM, "in Slurm's allocation 7: srun starts the ranks"),
    "Kubernetes": (_POD, "this is a pod of a job"),
    "msrun": ({}, "mindspore.parallel.cluster.run"),
}
_TABLE = """\
python hccl_tools/hccl_tools.py --device_num "[0,8)" --server_ip 127.0.0.1 --output one.json
sed -e 's/127.0.0.1/10.0.0.9/; s/192.168.10/192.168.20/' one.json >two.json
python hccl_tools/merge_hccl.py one.json two.json --output table.json
rm one.json two.json
"""


def rows(page, name):
    """(first cell, the line to type, last cell) of every row of the page's tables whose second cell has mslaunch."""
    for line in documents.read(page).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 3 and (typed := re.match(rf"`({name} [^`]*)`", cells[1])):
            yield cells[0], typed[1], cells[2]


@pytest.fixture(scope="module")
def world():
    with closing(World()) as found:
        (found.folder / "package").mkdir()
        for name in ("train.py", "package/train.py"):
            (found.folder / name).write_text("print('trains')\n")
        (found.folder / "hosts").write_text("localhost slots=8\n")
        yield found


def dry_run(world, line, exports=None):
    """What the line prints with --dry_run; it must exit with 0."""
    before = "".join(f"export {name}={value}\n" for name, value in (exports or {}).items())
    typed = line.replace("mslaunch ", "mslaunch --dry_run ", 1)
    (block,) = documents.blocks("x.md", f"<!-- run on=npu -->\n```bash\n{before}{typed}\n```\n")
    code, output = world.run(block)
    assert code == 0, f"{line}: exit {code}\n{output}"
    return output


COMPARED = list(rows("docs/compared.md", "mslaunch"))


@pytest.mark.parametrize(("line", "starts"), sorted({(line, starts) for _, line, starts in COMPARED}))
def test_a_line_for_users_of_other_launchers_starts_what_its_row_says(world, line, starts):
    output = dry_run(world, line)
    ranks = re.match(r"\d+ ranks", starts)[0]
    assert f"# mslaunch: {ranks}; " in output
    assert ("mpirun " in output) is ("by Open MPI" in starts or "--hostfile" in line)
    assert ("mindspore.parallel.cluster.run" in output) is ("--engine msrun" in line)
    assert output.count(" is not needed: ") >= len(re.findall(r"\bnotes?:", starts))
    if "of a module" in starts:
        assert "every rank runs the module package.train" in output


def test_the_chinese_page_has_the_same_lines():
    assert [row[:2] for row in COMPARED if "，" not in row[0]] and len(COMPARED) > 20
    assert [line for _, line, _ in rows("docs/zh/compared.md", "mslaunch")] == [line for _, line, _ in COMPARED]


def test_every_place_of_readme_is_found(world, tmp_path):
    written = dict.fromkeys(_PLACES)
    for cell, line, _ in rows("README.md", "mslaunch"):
        written[next(name for name in _PLACES if name in cell)] = line
    assert None not in written.values() and len(written) == 6
    assert [line for _, line, _ in rows("README_CN.md", "mslaunch")] == list(written.values())
    (block,) = documents.blocks("x.md", f"<!-- run on=npu -->\n```bash\n{_TABLE}```\n")
    assert world.run(block)[0] == 0
    for name, text in (("scontrol", "echo localhost"), ("srun", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    for name, line in written.items():
        exports, said = _PLACES[name]
        output = dry_run(world, line, {**exports, "PATH": f"{tmp_path}:$PATH"})
        assert said in output, f"{line}\n{output}"
