import socket

from hccl_tools.machine import addresses


def test_names_and_addresses_are_found_and_what_has_none_is_none(monkeypatch):
    known = {"node1": "10.0.0.1", "node2": "10.0.0.2"}

    def look_up(name, *_):
        if name not in known:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[name], 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    names = ["node2", "10.9.9.9", "gone", "node1"]
    found = addresses.of(names)
    assert found == {"node2": "10.0.0.2", "10.9.9.9": "10.9.9.9", "gone": None, "node1": "10.0.0.1"}
    assert list(found) == names
    assert addresses.of(["gone"]) == {"gone": None} and addresses.of([]) == {}
