"""The pytest plugin: supervised tests fail on silent failures, and others are left alone."""

import subprocess
import sys
import textwrap

import pytest
import torch

import truestep
from truestep.report import render

pytest_plugins = ["pytester"]

TRAINING = """
    import pytest
    import torch

    def fit(clear=True, steps=12):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(16, 4), torch.randn(16, 1)
        for _ in range(steps):
            if clear:
                optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        return model
"""
LINE = 13
"""Of `optimizer.step()`, below an empty first line."""


@pytest.fixture(scope="module", autouse=True)
def _imported_before():
    """Import here what supervision imports later: a run of pytester forgets the modules that it imports."""
    from truestep.supervision.ranks import merge  # noqa: F401

    with pytest.raises(RuntimeError, match="shapes"), truestep.watch() as session:
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.nn.functional.mse_loss(model(torch.zeros(4, 2)), torch.zeros(4, 1)).backward()
        optimizer.step()
        model(torch.zeros(1, 3))
    render(session.stop())


@pytest.fixture
def run(pytester):
    """Run a file of tests in this process; return the result."""

    def run(code, *options):
        pytester.makepyfile(test_training="\n".join(map(textwrap.dedent, (TRAINING, code))))
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", *options)

    return run


def test_a_marked_test_fails_on_a_silent_failure_with_the_report(run):
    done = run(
        """
        @pytest.mark.truestep
        def test_broken():
            fit(clear=False)
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            f"error?missing-zero-grad? test_training.py:{LINE}: optimizer stepped on gradients mixed*",
            '  allow it with @pytest.mark.truestep(allow=("missing-zero-grad",)), if it is on purpose',
            "*- truestep -*",
            "error?missing-zero-grad?: optimizer stepped*",
            f"  --> test_training.py:{LINE}:9",
            "   = help: call `optimizer.zero_grad()`*",
            "1 failure found, *",
            "truestep: 1 test supervised, 1 with findings",
            "FAILED test_training.py::test_broken - Failed: error?missing-zero-grad?*",
        ]
    )


def test_a_clean_test_passes_with_the_weights_of_an_unmarked_one(run):
    done = run(
        """
        weights = []

        def test_unmarked():
            weights.append(fit().weight)

        @pytest.mark.truestep
        def test_marked():
            weights.append(fit().weight)
            torch.rand(1)

        @pytest.mark.truestep
        class TestAgain:
            def test_once_more(self):
                weights.append(fit().weight)

        def test_all_are_equal():
            assert len(weights) == 3
            assert torch.equal(weights[0], weights[1])
            assert torch.equal(weights[0], weights[2])
        """
    )
    done.assert_outcomes(passed=4)
    done.stdout.fnmatch_lines(["truestep: 2 tests supervised, 0 with findings"])


def test_tests_without_the_mark_are_not_supervised(run):
    done = run(
        """
        import truestep.supervision.session

        @pytest.mark.truestep
        def test_marked():
            fit()
            assert truestep.supervision.session.watching()

        def test_unmarked():
            fit(clear=False)
            assert not truestep.supervision.session.watching()
        """
    )
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["truestep: 1 test supervised, 0 with findings"])


@pytest.mark.program
def test_the_option_supervises_all_tests_but_those_that_refuse(run):
    code = """
        import unittest

        def test_broken():
            fit(clear=False)

        def test_healthy():
            fit()

        @pytest.mark.truestep(supervise=False)
        def test_refuses():
            fit(clear=False)

        @pytest.mark.parametrize("steps", [11, 12])
        def test_each(steps):
            fit(clear=False, steps=steps)

        class TestCase(unittest.TestCase):
            def test_in_a_class(self):
                fit(clear=False)
        """
    done = run(code, "--truestep")
    done.assert_outcomes(passed=2, failed=4)
    done.stdout.fnmatch_lines(["truestep: all tests are supervised", "truestep: 5 tests supervised, 4 with findings"])
    run(code).assert_outcomes(passed=6)
    done = run(code, "-p", "no:truestep")
    done.assert_outcomes(passed=6)
    done.stdout.no_fnmatch_line("truestep:*")


@pytest.mark.program
def test_marks_choose_what_fails(run):
    done = run(
        """
        def fit_and_evaluate():
            layers = [torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(8, 3)]
            model = torch.nn.Sequential(*layers)
            x, y = torch.randn(80, 4), torch.randint(3, (80,))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            for epoch in range(3):
                for rows in torch.randperm(60).split(10):
                    optimizer.zero_grad()
                    torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
                    optimizer.step()
                with torch.no_grad():
                    outputs = model(x[60:])
                    correct = (outputs.argmax(1) == y[60:]).sum().item()

        @pytest.mark.truestep
        def test_evaluates_in_train_mode():
            fit_and_evaluate()

        @pytest.mark.truestep(allow=("eval-mode-missing",))
        def test_allowed():
            fit_and_evaluate()

        @pytest.mark.truestep(allow="missing-zero-grad")
        class TestAllowed:
            @pytest.mark.truestep(allow=["eval-mode-missing"])
            def test_both(self):
                fit(clear=False)
                fit_and_evaluate()

            def test_one(self):
                fit_and_evaluate()

        @pytest.mark.truestep(select=("scheduler-never-stepped",), passive=True)
        def test_selected():
            fit(clear=False)
        """
    )
    failed = {line.split()[1] for line in done.outlines if line.startswith("FAILED")}
    assert failed == {
        "test_training.py::test_evaluates_in_train_mode",
        "test_training.py::TestAllowed::test_one",
    }, "\n".join(done.outlines)


@pytest.mark.program
def test_confidence_and_severity_are_bounds(run):
    done = run(
        """
        from dataclasses import replace

        from truestep import supervision
        from truestep.findings import Confidence, Severity

        @pytest.fixture(autouse=True)
        def doubtful(monkeypatch, request):
            changed = request.node.get_closest_marker("changed").kwargs

            def stop(self, how="finished", stop=supervision.Session.stop):
                summary = stop(self, how)
                return replace(summary, findings=tuple(replace(f, **changed) for f in summary.findings))

            monkeypatch.setattr(supervision.Session, "stop", stop)

        changed = pytest.mark.changed
        medium = {"confidence": Confidence.MEDIUM}
        warning = {"severity": Severity.WARNING}

        @changed(**medium)
        @pytest.mark.truestep
        def test_medium_fails(): fit(clear=False)

        @changed(**medium)
        @pytest.mark.truestep(confidence="high")
        def test_medium_passes(): fit(clear=False)

        @changed(confidence=Confidence.LOW)
        @pytest.mark.truestep
        def test_low_passes(): fit(clear=False)

        @changed(**warning)
        @pytest.mark.truestep
        def test_warning_fails(): fit(clear=False)

        @changed(**warning)
        @pytest.mark.truestep(fail_on="error")
        def test_warning_passes(): fit(clear=False)

        @changed(severity=Severity.SPEED)
        @pytest.mark.truestep
        def test_speed_passes(): fit(clear=False)
        """,
        "-W",
        "ignore::pytest.PytestUnknownMarkWarning",
    )
    failed = {line.split()[1].rpartition("::")[2] for line in done.outlines if line.startswith("FAILED")}
    assert failed == {"test_medium_fails", "test_warning_fails"}
    done.assert_outcomes(passed=4, failed=2)


def test_the_fixture_is_the_session_of_the_test(run):
    done = run(
        """
        def test_reads(truestep):
            assert truestep.steps == 0
            fit(steps=5)
            assert truestep.steps == 5
            assert truestep.verdicts["missing-zero-grad"].outcome == "clear"

        def test_fails(truestep):
            fit(clear=False)
            assert [finding.rule for finding in truestep.findings] == ["missing-zero-grad"]

        def test_by_name(request):
            session = request.getfixturevalue("truestep")
            fit(steps=7)
            assert session.steps == 7

        @pytest.mark.truestep(supervise=False)
        def test_refuses(truestep):
            pass
        """
    )
    done.assert_outcomes(passed=2, failed=1, errors=1)
    done.stdout.fnmatch_lines(["*the fixture truestep is requested by a test that is marked with supervise=False"])


def test_objects_of_fixtures_are_observed(run):
    done = run(
        """
        @pytest.fixture
        def parts():
            model = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
            return model, optimizer, schedule

        @pytest.mark.truestep
        def test_never_steps_the_schedule(parts):
            model, optimizer, _ = parts
            for _ in range(40):
                optimizer.zero_grad()
                model(torch.randn(8, 4)).square().mean().backward()
                optimizer.step()
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["error?scheduler-never-stepped?*`schedule` was never stepped*"])


