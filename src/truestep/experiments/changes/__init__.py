"""The changes that an experiment applies to a script, at the seams of torch: one per file, each undone exactly.

harness: changes that experiments need for themselves, such as a seed or a kill
remedies: remedies of findings
speedups: speed-ups that `truestep tune` tries
parts: base classes and shared code of changes
"""

from __future__ import annotations

from truestep.experiments.changes.harness.first_batches import FirstBatches
from truestep.experiments.changes.harness.killed import Killed
from truestep.experiments.changes.harness.no_dropout import NoDropout
from truestep.experiments.changes.harness.resume_auto import ResumeAuto
from truestep.experiments.changes.harness.scaled_rates import ScaledRates
from truestep.experiments.changes.harness.seeded import Seeded
from truestep.experiments.changes.parts.aimed import Aimed
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.remedies.align_target import AlignTarget
from truestep.experiments.changes.remedies.call_module import CallModule
from truestep.experiments.changes.remedies.clear_gradients import ClearGradients
from truestep.experiments.changes.remedies.clip_first import ClipFirst
from truestep.experiments.changes.remedies.clip_held import ClipHeld
from truestep.experiments.changes.remedies.clip_in_scale import ClipInScale
from truestep.experiments.changes.remedies.copy_state import CopyState
from truestep.experiments.changes.remedies.cut_loss import CutLoss
from truestep.experiments.changes.remedies.detach_carried import DetachCarried
from truestep.experiments.changes.remedies.divide_window import DivideWindow
from truestep.experiments.changes.remedies.drop_activation import DropActivation
from truestep.experiments.changes.remedies.drop_frozen_gradients import DropFrozenGradients
from truestep.experiments.changes.remedies.dropout_by_mode import DropoutByMode
from truestep.experiments.changes.remedies.evaluate_in_eval_mode import EvaluateInEvalMode
from truestep.experiments.changes.remedies.evaluate_without_grad import EvaluateWithoutGrad
from truestep.experiments.changes.remedies.free_graph import FreeGraph
from truestep.experiments.changes.remedies.freeze_in_earnest import FreezeInEarnest
from truestep.experiments.changes.remedies.full_precision import FullPrecision
from truestep.experiments.changes.remedies.hold_all import HoldAll
from truestep.experiments.changes.remedies.ignore_padding import IgnorePadding
from truestep.experiments.changes.remedies.keep_gradients import KeepGradients
from truestep.experiments.changes.remedies.keep_layers import KeepLayers
from truestep.experiments.changes.remedies.keep_workers import KeepWorkers
from truestep.experiments.changes.remedies.log_probabilities import LogProbabilities
from truestep.experiments.changes.remedies.no_anomaly_mode import NoAnomalyMode
from truestep.experiments.changes.remedies.once_per_stream import OncePerStream
from truestep.experiments.changes.remedies.own_generators import OwnGenerators
from truestep.experiments.changes.remedies.pace_schedule import PaceSchedule
from truestep.experiments.changes.remedies.plateau_by_epoch import PlateauByEpoch
from truestep.experiments.changes.remedies.random_weights import RandomWeights
from truestep.experiments.changes.remedies.restore_train_mode import RestoreTrainMode
from truestep.experiments.changes.remedies.schedule_after_step import ScheduleAfterStep
from truestep.experiments.changes.remedies.schedule_once import ScheduleOnce
from truestep.experiments.changes.remedies.shuffle_training import ShuffleTraining
from truestep.experiments.changes.remedies.softmax_over_classes import SoftmaxOverClasses
from truestep.experiments.changes.remedies.step_all import StepAll
from truestep.experiments.changes.remedies.step_rest import StepRest
from truestep.experiments.changes.remedies.train_with_grad import TrainWithGrad
from truestep.experiments.changes.remedies.undo_activation import UndoActivation
from truestep.experiments.changes.speedups import TUNINGS

_ALL: tuple[type[Change], ...] = (
    AlignTarget,
    CallModule,
    ClearGradients,
    ClipFirst,
    ClipHeld,
    ClipInScale,
    CopyState,
    CutLoss,
    DetachCarried,
    DivideWindow,
    DropActivation,
    DropFrozenGradients,
    DropoutByMode,
    EvaluateInEvalMode,
    EvaluateWithoutGrad,
    FirstBatches,
    FreeGraph,
    FreezeInEarnest,
    FullPrecision,
    HoldAll,
    IgnorePadding,
    KeepGradients,
    KeepLayers,
    KeepWorkers,
    Killed,
    LogProbabilities,
    NoAnomalyMode,
    NoDropout,
    OncePerStream,
    OwnGenerators,
    PaceSchedule,
    PlateauByEpoch,
    RandomWeights,
    RestoreTrainMode,
    ResumeAuto,
    ScaledRates,
    ScheduleAfterStep,
    ScheduleOnce,
    Seeded,
    ShuffleTraining,
    SoftmaxOverClasses,
    StepAll,
    StepRest,
    TrainWithGrad,
    UndoActivation,
    *TUNINGS.values(),
)

CHANGES: dict[str, type[Change]] = {change.name: change for change in _ALL}
"""All changes by name."""

REMEDIES: dict[str, str] = {rule: change.name for change in _ALL for rule in change.remedies}
"""Name of the remedy by rule id, for the rules with a remedy that can be applied from outside."""

__all__ = ["CHANGES", "REMEDIES", "Aimed", "Change"]
