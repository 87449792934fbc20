"""A good rank table of every format, to be spoilt by edits."""


def servers(*sizes):
    """Version 1.0; servers(2, 4) has 2 devices on the first server and 4 on the second."""
    found, rank = [], 0
    for number, size in enumerate(sizes or (8,)):
        devices = []
        for device in range(size):
            ip = f"192.168.{100 + number}.{device + 1}"
            devices.append({"device_id": str(device), "device_ip": ip, "rank_id": str(rank)})
            rank += 1
        found.append({"server_id": f"10.0.0.{number + 1}", "device": devices, "host_nic_ip": "reserve"})
    return {"version": "1.0", "server_count": str(len(found)), "server_list": found, "status": "completed"}


def super_pods():
    """Two super pods of one server, one of two; two devices each."""
    listed = []
    for number in range(3):
        devices = [
            {
                "device_id": str(n),
                "super_device_id": str(number * 2 + n),
                "device_ip": f"192.168.1.{number * 2 + n + 1}",
                "device_port": "16666",
                "backup_device_ip": f"192.168.1.{number * 2 + 2 - n}",
                "backup_device_port": "16667",
                "host_port": str(16665 + n),
                "rank_id": str(number * 2 + n),
            }
            for n in range(2)
        ]
        listed.append({"server_id": f"node_{number}", "host_ip": f"172.16.0.{number + 1}", "device": devices})
    pods = [
        {"super_pod_id": "a", "server_list": [{"server_id": "node_0"}, {"server_id": "node_1"}]},
        {"super_pod_id": "b", "server_list": [{"server_id": "node_2"}]},
    ]
    table = {"version": "1.2", "status": "completed", "server_count": "3"}
    return {**table, "server_list": listed, "super_pod_list": pods}


def clusters():
    """Two clusters of one server with one device."""
    devices = [
        {"device_id": "0", "device_ip": f"192.168.1.{n + 1}", "rank_id": str(n), "dpu_ip": "8.2.17.60", "numa_id": ""}
        for n in range(2)
    ]
    listed = [
        {
            "server_id": f"server_{n}_10.0.0.{n + 1}",
            "server_ip": f"10.0.0.{n + 1}",
            "pod_ip": "127.0.0.1",
            "device": [device],
        }
        for n, device in enumerate(devices)
    ]
    groups = [
        {"cluster_id": f"cluster_{n}", "network_type": "ROCE", "server_list": [{"server_id": listed[n]["server_id"]}]}
        for n in range(2)
    ]
    table = {"version": "1.0", "status": "completed", "server_count": "2"}
    return {**table, "server_list": listed, "cluster_list": groups}


def heterogeneous():
    """Two nodes with one rank."""
    ranks = [{"rank_id": str(n), "device_id": "0", "port": "16666", "rank_ip": f"192.168.1.{n + 1}"} for n in range(2)]
    nodes = [{"node_addr": f"10.0.0.{n + 1}", "ranks": [rank]} for n, rank in enumerate(ranks)]
    return {"version": "1.1", "status": "completed", "collective_id": "job", "node_list": nodes, "mode": "tcp"}


def rank_list():
    """Two ranks of a 950, with two layers."""

    def level(layer, rank):
        address = {"addr_type": "IPV4", "addr": f"192.168.{layer}.{rank + 1}", "ports": ["0/1"], "plane_id": "planeA"}
        return {"net_layer": layer, "net_instance_id": "az0", "net_type": "CLOS", "rank_addr_list": [address]}

    ranks = [
        {"rank_id": n, "local_id": n, "device_id": n, "device_port": 16666, "level_list": [level(0, n), level(1, n)]}
        for n in range(2)
    ]
    return {"version": "2.0", "status": "completed", "rank_count": 2, "rank_list": ranks}


def eid(host, device):
    """The inner address of a device of host_of_950."""
    return f"{host * 64 + device:032x}"


def host_of_950(host=0, size=8):
    """The ranks of one 950 host, as its driver and ascend-operator describe them: two networks."""

    def levels(device):
        inner = {"addr_type": "EID", "addr": eid(host, device), "ports": ["0/0"], "plane_id": "plane_0"}
        outer = {**inner, "addr_type": "IPV4", "addr": f"10.{78 + (host >> 8)}.{host & 255}.{device + 1}"}
        shared = {"net_attr": ""}
        return [
            {"net_layer": 0, "net_instance_id": f"srv{host}", "net_type": "TOPO_FILE_DESC", **shared}
            | {"rank_addr_list": [inner]},
            {"net_layer": 2, "net_instance_id": "cluster", "net_type": "CLOS", **shared} | {"rank_addr_list": [outer]},
        ]

    ranks = [{"rank_id": n, "local_id": n, "device_id": n, "level_list": levels(n)} for n in range(size)]
    return {"version": "2.0", "status": "completed", "rank_count": size, "rank_list": ranks}


def hosts_of_950(*hosts, size=4, edits=None):
    """The table of these 950 hosts, in this order, then edited."""
    ranks = [rank for host in hosts for rank in host_of_950(host, size)["rank_list"]]
    listed = [{**rank, "rank_id": number} for number, rank in enumerate(ranks)]
    table = {"version": "2.0", "status": "completed", "rank_count": len(listed), "rank_list": listed}
    return edited(table, edits or {})


def lab():
    """Two devices of one server, each an instance."""
    devices = [[{"device_id": str(n), "device_ip": f"192.168.10{n}.101"}] for n in range(2)]
    instances = [{"devices": each, "rank_id": str(n), "server_id": "10.0.0.1"} for n, each in enumerate(devices)]
    group = {"device_num": "2", "server_num": "1", "group_name": "", "instance_count": "2", "instance_list": instances}
    return {
        "board_id": "0x002f",
        "chip_info": "910",
        "deploy_mode": "lab",
        "group_count": "1",
        "group_list": [group],
        "para_plane_nic_location": "device",
        "para_plane_nic_name": ["eth0"],
        "para_plane_nic_num": "1",
        "status": "completed",
    }


def cloud():
    """Two pods with one device."""
    devices = [[{"device_id": "0", "device_ip": f"192.168.1.{n + 1}"}] for n in range(2)]
    instances = [
        {"pod_name": f"job-{n}", "server_id": f"10.0.0.{n + 1}", "devices": each} for n, each in enumerate(devices)
    ]
    group = {"group_name": "job", "device_count": "2", "instance_count": "2", "instance_list": instances}
    return {"status": "completed", "group_count": "1", "group_list": [group]}


FORMATS = (super_pods, clusters, heterogeneous, rank_list, lab, cloud)


def edited(document, edits):
    """`document` with edits {JSON pointer: new value, or ... to remove the key or entry}; "/-" appends to a list."""
    for place, value in edits.items():
        if not place:
            document = value
            continue
        *parents, last = place.split("/")[1:]
        target = document
        for part in parents:
            target = target[int(part) if isinstance(target, list) else part]
        key = int(last) if isinstance(target, list) and last != "-" else last
        if key == "-":
            target.append(value)
        elif value is ...:
            del target[key]
        else:
            target[key] = value
    return document
