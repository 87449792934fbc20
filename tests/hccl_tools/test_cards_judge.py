import json

import pytest

from hccl_tools.hosts import cards_judge
from hccl_tools.table import rank_table

PROGRAM = "hccl_tools/check_network.py"


@pytest.mark.slow
def test_on_one_server_partners_are_of_one_subnet_as_on_910a(cards, table, world, run):
    addresses = {device: f"192.168.{100 + device % 4}.{100 + device // 4}" for device in range(8)}
    edits = {f"/server_list/0/device/{device}/device_ip": address for device, address in addresses.items()}
    document = table(8, edits={"/server_list/0/server_id": "127.0.0.1", **edits})
    found = cards_judge.partners(rank_table.servers(document))
    assert [found["127.0.0.1", device] for device in (0, 4, 3)] == [addresses[4], addresses[0], addresses[7]]
    (world / "table.json").write_text(json.dumps(document))
    cards.set(addresses)
    with open(cards.folder / "hccn.conf", "a") as file:
        file.writelines(f"netmask_{device}=255.255.255.0\n" for device in range(8))
    ended = run(PROGRAM, "table.json")
    assert (ended.returncode, ended.stdout.count("ok")) == (0, 8), ended.stdout


def test_partners_are_on_the_next_server_and_on_one_server_the_next_device(table):
    servers = rank_table.servers(table(2, 2, 2))
    found = cards_judge.partners(servers)
    assert found["10.0.0.1", 1] == "192.168.101.2"
    assert found["10.0.0.3", 0] == "192.168.100.1"
    assert cards_judge.partners(rank_table.servers(table(2)))["10.0.0.1", 1] == "192.168.100.1"
    assert cards_judge.partners(rank_table.servers(table(1))) == {}
