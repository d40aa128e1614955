"""The exception tree. Each error has a description, the expected and the actual value, and one remedy.

TrueStepError
├── UsageError           invalid use of a command or a call (exit code 2)
│   ├── NoSuchScript     missing or unreadable script, or unknown module
│   ├── ScriptSyntaxError
│   ├── TorchMissing     the command needs torch, which is not installed
│   ├── UnknownRule      unknown rule id
│   ├── UnknownTemplate  unknown name of a starter program
│   ├── FileExists       an output file already exists
│   ├── UnwritableFolder
│   ├── BadBaseline      a baseline of lint that is missing or in another format
│   ├── BadConfiguration
│   ├── UnknownPrecision
│   ├── UnknownDevice    unknown device, or one that this machine lacks
│   ├── BadSchedule      invalid argument of a schedule
│   ├── UnboundSchedule  a schedule was stepped before the length of the training was known
│   ├── BadSettings      invalid setting of a run
│   ├── BadPart          a model, an optimizer or another object that does not fit the run
│   ├── UnknownModule    unknown or hidden module of a model
│   ├── ModuleNotCalled  features requested from a module that was not called
│   ├── BadPatch         a replacement activation that does not fit
│   ├── FolderHoldsRun   the folder already holds the checkpoints of another run
│   ├── BadLogValue      a logged value that is not a number
│   ├── BadLoss          invalid loss or loss weight of a step (also a ValueError)
│   ├── MetricMissing    a plateau schedule follows a metric that was not logged
│   ├── BadData          invalid file or argument of a data set
│   │   └── NoSuchSample an index beyond the end of a data set (also an IndexError)
│   ├── PackageMissing   a required package is not installed
│   ├── BadLoader        invalid data set or argument of a loader
│   ├── UnsavableState   state for a checkpoint that cannot be restored from a file
│   ├── BadCheckpoint    a checkpoint that is missing, damaged or from another run
│   ├── KeysDoNotMatch   weights with other names or shapes than the model
│   ├── BadInputs        inputs that do not fit a model, or the preprocessing of its training
│   ├── NotExportable    a model that torch.export cannot record, with the line that stops it
│   ├── FolderInUse      another run is writing into the folder
│   ├── StorageUnavailable   a remote storage could not be read or written when a run started
│   ├── SeveralProcesses a run in one of several processes
│   ├── NoExperiment     the script did not do the thing that an experiment compares (exit code 3)
│   └── BadRecord        an unreadable record
├── ExportDiffers        an exported model with other outputs than the model (exit code 1)
├── LessAccurate         a quantised model that is less accurate than allowed (exit code 1)
├── DiskFull             a checkpoint did not fit on the disk; earlier ones are intact
├── NothingMeasured      a mean was read before its first update
├── OpenWindow           a loop was left in the middle of an accumulation window
├── ScaledGradients      an optimizer was stepped by hand on gradients scaled for fp16
├── WorkerDied           a worker of a loader was killed or timed out
├── RankDoesNotAnswer    a process of a run was killed, ended, or did not come to an operation over all ranks
└── FindingsRaised       `truestep.testing.assert_clean` found a failure (also an AssertionError)
"""

from __future__ import annotations

from pathlib import Path


class TrueStepError(Exception):
    """Base class of all errors that TrueStep raises on purpose.

    Args:
        happened: description of the error, without a full stop.
        expected: "expected ..., got ...", or a fact that begins with its noun; empty if `happened` says it all.
        remedy: one imperative sentence.
    """

    slug = "truestep-error"
    exit_code = 2
    """Exit code of a command that ends with this error."""

    def __init__(self, happened: str, *, expected: str = "", remedy: str = "") -> None:
        self.happened = happened
        self.expected = expected
        self.remedy = remedy
        super().__init__(self.happened)

    def __str__(self) -> str:
        lines = [self.happened, *(f"  {line}" for line in (self.expected, self.remedy) if line)]
        return "\n".join(lines)


class UsageError(TrueStepError):
    """Invalid use of a command or a call: a wrong argument, setting, file or object."""

    slug = "usage"


