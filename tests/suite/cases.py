"""Writes one test for a rule with many cases: it checks each case, and its failure names all that break the rule.

  @for_each("path", files)           pytest.mark.parametrize would make one test per path
  def test_a_file_is_short(path):
      assert ...

With parametrize each case is a test that costs time in each worker, before the first test runs.
"""

import contextlib
import functools
import inspect
import time

import pytest

_FAILURES = (Exception, pytest.fail.Exception)


def for_each(names, cases, ids=str):
    """One test of a function with many values for the arguments in `names`, as in parametrize.

    `cases` may be a function that returns the values: then a worker that only lists the tests does not read them.
    A case has its own `tmp_path` and `monkeypatch`; all other fixtures serve all cases.  `ids` makes the name of
    a case.
    """
    names = [name.strip() for name in names.split(",")]

    def one_test(function):
        signature = inspect.signature(function)
        fixtures = [one for name, one in signature.parameters.items() if name not in names]

        @functools.wraps(function)
        def test(**shared):
            __tracebackhide__ = True
            ask_all(function, names, test.cases(), ids, shared)

        test.__signature__ = signature.replace(parameters=fixtures)
        test.cases = cases if callable(cases) else lambda: cases
        return test

    return one_test


def ask_all(function, names, cases, ids, shared):
    """Calls the function with each case; the failure names all cases that failed, and what was wrong."""
    __tracebackhide__ = True
    cases, wrong, skipped, first = list(cases), [], [], None
    assert cases, "there is nothing to ask about"
    for number, case in enumerate(cases):
        values = [case] if len(names) == 1 else case
        assert len(values) == len(names), f"case {number} has not the values of {', '.join(names)}: {case}"
        try:
            with own(shared, number) as fixtures:
                function(**dict(zip(names, values)), **fixtures)
        except pytest.skip.Exception as reason:
            skipped.append(reason)
        except _FAILURES as failure:
            first = first or failure
            wrong.append(f"{ids(case)}: {told(failure)}")
    if wrong:
        raise AssertionError(f"{len(wrong)} of {len(cases)} are wrong:\n" + "\n".join(wrong)) from first
    if skipped:
        raise skipped[0]


@contextlib.contextmanager
def own(shared, number):
    """The fixtures of one case: a folder that no other case has, and changes that end with it."""
    fixtures = dict(shared)
    if "tmp_path" in fixtures:
        fixtures["tmp_path"] /= f"case{number}"
        fixtures["tmp_path"].mkdir()
    with contextlib.ExitStack() as changes:
        if "monkeypatch" in fixtures:
            fixtures["monkeypatch"] = changes.enter_context(pytest.MonkeyPatch.context())
        yield fixtures


def told(failure):
    """The text of a failure; for an error that is not an assertion, also its type and its place."""
    if isinstance(failure, (AssertionError, pytest.fail.Exception)):
        return str(failure)
    last = failure.__traceback__
    while last.tb_next:
        last = last.tb_next
    return f"{type(failure).__name__}: {failure} ({last.tb_frame.f_code.co_filename}:{last.tb_lineno})"


def none(found, remedy=""):
    """Fails with everything that was found, one line per problem; pytest's own message truncates long lists."""
    __tracebackhide__ = True
    found = [str(one) for one in found]
    assert not found, "\n".join([*found, *([remedy] if remedy else [])])


def eventually(condition):
    """Polls until the condition holds, for at most 30 s."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "never came true"
        time.sleep(0.02)
