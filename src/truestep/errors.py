"""The exception tree. Each error says what happened, what was expected and got, and one remedy.

TrueStepError
├── UsageError          a command or a call was given something it cannot use (exit code 2)
│   ├── NoSuchScript    unreadable or missing script, or no such module
│   ├── ScriptSyntaxError
│   ├── TorchMissing    the command needs torch and it is not installed
│   ├── UnknownRule     no rule of that name
│   ├── UnknownTemplate no program of that name to begin with
│   ├── FileExists      a file that was to be written is there already
│   ├── UnwritableFolder
│   ├── BadConfiguration
│   ├── UnknownPrecision
│   ├── UnknownDevice   no such device, or none here
│   ├── BadSchedule     an argument of a schedule that means nothing
│   ├── UnboundSchedule a schedule was stepped before it knew how long the training is
│   ├── BadSettings     a setting of a run that means nothing
│   ├── BadPart         a model, an optimizer or an object that does not fit the run
│   ├── UnknownModule   a model has no module of that name, or it is hidden
│   ├── ModuleNotCalled the features of a module that was not called
│   ├── BadPatch        what was to replace an activation does not fit
│   ├── FolderHoldsRun  the folder holds the checkpoints of another run
│   ├── BadLogValue     what was logged is no number
│   ├── BadLoss         a loss or its weight that a step cannot use (a ValueError too)
│   ├── MetricMissing   a plateau schedule follows a value that was not logged
│   ├── BadData         a file or an argument of a data set that cannot be used
│   │   └── NoSuchSample an index beyond the end of a data set (an IndexError too)
│   ├── PackageMissing  a package that the call needs is not installed
│   ├── BadLoader       a data set or an argument that a loader cannot use
│   ├── UnsavableState  a checkpoint was to hold what does not come back from a file
│   ├── BadCheckpoint   a checkpoint that is missing, damaged or of another run
│   ├── KeysDoNotMatch  weights whose names or shapes are not those of the model
│   ├── FolderInUse     another run is writing into the folder
│   ├── SeveralProcesses a run in one of several processes
│   ├── NoExperiment    a script did not do what an experiment compares (exit code 3)
│   └── BadRecord       a record that cannot be read
├── DiskFull            a checkpoint did not fit on the disk; earlier ones are untouched
├── NothingMeasured a mean was read before anything was added to it
├── OpenWindow          a loop was left in the middle of a window of accumulation
├── ScaledGradients     an optimizer was stepped by hand on gradients in the scale of fp16
├── WorkerDied          a worker of a loader was killed or did not answer
└── FindingsRaised      `truestep.testing.assert_clean` found something (an AssertionError too)
"""

from __future__ import annotations

from pathlib import Path


class TrueStepError(Exception):
    """The root of all errors raised on purpose.

    Args:
        happened: what happened, without a full stop.
        expected: what was expected and what was got; may be empty.
        remedy: one imperative sentence.
    """

    slug = "truestep-error"
    exit_code = 2
    """Of a command that ends with it."""

    def __init__(self, happened: str, *, expected: str = "", remedy: str = "") -> None:
        self.happened = happened
        self.expected = expected
        self.remedy = remedy
        super().__init__(self.happened)

    def __str__(self) -> str:
        lines = [self.happened, *(f"  {line}" for line in (self.expected, self.remedy) if line)]
        return "\n".join(lines)


class UsageError(TrueStepError):
    """A command or a call was given something it cannot use."""

    slug = "usage"


class NoSuchScript(UsageError):
    """The script or module to run cannot be found or read."""

    slug = "no-such-script"


class ScriptSyntaxError(UsageError):
    """The script is not valid Python."""

    slug = "script-syntax"


class TorchMissing(UsageError):
    """The command needs torch, and it cannot be imported."""

    slug = "torch-missing"


class UnknownRule(UsageError):
    """There is no rule of that name."""

    slug = "unknown-rule"


class UnknownTemplate(UsageError):
    """There is no template of that name."""

    slug = "unknown-template"


class FileExists(UsageError):
    """A file that was to be written is there already."""

    slug = "file-exists"


class UnwritableFolder(UsageError):
    """A folder or file for output cannot be written."""

    slug = "unwritable-folder"


class BadConfiguration(UsageError):
    """The configuration holds a key or a value that means nothing."""

    slug = "bad-configuration"


class BadSettings(UsageError):
    """A setting of a run means nothing."""

    slug = "bad-settings"


class BadPart(UsageError):
    """A model, an optimizer or another object does not fit the run."""

    slug = "bad-part"


class UnknownModule(UsageError):
    """A model has no module of that name, or hooks on it are not called."""

    slug = "unknown-module"


class ModuleNotCalled(UsageError):
    """The features of a module were asked for that was not called."""

    slug = "module-not-called"


class BadPatch(UsageError):
    """What was to replace an activation does not fit into its place."""

    slug = "bad-patch"


class FolderHoldsRun(UsageError):
    """The folder of a new run holds the checkpoints of another one."""

    slug = "folder-holds-run"


