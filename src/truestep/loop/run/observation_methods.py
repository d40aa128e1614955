"""The methods of `Run` for evaluation, logging and debugging. Each one delegates to a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn
from torch.utils.data import DataLoader

if TYPE_CHECKING:
    from truestep.debugging import Features, Inspection, Profile
    from truestep.debugging.feature_hooks import Patch
    from truestep.export import Exported
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader
    from truestep.loop.log.alerts import Alert
    from truestep.loop.log.mean import Mean
    from truestep.loop.position.progress import RunProgress
    from truestep.loop.ranks.strategy import Strategy
    from truestep.loop.run.evaluation import Evaluation
    from truestep.loop.run.inspecting import Inspecting
    from truestep.loop.run.logging import RunLog
    from truestep.loop.run.registry import Parts
    from truestep.loop.run.run_state import RunState
    from truestep.loop.settings.settings import Settings


class ObservationMethods:
    """Evaluation, predictions, the log, alerts and the inside of a step."""

    settings: Settings
    strategy: Strategy
    _parts: Parts
    _progress: RunProgress
    _contents: RunState
    _evaluation: Evaluation
    _log: RunLog
    _inspecting: Inspecting

    def batches(self, loader: Loader | GivenLoader | DataLoader[Any]) -> Iterator[Any]:
        """Yield the batches of a loader on the run's device, in the same order and with the same samples every time."""
        return self._evaluation.batches(loader)

    def evaluate(self, *models: nn.Module, inference_mode: bool = False) -> AbstractContextManager[None]:
        """Return a context with models in eval mode and no gradients; both are restored, for every submodule.

        Args:
            *models: set in eval mode.
            inference_mode: `torch.inference_mode` instead of `torch.no_grad`; its tensors cannot be trained on.

        Raises:
            OpenWindow: gradients of a loop that was left wait for an update.
        """
        return self._evaluation.evaluate(*models, inference_mode=inference_mode)

    def mean(self, name: str) -> Mean:
        """Return an empty mean: a new one, or the existing one of this name, reset.

        It is part of the checkpoints: a mean that a training loop updates continues in a resumed run.

        Args:
            name: name in the log, for example "val_loss".

        Example:
            >>> from truestep import Run
            >>> run = Run(max_steps=1, device="cpu", watch=False)
            >>> loader = run.loader([1.0, 2.0, 6.0], batch_size=2)
            >>> size = run.mean("size")
            >>> for x in run.batches(loader):
            ...     size.update(x.mean(), len(x))
            >>> float(size)
            3.0
        """
        return self._evaluation.mean(name)

    def predict(
        self,
        model: nn.Module,
        loader: Loader | GivenLoader | DataLoader[Any],
        forward: Callable[[Any], Any] | None = None,
        *,
        join: bool = True,
    ) -> Any:
        """Return the outputs of a model for every sample of a loader, in the order of the data set, on the CPU.

        The model is in eval mode, without gradients, in the run's precision; the modes are restored.

        Args:
            model: called with the first field of each batch, or with the batch if it is a tensor.
            loader: without shuffling and `drop_last`.
            forward: called with each batch instead of the model, for other arguments or a part of the output.
            join: return one tensor of shape (samples, ...); False returns a list with the output of each batch.
                Tuples, lists and mappings of tensors are joined part by part.

        Raises:
            BadLoader: its order is not that of the data set, or outputs of batches cannot be joined.

        Example:
            >>> from truestep import Run
            >>> run = Run(device="cpu", watch=False)
            >>> model = run.model(nn.Flatten())
            >>> run.predict(model, run.loader(torch.arange(10.0).reshape(5, 2), batch_size=2)).shape
            torch.Size([5, 2])
        """
        return self._evaluation.predict(model, loader, forward, join=join)

    def export(
        self,
        model: nn.Module,
        loader: Loader | GivenLoader | DataLoader[Any],
        *,
        to: Literal["pt2", "onnx", "aoti", "safetensors"] = "pt2",
        best: bool = False,
        out: str | Path | None = None,
        inputs: Callable[[Any], Any] | None = None,
        factory: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        dynamic: Mapping[str, Sequence[int]] | None = None,
        fixed_batch: bool = False,
        tolerance: float | None = None,
        count: int = 4,
        quantise: Literal["int8"] | None = None,
        most_drop: float | None = None,
        metric: Callable[[Any, Any], Any] | None = None,
    ) -> Exported:
        """Export a model of the run, and compare the export with it in a fresh process.

        Modes, buffers and random states of the model are restored. How to: [export](../../how-to/export.md).

        Args:
            model: a model of the run, or `ema.model`.
            loader: of the validation set: some of its batches are compared, and edge shapes made from them.
            to: "pt2" for torch, "onnx" for runtimes, "aoti" for compiled code, "safetensors" for plain weights.
            best: True for the weights of the best checkpoint, instead of the current ones.
            out: the folder of the export; None for one below the folder of the run.
            inputs: a function from a batch to a tensor, a tuple, or a mapping; None passes the first fields.
            factory, arguments: "module:factory" that builds the model, needed for "safetensors", and its arguments.
            dynamic: free dimensions by input, besides the batch; None for those that differ, and lengths of tokens.
            fixed_batch: True to fix the size of the batch.
            tolerance: largest difference, divided by the largest output; None for 1e-4 in float32, 5e-2 in int8.
            count: batches to compare.
            quantise: "int8" for linear layers in int8 on a CPU, by torchao; accuracy, speed and size are measured.
            most_drop, metric: with int8, largest fall of the accuracy, 0.01 if None; a number for (output, batch).

        Raises:
            NotExportable: the model cannot be exported; the message has the line that stops it.
            ExportDiffers, LessAccurate: of the model, or with int8 by more than allowed; nothing is left in `out`.
            BadInputs: the batches do not fit the model, or it has no linear layer to quantise.
            BadCheckpoint: with `best`, no checkpoint was saved with a metric.
            PackageMissing, SeveralProcesses: a package or a compiler is not installed; several processes train.
        """
        from truestep.export.int8.wanted import wanted
        from truestep.loop.inference.exporting import export_of_run

        self._contents.wait()
        return export_of_run(
            model,
            loader,
            to=to,
            best=best,
            out=out,
            evaluation=self._evaluation,
            parts=self._parts,
            strategy=self.strategy,
            step=self._progress.global_step,
            folder=None if self.settings.out is None else Path(self.settings.out),
            logs=self._log.logs,
            inputs=inputs,
            factory=factory,
            arguments=arguments,
            dynamic=dynamic,
            fixed_batch=fixed_batch,
            tolerance=tolerance,
            count=count,
            quantise=wanted(quantise, most_drop, metric),
        )

    def log(self, values: Mapping[str, Any]) -> None:
        """Write values with step and epoch. Tensors are read later, many in one copy.

        Lines of a training loop also contain the learning rate of the last update and, with clipping, the norm of the
        gradients before it: `lr` and `grad_norm`, or `lr/<name>` and `grad_norm/<name>` with several optimizers. In
        fp16, lines contain the number of skipped steps so far, from the first one on. Values that are passed under
        one of these names have precedence.

        Args:
            values: numbers, strings, tensors of one element, means (`run.mean()`) or metrics, by name.

        Raises:
            BadLogValue: a value of any other type.
        """
        self._log.log(values)

    def stalled(self, name: str, *, patience: int, min_delta: float = 0.0, mode: Literal["min", "max"] = "min") -> bool:
        """Return True if a logged value has stopped improving: early stopping.

            run.log({"val_loss": val_loss})
            if run.stalled("val_loss", patience=5):
                break

        The count is part of the checkpoints. It increases when a value is logged, not when this is called. It includes
        values from the first call on, and the one that was logged before it. NaN does not count as an improvement.

        Args:
            name: name of the value in `run.log()`.
            patience: number of values in a row that are not better than the best one before them.
            min_delta: smallest difference that counts as better.
            mode: "min" if smaller is better, "max" if larger is better.

        Raises:
            BadSettings: an invalid argument.
            MetricMissing: more than `patience` epochs have called this, and no value was ever logged under that name.
        """
        return self._log.stalled(name, patience=patience, min_delta=min_delta, mode=mode)

    @property
    def alerts(self) -> list[Alert]:
        """Alerts so far, in order. Values are read with the lines of the log, so an alert comes a little late.

        How to: [log](../../how-to/logging.md).
        """
        return list(self._log.logs.alerts.found)

    def alert(
        self,
        name: str,
        *,
        rising: int | None = None,
        falling: int | None = None,
        spike: bool = False,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        """Check a logged value for NaN and infinity, and for the given conditions. A second call replaces the first.

        Args:
            name: name of the value in `run.log()`.
            rising: number of times in a row that it rises, by more than its noise: `rising=5` for a diverging loss.
            falling: the same for a value that gets worse by falling.
            spike: True to detect a jump far above the usual level of the last 200 values that lasts.
            above: upper bound of the value.
            below: lower bound of the value.

        Raises:
            BadSettings: an invalid argument.
        """
        conditions = {"rising": rising, "falling": falling, "spike": spike or None, "above": above, "below": below}
        self._log.logs.alerts.set_conditions(name, **conditions)

    def on_alert(self, callback: Callable[[Alert], object]) -> None:
        """Call a function with every alert, as it is raised. An exception in it ends the training.

        Args:
            callback: called with the alert.
        """
        self._log.logs.alerts.callbacks.append(callback)

    def count_flops(self, model: torch.nn.Module, *inputs: Any, **options: Any) -> float:
        """Count the operations of a training step, for the used share of the device's speed (MFU) in the log.

        The forward pass is counted by `torch.utils.flop_counter` on the meta device, where nothing is computed and no
        weight, buffer, mode or random number changes; the backward pass counts twice as much (Kaplan et al., 2020,
        https://arxiv.org/abs/2001.08361, section 2.1). Only matrix products, convolutions and attention count. MFU
        is logged if the peak of the device is known (`truestep.loop.log.flops`); it is that of Chowdhery et al., 2022,
        https://arxiv.org/abs/2204.02311, appendix B.

        Args:
            model: called with the other arguments.
            *inputs: inputs of one batch: tensors with samples as the first dimension.
            **options: keyword arguments of the model.

        Returns:
            Floating-point operations of forward and backward pass for one sample.

        Raises:
            BadPart: the model cannot be called on the meta device.

        Example:
            >>> from truestep import Run
            >>> run = Run(device="cpu", watch=False)
            >>> run.count_flops(torch.nn.Linear(100, 10), torch.ones(8, 100))  # 3 passes, 2 operations, 1000 weights
            6000.0
        """
        return self._log.count_flops(model, inputs, options)

    def inspect(
        self, *models: nn.Module, when: bool = True, updates: bool = True
    ) -> AbstractContextManager[Inspection]:
        """Inspect the step inside: shapes, values, gradients by layer, parameters that the loss reaches, first NaN.

        The step of the run is unchanged: see `truestep.debugging.inspect`.

        Args:
            *models: the models to inspect; by default all models of the run.
            when: False inspects nothing: `with run.inspect(model, when=run.global_step == 100) as seen:`.
            updates: measure the change of the parameters; needs a copy of them in the memory of the CPU.

        Raises:
            BadPart: no model was passed, and the run has none.
        """
        return self._inspecting.inspect(*models, when=when, updates=updates)

    def features(
        self,
        model: nn.Module,
        names: Sequence[str] = (),
        *,
        patch: Mapping[str, Patch] | None = None,
        detach: bool = True,
        every_call: bool = False,
    ) -> AbstractContextManager[Features]:
        """Store the outputs of modules while the context is open, or replace them (patching).

        Args:
            model: any model that is not compiled.
            names: names of modules, as in `model.named_modules()`.
            patch: replacements of outputs by name: a tensor, or a function from the output to another one.
            detach: False keeps the graph, so that a loss on features reaches the model.
            every_call: store the outputs of every call in a list, instead of the last one only.

        Raises:
            UnknownModule: no module has that name, or it is inside torch.compile.
            BadPatch: a replacement does not fit.
        """
        from truestep.debugging import features

        return features(model, names, patch=patch, detach=detach, every_call=every_call)

    def profile(
        self, steps: int = 10, *models: nn.Module, skip: int = 3, **options: Any
    ) -> AbstractContextManager[Profile]:
        """Measure the time of the loops inside by phase, module and operation.

        If the run has a folder, a trace for chrome://tracing and ui.perfetto.dev is written to its subfolder `profile`,
        with the current step in its name. Work between two steps (a checkpoint, the log) is counted as data.

        Args:
            steps: number of bodies of loops to measure, at least 1.
            *models: measured module by module; by default all models of the run.
            skip: number of bodies before them: the first ones compile, allocate and fill caches.
            ****options: arguments of `torch.profiler.profile`, such as record_shapes, with_stack and profile_memory.

        Raises:
            BadSettings: an invalid number of steps.
        """
        return self._inspecting.profile(steps, *models, skip=skip, **options)
