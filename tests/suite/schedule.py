"""What runs where, when several workers share the tests: a worker takes a unit of tests at a time, long ones first."""

from xdist.scheduler import LoadScopeScheduling

_UNIT = 12  # tests of a .bats file
_EACH_ALONE = (
    "tests/python/test_documents.py::test_what_a_page_tells_to_type_works_and_prints_what_it_shows",
    "tests/bats/trainers.bats::",
    "tests/bats/run_cluster.bats::lab: real MindSpore",
)


def units(nodeids):
    """The name of each test's unit, by the test's id.

    A Python file is a unit, because its tests share what they train or build.  Of a .bats file a dozen tests are
    one, so that workers can share a long file.  A page of the documents and a long training are units by themselves.
    """
    found, in_file = {}, {}
    for nodeid in nodeids:
        path = nodeid.partition("::")[0]
        if nodeid.startswith(_EACH_ALONE):
            found[nodeid] = nodeid
        elif path.endswith(".bats"):
            in_file[path] = in_file.get(path, -1) + 1
            found[nodeid] = f"{path} {in_file[path] // _UNIT}"
        else:
            found[nodeid] = path
    return found


class ByUnit(LoadScopeScheduling):
    """xdist's scheduler, which gives a worker all tests of a unit."""

    _units = None

    def _split_scope(self, nodeid):
        if self._units is None:
            self._units = units(self.collection)
        return self._units[nodeid]
