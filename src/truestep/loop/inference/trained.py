"""`Trained`: a model with its weights, preprocessing and settings from a checkpoint, and its predictions for files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from truestep.data.preprocessing.preparation import Preparation, Prepared, name_of, preparation_of
from truestep.errors import BadCheckpoint, BadInputs
from truestep.export.calls import call_from
from truestep.loop.checkpoint.listing import find
from truestep.loop.checkpoint.weights import load_weights
from truestep.loop.inference.answers import Answer, answers
from truestep.loop.inference.record import record_of
from truestep.loop.process.device import pick, to_device
from truestep.model.boundary import WithPostMortem
from truestep.model.modes import evaluating

Model = TypeVar("Model", bound=nn.Module)


class Trained:
    """A trained model: weights, preprocessing and settings from a checkpoint, for predictions.

        trained = ts.Trained("runs/images")
        for answer in trained.predict(Net(), ["shirt.png", "coat.png"]):
            print(answer)  # shirt.png: shirt 92.1%, coat 5.2%, pullover 1.9%

    Args:
        path: a checkpoint, or a run: its best checkpoint, or the newest one if none was saved with a metric.
        device: "auto", "cpu", "cuda", "mps".

    Attributes:
        checkpoint: the checkpoint.
        settings: settings of the run, by name; {} if the checkpoint was copied without them.
        preprocessing: values that the user gave to `run.keep_preprocessing()`, or the description of the data set's.

    Raises:
        BadCheckpoint: the checkpoint is missing or damaged.
        UnknownDevice: this machine has no such device.
    """

    def __init__(self, path: str | Path | None, *, device: str = "auto") -> None:
        if path is None:
            raise BadCheckpoint(
                "no folder of a run was given",
                expected="expected a checkpoint or a run, got None",
                remedy="pass the folder of the run, as out= of its settings",
            )
        self.checkpoint = _best_or_newest(Path(path))
        self.device = pick(device)
        record = record_of(self.checkpoint)
        self.settings: dict[str, Any] = record.settings
        self.preprocessing: dict[str, Any] = record.preprocessing or {}
        self._preparation = None if record.preprocessing is None else preparation_of(record.preprocessing)

    @property
    def preparation(self) -> Preparation:
        """The preprocessing, which reads files: `features`, `vocab`, `encode` and the like are those of the training.

        Raises:
            BadInputs: the checkpoint has none that can read files.
        """
        if self._preparation is None:
            kept = ", ".join(self.preprocessing) or "none"
            raise BadInputs(
                f"the checkpoint {self.checkpoint.path} has no preprocessing that reads files",
                expected=f"expected that of a data set of truestep.data, got {kept}",
                remedy="train with a data set of truestep.data, or prepare tensors with `trained.preprocessing`",
            )
        return self._preparation

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes of the training; empty without classes."""
        return tuple(self.preprocessing.get("classes", ()))

    def load(self, model: Model, name: str | None = None) -> Model:
        """Load the weights into a model; return it in eval mode, on the device, without gradients.

        Args:
            model: a new model, as the training built it.
            name: its name in the checkpoint, such as "ema"; None for the first; averages come later.

        Raises:
            KeysDoNotMatch: the model differs from that of the checkpoint.
        """
        load_weights(model, self.checkpoint, name=name or self.checkpoint.models[0])
        return model.to(self.device).eval().requires_grad_(False)

    def predict(
        self,
        model: nn.Module,
        files: Iterable[str | Path],
        *,
        name: str | None = None,
        batch_size: int = 256,
        transform: Callable[[Any], Any] | None = None,
        outputs: Callable[[Any], torch.Tensor] | None = None,
    ) -> Iterator[Answer]:
        """Yield the predictions for the inputs in files, prepared like those of the training.

        The weights are loaded into the model. It is called with the fields that `forward` requires, in eval mode and
        without gradients; modes are restored.

        Args:
            model: a new model, as the training built it.
            files: images, tables, texts or arrays, as the training read them.
            name: name of the model in the checkpoint, such as "ema".
            batch_size: inputs in a call of the model.
            transform: the function that the data set of the training was read with as `transform=`, if it was.
            outputs: a function from the result of the model to one tensor.

        Raises:
            BadInputs: a file does not fit the preprocessing, or the model does not fit the inputs.
            BadData: a file is missing or damaged.
            KeysDoNotMatch: the model differs from that of the checkpoint.
        """
        preparation = self.preparation
        self._check_transform(transform)
        self.load(model, name)
        waiting: list[Prepared] = []
        for path in files:
            for one in preparation.read(Path(path)):
                waiting.append(one)
                if len(waiting) == batch_size:
                    yield from self._answered(model, waiting, transform, outputs)
                    waiting = []
        if waiting:
            yield from self._answered(model, waiting, transform, outputs)

    def _answered(
        self,
        model: nn.Module,
        prepared: list[Prepared],
        transform: Callable[[Any], Any] | None,
        outputs: Callable[[Any], torch.Tensor] | None,
    ) -> list[Answer]:
        fields = to_device(self.preparation.batch(prepared), self.device)
        if transform is not None:
            fields = (transform(fields[0]), *fields[1:])
        call = call_from(model, fields)
        with WithPostMortem(evaluating(model)):
            made = model(*call.args, **call.kwargs)
        result = outputs(made) if outputs is not None else made
        if not isinstance(result, torch.Tensor):
            raise BadInputs(
                f"the model returns a {type(result).__name__}",
                expected="expected a tensor with an output for each input",
                remedy="pass outputs=, a function from the result of the model to one tensor",
            )
        return answers([one.source for one in prepared], result, self.classes)

    def _check_transform(self, transform: Callable[[Any], Any] | None) -> None:
        """Raise an error if the transform of the data set is not the one of the training."""
        wanted, given = self.preprocessing.get("transform", ""), name_of(transform)
        if wanted != given:
            raise BadInputs(
                f"the data set of the training had {f'transform={wanted}' if wanted else 'no transform'}",
                expected=f"expected {wanted or 'none'}, got {given or 'none'}",
                remedy=f"pass transform={wanted}" if wanted else "leave transform= out",
            )


def _best_or_newest(path: Path) -> Any:
    """Return the checkpoint at a path; of a run, the best one if there is one."""
    if (path / "checkpoints").is_dir():
        try:
            return find(path / "best")
        except BadCheckpoint:
            return find(path)
    return find(path)