class NoSuchScript(UsageError):
    """The script or module to run does not exist or is unreadable."""

    slug = "no-such-script"


class ScriptSyntaxError(UsageError):
    """The script is not valid Python."""

    slug = "script-syntax"


class TorchMissing(UsageError):
    """The command needs torch, which cannot be imported."""

    slug = "torch-missing"


class UnknownRule(UsageError):
    """No rule has this id."""

    slug = "unknown-rule"


class UnknownTemplate(UsageError):
    """No template has this name."""

    slug = "unknown-template"


class FileExists(UsageError):
    """An output file already exists."""

    slug = "file-exists"


class UnwritableFolder(UsageError):
    """An output folder or file is not writable."""

    slug = "unwritable-folder"


class BadConfiguration(UsageError):
    """The configuration has an unknown key or an invalid value."""

    slug = "bad-configuration"


class BadBaseline(UsageError):
    """The baseline of `truestep lint` is missing or in another format."""

    slug = "bad-baseline"


class BadSettings(UsageError):
    """A setting of a run is invalid."""

    slug = "bad-settings"


class BadPart(UsageError):
    """A model, an optimizer or another object does not fit the run."""

    slug = "bad-part"


class UnknownModule(UsageError):
    """A model has no module with this name, or hooks on that module are not called."""

    slug = "unknown-module"


class ModuleNotCalled(UsageError):
    """Features were requested from a module that was not called."""

    slug = "module-not-called"


class BadPatch(UsageError):
    """The replacement for an activation is None, or has another shape or type."""

    slug = "bad-patch"


class FolderHoldsRun(UsageError):
    """The folder of a new run already holds the checkpoints of another run."""

    slug = "folder-holds-run"


class BadLogValue(UsageError):
    """A logged value is not a number, a text or a tensor with one element."""

    slug = "bad-log-value"


class BadLoss(UsageError, ValueError):
    """The loss of a step, or the weight of a loss, is invalid."""

    slug = "bad-loss"


class MetricMissing(UsageError):
    """A schedule follows a metric that was not logged in this epoch."""

    slug = "metric-missing"


class NothingMeasured(TrueStepError):
    """A mean was read before its first update."""

    slug = "nothing-measured"


class OpenWindow(TrueStepError):
    """A loop was left in the middle of an accumulation window."""

    slug = "open-window"


class ScaledGradients(TrueStepError):
    """An optimizer was stepped by hand on gradients that still carry the loss scale of fp16."""

    slug = "scaled-gradients"


