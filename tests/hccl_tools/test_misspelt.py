"""Texts that are nearly an address."""

import socket

import pytest
from suite.cases import for_each

from hccl_tools.machine import addresses
from hccl_tools.table import misspelt


@for_each(
    "text",
    ["10.9.0.1 ", " 10.9.0.1", "10. 9.0.1", "10 9 0 1", "10,9,0,1", "10.9.0,1", "10.9..0.1", "10.9.0.1.",
     "010.009.000.001", "1O.9.0.1", "10.9.0.l", "１０.9.0.1", "１０．９．０．１", "10。9。0。1",
     "10.9.0.1:22", "10.9.0.1/24", "10.9.0.1%eth0", "root@10.9.0.1", "http://10.9.0.1:80/x"],
)  # fmt: skip
def test_what_a_misspelt_address_means(text):
    assert misspelt.is_nearly_an_address(text)
    assert misspelt.meant(text) == "10.9.0.1"


@pytest.mark.parametrize("text", ["[fd00::1]", "[fd00::1]:22", "fd00::1/64", "fd00::1%eth0"])
def test_what_a_misspelt_ipv6_address_means(text):
    assert misspelt.meant(text) == "fd00::1"


@pytest.mark.parametrize(
    "text",
    [
        "10.9.0.256",
        "10.9.0",
        "10.9",
        "10.9.0.1.2",
        "10.9.0.x",
        "10.9.0.XXX",
        "n1.9.0.1",
        "10.9.0.-1",
        "10.9.0.1a",
        "10.9.0.1,10.9.0.2",
        "999.9.9.9",
    ],
)
def test_an_address_that_can_mean_several_is_one_all_the_same(text):
    assert misspelt.is_nearly_an_address(text)
    assert misspelt.meant(text) is None


@for_each(
    "text",
    ["10.9.0.1", "fd00::1", "::", "node_0", "node-1", "1", "", ".", "...", "server_0_10.0.0.1", "ip-10-9-0-1", "v1.2",
     "²", "node1.example.com", "modelarts-job-a0978141-1712", "节点 1", "rack1.1.2.3", "az1.0.0.1",
     "n1.cluster2.example.com", "a:1", "1" * 5000],
)  # fmt: skip
def test_addresses_and_names_are_not_misspelt(text):
    assert not misspelt.is_nearly_an_address(text)
    assert misspelt.meant(text) is None


def test_a_name_that_looks_like_an_address_is_looked_up(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
    names = ["rack1.1.2.3", "az1.0.0.1", "n1.0.0.1"]
    assert addresses.of(names) == dict.fromkeys(names, "10.0.0.1")


def test_no_resolver_is_asked_for_what_is_nearly_an_address():
    assert addresses.of(["10.9.0", "127.1"]) == {
        "10.9.0": None,
        "127.1": None,
    }  # for it they are 10.9.0.0 and 127.0.0.1