class BadLogValue(UsageError):
    """A logged value is no number, no text and no tensor of one element."""

    slug = "bad-log-value"


class BadLoss(UsageError, ValueError):
    """A step was given a loss, or the weight of one, that it cannot use."""

    slug = "bad-loss"


class MetricMissing(UsageError):
    """A schedule follows a value that was not logged in this epoch."""

    slug = "metric-missing"


class NothingMeasured(TrueStepError):
    """A mean was read before anything was added to it."""

    slug = "nothing-measured"


class OpenWindow(TrueStepError):
    """A loop was left in the middle of a window of accumulation."""

    slug = "open-window"


class ScaledGradients(TrueStepError):
    """An optimizer was stepped by hand on gradients that carry the scale of fp16."""

    slug = "scaled-gradients"


class BadData(UsageError):
    """A file of data, or what a data set is to be made of, cannot be used.

    Args:
        happened: what happened, without a full stop.
        path: the file or folder; empty where no file is to blame.
        where: the place in it, such as "line 7" or "index 3"; may be empty.
        expected: what was expected and what was got; may be empty.
        remedy: one imperative sentence.
    """

    slug = "bad-data"

    def __init__(
        self, happened: str, *, path: str | Path = "", where: str = "", expected: str = "", remedy: str = ""
    ) -> None:
        self.path = str(path)
        self.where = where
        place = ", ".join(part for part in (self.path, where) if part)
        super().__init__(f"{happened} ({place})" if place else happened, expected=expected, remedy=remedy)


class NoSuchSample(BadData, IndexError):
    """An index lies beyond the end of a data set."""

    slug = "no-such-sample"


class PackageMissing(UsageError):
    """A package that the call needs is not installed."""

    slug = "package-missing"


class BadLoader(UsageError):
    """A loader was given a data set or an argument it cannot use."""

    slug = "bad-loader"


class WorkerDied(TrueStepError):
    """A worker of a loader was killed, or did not answer in time."""

    slug = "worker-died"


class UnsavableState(UsageError):
    """A checkpoint was to hold something that does not come back from a file as what it was."""

    slug = "unsavable-state"


class BadCheckpoint(UsageError):
    """A checkpoint or a file of weights is missing, damaged or not what was asked for."""

    slug = "bad-checkpoint"


class KeysDoNotMatch(UsageError):
    """The names or shapes of saved weights are not those of the model."""

    slug = "keys-do-not-match"


class SeveralProcesses(UsageError):
    """A run was made in one of several processes, each of which would train a copy of its own."""

    slug = "several-processes"


class FolderInUse(UsageError):
    """Another run is writing into the folder."""

    slug = "folder-in-use"


class DiskFull(TrueStepError):
    """A checkpoint did not fit on the disk; those before it are untouched."""

    slug = "disk-full"


class BadRecord(UsageError):
    """A record of a run cannot be read."""

    slug = "bad-record"


class NoExperiment(UsageError):
    """A script did not do what an experiment compares.

    Args:
        said: the end of what it wrote.
    """

    slug = "no-experiment"
    exit_code = 3

    def __init__(self, happened: str, *, expected: str = "", remedy: str = "", said: str = "") -> None:
        super().__init__(happened, expected=expected, remedy=remedy)
        self.said = said


class BadSchedule(UsageError):
    """An argument of a schedule, or how it is to be stepped, means nothing."""

    slug = "bad-schedule"


class UnknownPrecision(UsageError):
    """There is no precision of that name."""

    slug = "unknown-precision"


class UnknownDevice(UsageError):
    """There is no device of that name, or none on this machine."""

    slug = "unknown-device"


class UnboundSchedule(UsageError):
    """A schedule was stepped before it knew how long the training is."""

    slug = "unbound-schedule"


class FindingsRaised(TrueStepError, AssertionError):
    """A test asked for other findings than there were."""

    slug = "findings"


class TrueStepWarning(UserWarning):
    """The root of all warnings given on purpose: what happened, in one line."""


class SamplesReadAgain(TrueStepWarning):
    """A stream without a state of its own was read from its beginning to get to where a run stopped."""


class InexactResume(TrueStepWarning):
    """A resumed run cannot repeat the one that was stopped."""


class SplitWindow(TrueStepWarning):
    """Micro-steps of the last body of a loop came after the update of its window, and made another one."""


class OptimizerNotStepped(TrueStepWarning):
    """An optimizer of a run never updates, or updates without a gradient, while others do."""


class NotInCheckpoint(TrueStepWarning):
    """An optimizer trains parameters that no checkpoint of the run would hold."""


class TraceNotWritten(TrueStepWarning):
    """The trace of a profile could not be written; its tables are there."""


class DigitsLost(TrueStepWarning):
    """Different numbers of a file are the same in float32."""


class UnscaledImages(TrueStepWarning):
    """Images of a file are no bytes, and are taken as they are."""


class BrokenCheckpoint(TrueStepWarning):
    """A checkpoint in the folder is damaged; it is left alone, and an older one is taken."""
