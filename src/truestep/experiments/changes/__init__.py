"""What an experiment changes in a script, at the seams of torch: one change per file, each undone exactly."""

from __future__ import annotations

from truestep.experiments.changes._aimed import Aimed
from truestep.experiments.changes._change import Change
from truestep.experiments.changes.align_target import AlignTarget
from truestep.experiments.changes.call_module import CallModule
from truestep.experiments.changes.clear_gradients import ClearGradients
from truestep.experiments.changes.clip_first import ClipFirst
from truestep.experiments.changes.clip_held import ClipHeld
from truestep.experiments.changes.clip_in_scale import ClipInScale
from truestep.experiments.changes.copy_state import CopyState
from truestep.experiments.changes.cut_loss import CutLoss
from truestep.experiments.changes.detach_carried import DetachCarried
from truestep.experiments.changes.divide_window import DivideWindow
from truestep.experiments.changes.drop_activation import DropActivation
from truestep.experiments.changes.drop_frozen_gradients import DropFrozenGradients
from truestep.experiments.changes.dropout_by_mode import DropoutByMode
from truestep.experiments.changes.evaluate_in_eval_mode import EvaluateInEvalMode
from truestep.experiments.changes.evaluate_without_grad import EvaluateWithoutGrad
from truestep.experiments.changes.first_batches import FirstBatches
from truestep.experiments.changes.free_graph import FreeGraph
from truestep.experiments.changes.freeze_in_earnest import FreezeInEarnest
from truestep.experiments.changes.full_precision import FullPrecision
from truestep.experiments.changes.hold_all import HoldAll
from truestep.experiments.changes.ignore_padding import IgnorePadding
from truestep.experiments.changes.keep_gradients import KeepGradients
from truestep.experiments.changes.keep_layers import KeepLayers
from truestep.experiments.changes.keep_workers import KeepWorkers
from truestep.experiments.changes.killed import Killed
from truestep.experiments.changes.log_probabilities import LogProbabilities
from truestep.experiments.changes.no_anomaly_mode import NoAnomalyMode
from truestep.experiments.changes.no_dropout import NoDropout
from truestep.experiments.changes.once_per_stream import OncePerStream
from truestep.experiments.changes.own_generators import OwnGenerators
from truestep.experiments.changes.pace_schedule import PaceSchedule
from truestep.experiments.changes.plateau_by_epoch import PlateauByEpoch
from truestep.experiments.changes.random_weights import RandomWeights
from truestep.experiments.changes.restore_train_mode import RestoreTrainMode
from truestep.experiments.changes.resume_auto import ResumeAuto
from truestep.experiments.changes.scaled_rates import ScaledRates
from truestep.experiments.changes.schedule_after_step import ScheduleAfterStep
from truestep.experiments.changes.schedule_once import ScheduleOnce
from truestep.experiments.changes.seeded import Seeded
from truestep.experiments.changes.shuffle_training import ShuffleTraining
from truestep.experiments.changes.softmax_over_classes import SoftmaxOverClasses
from truestep.experiments.changes.step_all import StepAll
from truestep.experiments.changes.step_rest import StepRest
from truestep.experiments.changes.train_with_grad import TrainWithGrad
from truestep.experiments.changes.tuning import TUNINGS
from truestep.experiments.changes.undo_activation import UndoActivation

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
"""Every change by its name."""

REMEDIES: dict[str, str] = {rule: change.name for change in _ALL for rule in change.remedies}
"""Rules whose failure a change mends from outside, each with the name of that change."""

__all__ = ["CHANGES", "REMEDIES", "Aimed", "Change"]