@pytest.mark.program
def test_the_own_failure_of_a_test_stays_first(run):
    code = """
        @pytest.mark.truestep
        def test_own():
            fit(clear=False)
            assert 1 + 1 == 3

        @pytest.mark.truestep
        def test_crash():
            fit()
            torch.nn.Linear(4, 1)(torch.zeros(2, 3))
        """
    done, plain = run(code), run(code, "-p", "no:truestep")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(
        [
            "E       assert (1 + 1) == 3",
            "*- truestep -*",
            "error?missing-zero-grad?: *",
            "*- truestep -*",
            "post-mortem?*",
        ]
    )

    def failures(result):
        listed = result.outlines[
            result.outlines.index("=================================== FAILURES ===================================") :
        ]
        return [line for line in listed if line.startswith(("E ", ">", "test_training.py:", "FAILED"))]

    assert failures(done) == failures(plain)
    assert len(failures(done)) > 5


def test_other_outcomes_stay_as_they_are(run):
    done = run(
        """
        @pytest.mark.truestep
        def test_skips():
            fit(clear=False)
            pytest.skip("in the middle")

        @pytest.mark.truestep
        @pytest.mark.skip
        def test_is_skipped():
            fit(clear=False)

        @pytest.mark.truestep
        @pytest.mark.xfail(strict=True)
        def test_known():
            fit(clear=False)

        @pytest.fixture
        def broken():
            raise OSError("no data")

        @pytest.mark.truestep
        def test_without_setup(broken):
            pass

        @pytest.mark.truestep
        def test_only_predicts():
            torch.nn.Linear(2, 2)(torch.zeros(1, 2))

        def test_nothing_is_left():
            from truestep.supervision.session import watching

            assert not watching()
        """,
        "-rs",
    )
    done.assert_outcomes(passed=2, skipped=2, xfailed=1, errors=1)
    done.stdout.fnmatch_lines(
        [
            "truestep: 2 tests supervised, 1 with findings, 1 without an optimizer step",
            "  test_training.py::test_only_predicts: no backward pass was seen",
            "SKIPPED * in the middle",
        ]
    )


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (
            "alow=()",
            [
                "*BadConfiguration: the mark truestep has no argument alow",
                "  expected one of allow, *",
                "  write allow",
            ],
        ),
        (
            "'eval-mode-missing'",
            ["*the mark truestep got the positional argument 'eval-mode-missing'", "  write names, *"],
        ),
        ("allow=3", ["*allow of the mark truestep is 3", "  expected ids of rules", "  write ids, such as allow=*"]),
        ("allow=('eval-mod-missing',)", ["*UnknownRule: no rule is called*", "  nearest: eval-mode-missing*"]),
        ("confidence='low'", ["*is 'low'", "  expected 'medium' or 'high'", "  write one of these, or leave it out"]),
        ("passive=1", ["*passive of the mark truestep is 1", "  expected True or False"]),
    ],
)
def test_bad_arguments_are_explained(run, mark, expected):
    done = run(
        f"""
        @pytest.mark.truestep({mark})
        def test_marked():
            fit()

        def test_other():
            fit()
        """
    )
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(expected)
    done.stdout.no_fnmatch_line("*During handling of*")