class BadData(UsageError):
    """A data file or an argument of a data set is invalid.

    Args:
        happened: description of the error, without a full stop.
        path: the file or folder; empty if no file is at fault.
        where: the place in it, such as "line 7" or "index 3"; may be empty.
        expected: "expected ..., got ...", or a fact that begins with its noun; empty if `happened` says it all.
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
    """An index is beyond the end of a data set."""

    slug = "no-such-sample"


class PackageMissing(UsageError):
    """A package required by the call is not installed."""

    slug = "package-missing"


class BadLoader(UsageError):
    """The data set or an argument of a loader is invalid."""

    slug = "bad-loader"


class WorkerDied(TrueStepError):
    """A worker process of a loader was killed or timed out."""

    slug = "worker-died"


class RankDoesNotAnswer(TrueStepError):
    """Another process of the run was killed, has ended, or did not come to an operation over all ranks in time."""

    slug = "rank-does-not-answer"
    exit_code = 1


class UnsavableState(UsageError):
    """State for a checkpoint could not be restored unchanged from a file."""

    slug = "unsavable-state"


class BadCheckpoint(UsageError):
    """A checkpoint or a weights file is missing, damaged or not the requested one."""

    slug = "bad-checkpoint"


class KeysDoNotMatch(UsageError):
    """The names or shapes of saved weights do not match the model."""

    slug = "keys-do-not-match"


class BadInputs(UsageError):
    """The inputs do not fit the model, or the preprocessing that it was trained with."""

    slug = "bad-inputs"


class NotExportable(UsageError):
    """A model cannot be exported; the message has the line that stops it.

    Args:
        happened: description of the error, without a full stop.
        cause: slug of the cause, such as "data-dependent-control-flow".
        expected: the reason that a graph cannot contain it; may be empty.
        remedy: one imperative sentence.
    """

    slug = "not-exportable"

    def __init__(self, happened: str, *, cause: str, expected: str = "", remedy: str = "") -> None:
        self.cause = cause
        super().__init__(f"{happened} [{cause}]", expected=expected, remedy=remedy)


class ExportDiffers(TrueStepError):
    """The outputs of an exported model differ from those of the model by more than the tolerance."""

    slug = "export-differs"
    exit_code = 1


class LessAccurate(TrueStepError):
    """A quantised model is less accurate than the model by more than was allowed."""

    slug = "less-accurate"
    exit_code = 1


class SeveralProcesses(UsageError):
    """A run was created in one of several processes, each of which would train a separate copy."""

    slug = "several-processes"


class FolderInUse(UsageError):
    """Another run is writing into the folder."""

    slug = "folder-in-use"


class StorageUnavailable(UsageError):
    """A remote storage could not be read or written when a run started, or when weights were loaded from it."""

    slug = "storage-unavailable"


class DiskFull(TrueStepError):
    """A checkpoint did not fit on the disk; earlier checkpoints are intact."""

    slug = "disk-full"


class BadRecord(UsageError):
    """The record of a run is unreadable."""

    slug = "bad-record"


class NoExperiment(UsageError):
    """The script did not do the thing that an experiment compares, such as an optimizer step.

    Args:
        happened: description of the error, without a full stop.
        expected: "expected ..., got ...", or a fact that begins with its noun; empty if `happened` says it all.
        remedy: one imperative sentence.
        said: the end of the script's output.
    """

    slug = "no-experiment"
    exit_code = 3

    def __init__(self, happened: str, *, expected: str = "", remedy: str = "", said: str = "") -> None:
        super().__init__(happened, expected=expected, remedy=remedy)
        self.said = said


class BadSchedule(UsageError):
    """An argument of a schedule, or the way it is stepped, is invalid."""

    slug = "bad-schedule"


class UnknownPrecision(UsageError):
    """No precision has this name."""

    slug = "unknown-precision"


class UnknownDevice(UsageError):
    """No device has this name, or this machine lacks the device."""

    slug = "unknown-device"


class UnboundSchedule(UsageError):
    """A schedule was stepped before the length of the training was known."""

    slug = "unbound-schedule"


class FindingsRaised(TrueStepError, AssertionError):
    """The findings differ from those that a test expects."""

    slug = "findings"


class TrueStepWarning(UserWarning):
    """Base class of all warnings that TrueStep gives: a description in one line."""


class SamplesReadAgain(TrueStepWarning):
    """A stream that keeps no state was read again from the beginning, up to the point where the run stopped."""


class InexactResume(TrueStepWarning):
    """A resumed run cannot reproduce the run that was stopped."""


class SplitWindow(TrueStepWarning):
    """The last body of a loop made more micro-steps than the others, so its window was split into two updates."""


class OptimizerNotStepped(TrueStepWarning):
    """An optimizer of a run never updates, or updates without gradients, while others do."""


class NotInCheckpoint(TrueStepWarning):
    """An optimizer trains parameters that are missing from the checkpoints of the run."""


class TraceNotWritten(TrueStepWarning):
    """The trace of a profile could not be written; its tables are available."""


class DigitsLost(TrueStepWarning):
    """Different numbers in a file become equal in float32."""


class UnscaledImages(TrueStepWarning):
    """Images in a file are not bytes and are used unscaled."""


class BrokenCheckpoint(TrueStepWarning):
    """A checkpoint in the folder is damaged: it is kept as it is, and an older one is used."""


class MirrorBehind(TrueStepWarning):
    """Checkpoints on the disk are not in the mirror of the run, since an upload failed."""


class MirrorTaken(TrueStepWarning):
    """Another run has claimed the mirror, and this run no longer copies its checkpoints there."""
