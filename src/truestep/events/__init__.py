"""What was seen, and where: the vocabulary between probes and rules.

An event is a past-tense fact about one moment of a training run. Events hold numbers, words and sites, never a
tensor, a module or an optimizer: a recorded stream of them replays to the same findings without torch. Objects are
named by small numbers that the probes give out once ("model 1", "optimizer 2", "parameter 7"); the ``*Met`` and
``*Built`` events say what a number stands for.

Events carry no step number and no time: the stream they stand in does (see `truestep.rules.Progress`). Two equal
moments of two steps are the same object, which is what makes a long run cheap to watch and small to record.
"""

from __future__ import annotations

from truestep.events._active import (
    CheckSkipped,
    PlainStateCompared,
    PlainStateSaved,
    SampleReadAgain,
    SamplesCompared,
    SamplesShared,
)
from truestep.events._backward import (
    AnomalyModeSeen,
    BackwardEnded,
    BroadcastOnTape,
    GradientsRepaired,
    GradientsTaken,
    GraphsChained,
    GraphsKept,
    GraphsRetained,
    LossNotFinite,
    TapeRead,
)
from truestep.events._event import (
    Event,
    Site,
)
from truestep.events._files import (
    CheckpointLoaded,
    CheckpointSaved,
    StateLoaded,
)
from truestep.events._forward import (
    BatchDrawn,
    BatchRead,
    BatchStatisticsTaken,
    ForwardCalledDirectly,
    LoaderEnded,
    LoaderStarted,
    LoaderTimed,
    LossComputed,
    ModelCalled,
    ModeSet,
    OutputsCompared,
    PaddingRead,
    ProbabilitiesRead,
    UnregisteredModuleCalled,
)
from truestep.events._objects import (
    LoaderMet,
    ModelMet,
    OptimizerBuilt,
    ParameterMet,
    ParametersAdded,
    RunEnded,
    RunStarted,
    ScalerBuilt,
    SchedulerBuilt,
)
from truestep.events._steps import (
    FreezeIgnored,
    FrozenStepped,
    GradientScaleRead,
    GradientsClipped,
    GradientsUnscaled,
    GradientsZeroed,
    HandStepped,
    LearningRateRead,
    LossScaled,
    MixtureMeasured,
    OptimizerStepped,
    ParametersUnchanged,
    RowsEqual,
    ScalerStepped,
    ScalerUpdated,
    SchedulerStepped,
    UpdateRounded,
    WindowMeasured,
)

__all__ = [
    "AnomalyModeSeen",
    "BackwardEnded",
    "BatchDrawn",
    "BatchRead",
    "BatchStatisticsTaken",
    "BroadcastOnTape",
    "CheckSkipped",
    "CheckpointLoaded",
    "CheckpointSaved",
    "Event",
    "ForwardCalledDirectly",
    "FreezeIgnored",
    "FrozenStepped",
    "GradientScaleRead",
    "GradientsClipped",
    "GradientsRepaired",
    "GradientsTaken",
    "GradientsUnscaled",
    "GradientsZeroed",
    "GraphsChained",
    "GraphsKept",
    "GraphsRetained",
    "HandStepped",
    "LearningRateRead",
    "LoaderEnded",
    "LoaderMet",
    "LoaderStarted",
    "LoaderTimed",
    "LossComputed",
    "LossNotFinite",
    "LossScaled",
    "MixtureMeasured",
    "ModeSet",
    "ModelCalled",
    "ModelMet",
    "OptimizerBuilt",
    "OptimizerStepped",
    "OutputsCompared",
    "PaddingRead",
    "ParameterMet",
    "ParametersAdded",
    "ParametersUnchanged",
    "PlainStateCompared",
    "PlainStateSaved",
    "ProbabilitiesRead",
    "RowsEqual",
    "RunEnded",
    "RunStarted",
    "SampleReadAgain",
    "SamplesCompared",
    "SamplesShared",
    "ScalerBuilt",
    "ScalerStepped",
    "ScalerUpdated",
    "SchedulerBuilt",
    "SchedulerStepped",
    "Site",
    "StateLoaded",
    "TapeRead",
    "UnregisteredModuleCalled",
    "UpdateRounded",
    "WindowMeasured",
]
