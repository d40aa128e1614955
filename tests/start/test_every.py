"""A test of many cases runs all of them, and names each that fails."""

import pytest
from every import every


def test_each_case_that_fails_is_named():
    met = []

    @every("number", [1, 2, pytest.param(3, id="three"), 4], ids=lambda number: f"case {number}")
    def check(number):
        met.append(number)
        assert number % 2 == 0, f"{number} is odd"

    with pytest.raises(AssertionError) as error:
        check()
    assert str(error.value).splitlines()[:3] == ["2 of 4", "case 1: 1 is odd", "assert (1 % 2) == 0"]
    assert "\nthree: 3 is odd\n" in str(error.value)
    assert "case 2" not in str(error.value)
    assert met == [1, 2, 3, 4]


def test_errors_and_failures_of_pytest_count_too():
    @every("kind", ["raises", "fails", "misses"])
    def check(kind):
        if kind == "raises":
            raise KeyError(kind)
        if kind == "fails":
            pytest.fail("on purpose")
        with pytest.raises(ValueError):
            pass

    with pytest.raises(AssertionError, match=r"(?s)3 of 3\nraises: 'raises'\nfails: on purpose\nmisses: DID NOT RAISE"):
        check()


def test_several_values_make_a_case():
    @every("a, b", [(1, 1), (2, 3)])
    def check(a, b):
        assert a == b

    with pytest.raises(AssertionError, match=r"(?s)1 of 2\n2, 3: assert 2 == 3"):
        check()


def test_no_case_is_an_error():
    @every("a", [])
    def check(a):
        pass

    with pytest.raises(AssertionError, match="at least one case"):
        check()


@every("number", [1, 2])
def test_fixtures_are_given_beside_the_case(number, tmp_path):
    assert tmp_path.is_dir()
    assert number in (1, 2)
