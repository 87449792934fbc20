"""Facts of hosts that do not exist."""

from tools.preflight.difference import Answer

HEALTHY = {
    "python": "3.11.7",
    "mindspore": "2.6.0",
    "glibc": "2.36",
    "cann": "8.2.RC1",
    "driver": "25.2.0",
    "firmware": "7.7.0",
    "package:numpy": "1.26.4",
    "package:yaml": "PyYAML 6.0.3",
    "uncompiled": (),
    "kernel": "5.10.0-60",
    "machine": "aarch64",
    "os": "openEuler 22.03",
    "cpus": 192,
    "cpu_limit": None,
    "memory_limit": None,
    "memory": 1 << 40,
    "memory_free": 1 << 39,
    "open_files": 65536,
    "locked_memory": None,
    "processes": None,
    "time_zone": "+0800",
    "clock_kept": True,
    "shm": True,
    "shm_free": 1 << 36,
    "tmp_free": 1 << 36,
    "folder": True,
    "logs_writable": True,
    "logs_free": 1 << 40,
    "logs_inodes": 1 << 24,
    "logs_place": "nfs 77 1000",
    "more_files": None,
    "data": True,
    "data_entries": 100,
    "firewall": None,
    "busy_ports": (),
    "first_address": "10.0.0.1",
    "mtu": 1500,
    "link_speed": 25000,
    "devices": "0-7",
    "short_of": (),
    "npu_smi": None,
    "ill": (),
    "ailing": (),
    "held": (),
    "hccp": (),
    "generation": "A2",
    "memory_errors": (),
    "hot": (),
    "without_address": (),
    "link_down": (),
    "tls": "0",
    "gpus": None,
    "short_of_gpus": (),
    "gpus_held": (),
    "gpus_hot": (),
    "gpu_driver": None,
    "gpu_memory_errors": (),
    "nvidia_smi": None,
    "table_file": "0123456789ab",
    "table_server": True,
    "table_devices": (),
    "table_addresses": (),
}


def names(number):
    """node0, node1 ..."""
    return [f"node{n}" for n in range(number)]


def answers(number, changes=None):
    """{host: Answer} of so many healthy hosts, with {number of a host: facts that are others there}."""
    return {
        name: Answer(facts={**HEALTHY, "memory_free": (1 << 39) + n, **(changes or {}).get(n, {})})
        for n, name in enumerate(names(number))
    }


def facts_of(said):
    """{host: its facts} of answers."""
    return {host: answer.facts for host, answer in said.items()}
