"""Each operation that may take long says how far it is, and counts to its end."""

import argparse
import gzip
import json
import os
import sys
import types

import pytest

from hccl_tools.commands import merge, validate
from hccl_tools.common import how_far
from hccl_tools.hosts import cards as cards_module
from hccl_tools.hosts import together
from hccl_tools.hosts.ssh import Call
from tools import convert_ckpt, plot_log, runs
from tools.logs import matcher, sources
from tools.pages import example_run
from tools.run_page import document
from tools.trainer.checkpoints import converting

LINE = "epoch: 1 step: {}, loss is 2.3\n"


class Recorder(how_far.Screen):
    """Keeps what was done, without a terminal."""

    def __init__(self):
        super().__init__(None)
        self.done = []

    def begin(self, work):
        self.works.append(work)

    def end(self, work):
        self.works.remove(work)
        work.text()  # asks its counter
        self.done.append((work.what, work.done, work.whole))

    def close(self):
        assert self.works == []


@pytest.fixture
def recorder():
    found = Recorder()
    with how_far.showing(found):
        yield found


@pytest.fixture
def logs(tmp_path):
    """A folder with two logs, one of them packed; and the number of its bytes."""
    folder = tmp_path / "logs"
    folder.mkdir()
    text = "".join(map(LINE.format, range(1, 20_000)))
    (folder / "rank_0.log").write_text(text)
    with gzip.open(folder / "rank_1.log.gz", "wt") as file:
        file.write(text)
    return folder, sum(path.stat().st_size for path in folder.iterdir())


def test_the_diagnosis_counts_the_bytes_of_files_as_they_are_on_the_disk(recorder, logs):
    folder, size = logs
    assert sources.read([str(folder)], []).size == size
    assert recorder.done == [("reading 2 logs", size, size)]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_worker_processes_count_together(recorder, logs, monkeypatch):
    folder, size = logs
    monkeypatch.setattr(sources, "SMALL", 0)
    monkeypatch.setattr(matcher, "installed", lambda: False)
    sources.read([str(folder)], [])
    assert recorder.done == [("preparing the search", 4, 4), ("reading 2 logs", size, size)]


@pytest.mark.slow
def test_plot_log_counts_bytes(recorder, tmp_path, capsys):
    for rank in range(2):
        (tmp_path / f"rank_{rank}.log").write_text("".join(map(LINE.format, range(1, 100))))
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert plot_log.main([str(tmp_path)]) == 0
    assert recorder.done == [("reading the logs of 2 ranks", size, size), ("drawing the picture", 0, 0)]
    assert "rank" in capsys.readouterr().out


@pytest.mark.slow
def test_the_page_of_a_run(recorder, tmp_path):
    document.write([example_run.make(str(tmp_path))], None)
    names, (reading, *_) = [what for what, _, _ in recorder.done], recorder.done
    assert names[0].startswith("reading the logs of 8 ranks") and names[-1] == "making the page"
    assert reading[1] == reading[2] > 0


def test_the_bundle_counts_files(recorder, bundled, failed_run):
    bundled(failed_run)
    packing = next(one for one in recorder.done if one[0].startswith("packing "))
    assert packing[1] == packing[2] > 5 and packing[0] == f"packing {packing[1]} files"
    assert [what for what, _, _ in recorder.done][-2] == "examining this machine"


@pytest.mark.parametrize("pings", [(), ("192.168.100.2", "192.168.100.3")])
def test_the_network_check_counts_its_questions(recorder, cards, world, pings):
    cards.set({device: f"192.168.100.{device + 1}" for device in range(2)})
    asked = [cards_module.Question(device=device, partner="192.168.100.9", pings=pings) for device in range(2)]
    cards_module.ask(asked)
    assert recorder.done == [("asking 2 devices", 7 + len(pings), 7 + len(pings))]


def test_hosts_count_when_they_have_answered_or_failed(recorder):
    with how_far.doing("asking 3 hosts", 3):
        together.run("abc", lambda host: Call(["/no/such/program"] if host == "c" else ["true"]), 60)
    assert recorder.done == [("asking 3 hosts", 3, 3)]


def test_converted_checkpoints_count_as_mindspore_writes_them(recorder, tmp_path, monkeypatch):
    def transform(folder, made, part, *_):
        for rank in range(3):
            os.makedirs(f"{made}/rank_{rank}")
            with open(f"{made}/rank_{rank}/{part}{rank}.ckpt", "w"):
                pass

    monkeypatch.setitem(sys.modules, "mindspore", types.SimpleNamespace(transform_checkpoints=transform))
    monkeypatch.setattr(converting.strategies, "ranks", lambda _: 4)
    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0" / "a.ckpt").write_text("")
    monkeypatch.setattr(converting.strategies, "check", lambda *_: None)
    monkeypatch.setattr(converting.saving, "read", lambda _: {})
    converting.by_strategies(str(tmp_path), str(tmp_path), None, "to.ckpt")
    assert recorder.done == [("converting the checkpoints for 4 ranks", 3, 4)]


def test_written_checkpoints_count(recorder, tmp_path):
    (tmp_path / "part").write_text("x")
    options = argparse.Namespace(src_strategy=None, dst_strategy=None)
    with how_far.doing("writing", 2):
        convert_ckpt.write(options, dict.fromkeys(range(2), str(tmp_path / "part")), str(tmp_path / "to"), None)
    assert recorder.done == [("writing", 2, 2)]


def test_runs_are_counted_when_they_are_read_and_removed(recorder, tmp_path, capsys):
    for name in (f"logs/ascend1p-2026013{day}T120000Z-1" for day in range(3)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "launch.json").write_text(json.dumps({"outcome": {"exit": 0}}))
        (tmp_path / name / "rank_0.log").write_text(LINE.format(1))
    assert runs.main(["clean", "--keep", "1", "--yes", "--logs", str(tmp_path / "logs")]) == 0
    works = [("reading 3 runs", 3, 3), ("measuring 2 runs", 2, 2), ("removing 2 runs", 2, 2)]
    assert recorder.done == works
    assert "removed: 2 runs" in capsys.readouterr().err


def test_rank_tables_are_named_while_they_are_read(recorder, tmp_path, table, capsys):
    paths = [tmp_path / f"{number}.json" for number in range(2)]
    for number, path in enumerate(paths):
        edits = {
            "/server_list/0/server_id": f"10.0.1.{number}",
            "/server_list/0/device/0/device_ip": f"10.1.0.{number}",
        }
        path.write_text(json.dumps(table(1, edits=edits)))
    words = list(map(str, paths))
    assert validate.main(words) == 0 and merge.main([*words, "--stdout"]) == 0
    names = [what for what, _, _ in recorder.done]
    assert names == [
        *(f"checking {path}" for path in words),
        *(f"reading {path}" for path in words),
        "merging 2 tables",
    ]
    capsys.readouterr()
