"""What runs where, when several workers share the tests: a worker takes a unit of tests at a time, long ones first."""

from xdist.scheduler import LoadScopeScheduling

_UNIT = 12  # tests of a .bats file
_EACH_ALONE = "test_what_a_page_tells_to_type_works_and_prints_what_it_shows"


def units(nodeids):
    """The name of each test's unit, by the test's id.

    A Python file is a unit, because its tests share what they train or build; each page of the documents is one.  Of a
    .bats file so many tests are one that two workers can share a long file.
    """
    found, in_file = {}, {}
    for nodeid in nodeids:
        path, _, name = nodeid.partition("::")
        if path.endswith(".bats"):
            in_file[path] = in_file.get(path, -1) + 1
            found[nodeid] = f"{path} {in_file[path] // _UNIT}"
        else:
            found[nodeid] = nodeid if name.startswith(_EACH_ALONE) else path
    return found


class ByUnit(LoadScopeScheduling):
    """xdist's scheduler, which gives a worker all tests of a unit."""

    _units = None

    def _split_scope(self, nodeid):
        if self._units is None:
            self._units = units(self.collection)
        return self._units[nodeid]
