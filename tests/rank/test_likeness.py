"""What the first agent of each host tells, and how the launcher compares it."""

import os
import sys

from tools.rank import likeness
from tools.together import findings, hosts


def told(folder, *words, **environment):
    os.chdir(folder)
    found = {name.encode(): value.encode() for name, value in environment.items()}
    return likeness.read(likeness.text([sys.executable, "-u", *words], found))


def test_what_a_host_tells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "net.py").write_text("print(2)")
    (tmp_path / "c.yaml").write_text("lr: 1")
    first = told(tmp_path, "train.py", "--config", "c.yaml", PYTHONHASHSEED="0")
    assert first["Python"].startswith("python3") and first["PYTHONHASHSEED"] == "0"
    assert first["HCCL_DETERMINISTIC"] == "not set"
    assert {"train.py", "c.yaml", "./*.py"} <= first.keys()
    for file, changes in (("net.py", "./*.py"), ("train.py", "train.py"), ("c.yaml", "c.yaml")):
        before = (tmp_path / file).read_text()
        (tmp_path / file).write_text(before + " ")
        again = told(tmp_path, "train.py", "--config", "c.yaml", PYTHONHASHSEED="0")
        assert [name for name in first if first[name] != again[name]] == [changes]
        (tmp_path / file).write_text(before)
    (tmp_path / "c.yaml").unlink()
    assert told(tmp_path, "train.py", "--config=c.yaml")["c.yaml"] == "missing"


def test_which_python_a_start_script_takes_is_not_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (["bash", "train.sh"], ["./train.sh"]):
        found = likeness.read(likeness.text(words, {}))
        assert not {"Python", "numpy", "mindspore"} & found.keys() and found["PYTHONHASHSEED"] == "not set"


def test_nothing_in_it_ends_a_value_or_a_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = likeness.text(["python", "a\tb\n=c.py", "x" * 999 + ".yaml"], {b"PYTHONHASHSEED": b"1\t2\n3=4\xff"})
    assert "\n" not in text
    found = likeness.read(text)
    assert found["a_b__c.py"] == "missing" and found["PYTHONHASHSEED"].startswith("1_2_3_4")
    assert all(len(name) <= 200 for name in found)


def test_what_most_hosts_have_is_right_and_else_what_rank_0_has():
    ranks = {"node0": [0, 1], "node1": [2, 3], "node2": [4, 5]}
    same = {"numpy": "2.0", "train.py": "digest 1"}
    assert hosts.differing(dict.fromkeys(ranks, same), ranks) == []
    rows = hosts.differing(  # node2 does not know its numpy
        {"node2": {"train.py": "digest 1"}, "node1": same, "node0": {**same, "numpy": "1.26"}}, ranks
    )
    assert [(row["what"], row["here"], row["there"], row["host"], row["ranks"]) for row in rows] == [
        ("numpy", "1.26", "2.0", "node1", [2, 3]),
    ]
    (row,) = hosts.differing({"node1": same, "node0": {**same, "numpy": "1.26"}}, ranks)
    assert findings.says(row) == ("numpy is not the same on all hosts: node1 (ranks 2,3) has 2.0, others have 1.26")


def test_many_hosts_are_not_all_named():
    ranks = {f"node{number}": [number] for number in range(1000)}
    told = {host: {"numpy": "2.0" if number < 600 else "1.26"} for number, host in enumerate(ranks)}
    assert len(hosts.differing(told, ranks)) == 8
