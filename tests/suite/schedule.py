"""Distributes the tests among several workers: a worker takes one unit of tests at a time, long ones first."""

import os
import re

from xdist.scheduler import LoadScopeScheduling

_UNIT = 12  # tests of a .bats file
_PAGE = "tests/project/test_documents.py::test_what_a_page_tells_to_type_works_and_prints_what_it_shows"
# they run --help of all commands, and build the site
_OF_COMMANDS = re.compile(r"tests/project/test_(options_page|reference_pages|site|site_on_screens)\.py")
_TRAINING = re.compile(
    r"/(trainers|demo|engines_real)\.bats|\.bats::.*real MindSpore|trainer/test_(ranks|resume|examples)\.py"
)


def units(nodeids):
    """The name of each test's unit, by the test's id.

    A Python file is a unit, because its tests share what they train or build.  A dozen tests of a .bats file are
    one unit, so that workers can share a long file.  A page of the documents and a long training are separate units.
    Python files that need the same preparation are one unit.
    """
    found, in_file = {}, {}
    for nodeid in nodeids:
        path = nodeid.partition("::")[0]
        if nodeid.startswith(_PAGE) or (path.endswith(".bats") and _TRAINING.search(nodeid)):
            found[nodeid] = nodeid
        elif path.endswith(".bats"):
            in_file[path] = in_file.get(path, -1) + 1
            found[nodeid] = f"{path} {in_file[path] // _UNIT}"
        else:
            found[nodeid] = "commands" if _OF_COMMANDS.match(path) else path
    return found


class ByUnit(LoadScopeScheduling):
    """xdist's scheduler, which gives a worker all tests of a unit.

    At most one training per two processors runs at a time.  Each has several ranks, and more trainings at a time slow
    one another down disproportionately.  Meanwhile the other workers take units that mostly wait, so the processors
    are busy from the beginning to the end.
    """

    _units = None

    def _split_scope(self, nodeid):
        if self._units is None:
            self._units = units(self.collection)
        return self._units[nodeid]

    def _assign_work_unit(self, node):
        if self._trainings() >= max(1, len(os.sched_getaffinity(0)) // 2):
            others = (unit for unit in self.workqueue if not _TRAINING.search(unit))
            if (other := next(others, None)) is not None:
                self.workqueue.move_to_end(other, last=False)
        super()._assign_work_unit(node)

    def _trainings(self):
        """The number of training units that workers run or have in their queues."""
        assigned = (unit for units_of_worker in self.assigned_work.values() for unit in units_of_worker.items())
        return sum(1 for name, tests in assigned if _TRAINING.search(name) and not all(tests.values()))