def test_the_configuration_of_the_project_counts(run, pytester):
    pytester.makepyprojecttoml('[tool.truestep]\nignore = ["missing-zero-grad"]\nstop-on = "error"\nformat = "json"\n')
    run(
        """
        def test_ignored(truestep):
            fit(clear=False)
        """
    ).assert_outcomes(passed=1)


@pytest.mark.program
def test_results_of_workers_are_collected(pytester):
    code = """
        @pytest.mark.truestep
        @pytest.mark.parametrize("clear", [False, True, True])
        def test_fit(clear):
            fit(clear)
        """
    pytester.makepyfile(test_training="\n".join(map(textwrap.dedent, (TRAINING, code))))
    done = pytester.runpytest_subprocess("-n", "1", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(
        ["*- truestep -*", "error?missing-zero-grad?:*", "truestep: 3 tests supervised, 1 with findings", "FAILED *"]
    )


def test_the_plugin_imports_pytest_only():
    code = """
import sys, pytest
before = set(sys.modules)
import truestep.pytest_plugin
print({name for name in set(sys.modules) - before if "." not in name or name.startswith("truestep")})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert eval(done.stdout) == {"truestep", "truestep.pytest_plugin"}


@pytest.mark.program
def test_the_suite_of_a_project_without_torch_does_not_import_it(pytester):
    pytester.makepyfile(
        """
        import sys

        def test_sum():
            assert 1 + 1 == 2

        def test_torch_is_not_there():
            assert "torch" not in sys.modules
        """
    )
    done = pytester.runpytest_subprocess("--truestep", "-p", "no:cacheprovider", "-p", "no:xdist")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["truestep: 2 tests supervised, 0 with findings, 2 without an optimizer step"])
