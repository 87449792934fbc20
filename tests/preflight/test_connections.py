"""Who connects to whom: by addresses that are found in time, and not at all for a host alone."""

import threading

from hccl_tools.machine import addresses, host
from tools.launch.hosts import network
from tools.preflight import check


def test_a_name_server_that_does_not_answer_costs_the_links_of_its_hosts_and_nothing_else(monkeypatch):
    never = threading.Event()
    known = {"a": "10.0.0.1", "b": "10.0.0.2", "c": None}

    def slow(names):
        (name,) = names
        if name not in known:
            never.wait()
        return {name: known.get(name)}

    monkeypatch.setattr(addresses, "of", slow)
    monkeypatch.setattr(check, "_LOOK_UP", 0.2)
    planned = check.plan_links(["a", "b", "c", "hangs"], "a", [8118])
    assert sorted(planned) == ["a", "b"] and planned["a"]["listens"][-1] == 8118
    never.set()


def test_all_names_are_looked_up_however_many_there_are(monkeypatch):
    many = [f"node{n}" for n in range(200)]
    monkeypatch.setattr(addresses, "of", lambda names: {name: f"10.0.0.{name[4:]}" for name in names})
    monkeypatch.setattr(check, "_LOOK_UP", 600)
    assert sorted(check.plan_links(many, "node0", [])) == sorted(many)


def test_this_host_has_the_address_by_which_others_reach_it(monkeypatch):
    monkeypatch.setattr(addresses, "of", lambda names: {n: {"me": "127.0.1.1", "b": "10.0.0.2"}[n] for n in names})
    monkeypatch.setattr(host, "owns", lambda name: name == "me")
    monkeypatch.setattr(network, "own_address_towards", lambda names: f"towards {','.join(names)}")
    assert check.plan_links(["me", "b"], "me", [])["me"]["address"] == "towards b"
    assert check.plan_links(["me"], "me", []) == {}
