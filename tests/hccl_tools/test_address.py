import socket

import pytest

from hccl_tools.table.address import family, is_one_of


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("10.0.0.1", socket.AF_INET),
        ("fd00::1", socket.AF_INET6),
        ("::ffff:10.0.0.1", socket.AF_INET6),
        *((text, None) for text in ("10.0.0", "010.0.0.1", "10.0.0.1/24", "fe80::1%eth0", "", "\0", "机")),
    ],
)
def test_an_address_is_what_inet_pton_accepts(address, kind):
    assert family(address) == kind


def test_an_address_is_found_in_a_list_in_any_spelling():
    assert is_one_of("fd00::1", "10.0.0.1,fd00:0::1")
    assert not is_one_of("fd00::2", "10.0.0.1,fd00::1") and not is_one_of(None, "10.0.0.1")
