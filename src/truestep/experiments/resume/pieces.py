"""The pieces of state that a training carries from step to step, with their remedies."""

from __future__ import annotations

from dataclasses import dataclass

from truestep.experiments.instruments.state.trace import RANDOM


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of state.

    Attributes:
        name: name in the JSON of the report.
        title: name for people.
        remedy: one imperative sentence, for a program that does not restore it.
        carried: True if it differs before a step only if it was not restored.
        of_optimizer: True if it belongs to a single optimizer.
        explains_loss: True if it can explain a difference in the loss of a step.
    """

    name: str
    title: str
    remedy: str
    carried: bool = False
    of_optimizer: bool = False
    explains_loss: bool = True


PIECES: dict[str, Piece] = {
    piece.name: piece
    for piece in (
        Piece(
            "weights",
            "the weights",
            "save model.state_dict(), and load it with strict=True before the first step",
            carried=True,
            of_optimizer=True,
        ),
        Piece(
            "position",
            "the position in the epoch",
            "save how many batches of the epoch are done, and leave these out; or save at ends of epochs only",
        ),
        Piece(
            "epochs",
            "the count of epochs or steps",
            "save how many epochs are done, and begin the loop there: range(done, epochs)",
        ),
        Piece(
            "order",
            "the order of the data",
            "make it a function of the epoch (sampler.set_epoch(epoch)), or save the state of the loader's generator",
        ),
        Piece(
            "samples",
            "randomness in the data set",
            "derive the random numbers of a sample from the seed, the epoch and its index",
        ),
        Piece(
            "state",
            "the state of the optimizer",
            "save optimizer.state_dict(), and load it after the model was moved to its device",
            carried=True,
            of_optimizer=True,
            explains_loss=False,
        ),
        Piece(
            "settings",
            "the settings of the optimizer",
            "load optimizer.state_dict(), and change groups only after that",
            of_optimizer=True,
            explains_loss=False,
        ),
        Piece(
            "schedules",
            "the schedule",
            "save scheduler.state_dict(), and load it after the schedule is made",
            carried=True,
            explains_loss=False,
        ),
        Piece(
            "rates",
            "the learning rate",
            "compute it from a saved step count, or save the state that it is computed from",
            explains_loss=False,
        ),
        Piece("scalers", "the scale of GradScaler", "save scaler.state_dict(), and load it", carried=True),
        Piece(
            "buffers",
            "buffers of the model",
            "save the whole model.state_dict(): it holds the statistics of BatchNorm, parameters() does not",
            carried=True,
        ),
        Piece(
            "untrained",
            "weights that are not trained",
            "save the state of copies and averages (EMA, best weights, teachers) and of frozen parts",
            carried=True,
            explains_loss=False,
        ),
        Piece(
            "random torch",
            RANDOM["torch"],
            "save torch.get_rng_state(), and restore it right before the loop continues",
        ),
        Piece(
            "random accelerator",
            RANDOM["accelerator"],
            "save torch.cuda.get_rng_state_all(), and restore it right before the loop continues",
        ),
        Piece(
            "random python", RANDOM["python"], "save random.getstate(), and restore it right before the loop continues"
        ),
        Piece(
            "random numpy",
            RANDOM["numpy"],
            "save numpy.random.get_state(), and restore it right before the loop continues",
        ),
        Piece(
            "unseen",
            "state of the script itself",
            "save the other state that the loss or the update reads: data position, counters, hidden states, "
            "generators",
        ),
    )
}
"""All pieces by name, sorted such that a piece can explain the pieces after it."""
