"""Exactness of accumulation and resuming, next to other frameworks: the right answer, or the distance from it.

Window: ten micro-batches, accumulate 4, SGD with lr 1, each gradient 1. The windows hold 4, 4 and 2 micro-steps, the
mean of each is 1, so the updates add up to 3.

Resume: 40 steps of shuffled batches. A run saves after step 7 and dies in step 8 (`os._exit`); another process resumes
from the checkpoint, as the framework's documentation says. The figure is the largest difference between its weights
and those of an uninterrupted run. In the columns the model has dropout 0.3 ("dropout"), `__getitem__` draws random
numbers ("draws"), or both, with two workers ("all"). Every figure comes from separate processes with the same seed, and
two uninterrupted runs are compared, too: if these already differ, the figure does not apply to resuming.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import tempfile
import traceback
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from _exact_tasks import ACCUMULATE, BATCH, CASES, SAVED_AT, Case, Net, Ones, Training, Weight, sgd

import truestep

RIGHT = 3.0


def our_window() -> float:
    with truestep.Run(max_epochs=1, accumulate=ACCUMULATE) as run:
        loader = run.loader(Ones(), batch_size=1)
        model = run.model(Weight())
        run.optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
        for x in run.train(loader, model):
            run.step(model(x))
    return model.sum_of_updates


def our_resume(training: Training) -> Net:
    resume = "auto" if training.resumes else None
    with truestep.Run(
        out=training.folder / "run", seed=0, max_epochs=1, save_every_n_steps=SAVED_AT, resume=resume
    ) as run:
        loader = run.loader(training.samples(), batch_size=BATCH, shuffle=True, num_workers=training.case.workers)
        model = run.model(training.net())
        run.optimizer(sgd(model))
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                run.step(model(x, y))
    return model


def apart(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call in a separate process; None if that process ends without an answer."""
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_answer, args=(theirs, call, arguments))
    child.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        answer = None
    child.join()
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return answer


def _answer(pipe: Any, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Run the call without its output, and send its result, or the text of its exception."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            answer = call(*arguments)
            os.chdir("/")
    except Exception:
        answer = traceback.format_exc()
    if isinstance(answer, Net):
        answer = (answer.passed, [parameter.tolist() for parameter in answer.parameters()])
    pipe.send(answer)


def difference(one: list[Any], other: list[Any]) -> float:
    """Return the largest difference between two models' weights."""
    pairs = zip(one, other, strict=True)
    found = max((torch.tensor(a) - torch.tensor(b)).abs().max().item() for a, b in pairs)
    if not math.isfinite(found):
        raise RuntimeError("the weights are not finite, so they say nothing")
    return found


def resumed(call: Callable[[Training], Net], case: Case) -> dict[str, float | int | str]:
    """Train without a stop, twice, and with one; return how far the weights are apart."""
    with tempfile.TemporaryDirectory() as root:
        folders = [Path(root, name) for name in ("whole", "again", "stopped")]
        for folder in folders:
            folder.mkdir()
        whole, again = (apart(call, Training(case, folder)) for folder in folders[:2])
        died = apart(call, Training(case, folders[2], dies=True))
        if died is not None:
            raise RuntimeError("the run that was to die did not")
        passed, weights = apart(call, Training(case, folders[2], resumes=True))
        repeat = difference(whole[1], again[1])
        return {"differs": difference(whole[1], weights), "repeat_differs": repeat, "steps_after_resume": passed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of frameworks")
    parser.add_argument("--save", action="store_true", help="write bench/results/exactness.json")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from _peer_exact import PEERS

    rows: list[dict[str, Any]] = []
    print(f"{'':31}{f'window ({RIGHT:g})':>14}  " + "".join(f"{case.name:>16}" for case in CASES))
    for name, (window, resume) in {"TrueStep": (our_window, our_resume), **PEERS}.items():
        if options.only and name not in options.only:
            continue
        row: dict[str, Any] = {"framework": name}
        row["window"] = window if isinstance(window, str) else round(apart(window), 6)
        row["resume"] = resume if isinstance(resume, str) else {case.name: resumed(resume, case) for case in CASES}
        rows.append(row)
        print(_line(row), flush=True)
    if options.save:
        names = ("lightning", "accelerate", "pytorch-ignite", "transformers", "skorch")
        machine = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "threads": 1,
            "versions": {name: version(name) for name in names},
        }
        path = Path(__file__).parent / "results" / "exactness.json"
        path.write_text(json.dumps({"machine": machine, "right": RIGHT, "rows": rows}, indent=1) + "\n")


def _line(row: dict[str, Any]) -> str:
    window, found = row["window"], row["resume"]
    if isinstance(found, str):
        return f"{row['framework']:31}  {found}" + (f"; {window}" if window != found else "")
    cells = ["?" * bool(figure["repeat_differs"]) + f"{figure['differs']:.2g}" for figure in found.values()]
    return f"{row['framework']:31}{window:>14}  " + "".join(f"{cell:>16}" for cell in cells)


if __name__ == "__main__":
    main()
