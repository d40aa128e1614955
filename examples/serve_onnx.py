"""Serve an export to ONNX with onnxruntime behind a small ASGI app: requests that arrive together are one call.

    pip install onnxruntime starlette uvicorn numpy
    python serve_onnx.py runs/lab/export/onnx --port 8000
    curl -d '{"inputs": {"x": [[0.1, 0.2, 0.3, 0.4]]}}' localhost:8000/predict

No torch is imported. The shapes, the classes and the preprocessing are those of config.json, beside the model.
"""

import argparse
import asyncio
import contextlib
import json
from pathlib import Path

import numpy as np
import onnxruntime
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

LARGEST_BATCH, WAIT_S, TIMEOUT_S, QUEUE, LARGEST_BODY = 64, 0.002, 2.0, 256, 1 << 20


class Refused(ValueError):
    """A request that does not fit the model."""


class Model:
    """An exported model: a queue of requests, and one task that answers them in batches."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(folder / self.config["file"]), options)
        self.classes = (self.config["preprocessing"] or {}).get("classes", [])
        self.queue: asyncio.Queue = asyncio.Queue(QUEUE)

    def read(self, body: dict) -> list[np.ndarray]:
        """Return the inputs of a request, checked against config.json."""
        names = [each["name"] for each in self.config["inputs"]]
        given = body.get("inputs") if isinstance(body, dict) else None
        if not isinstance(given, dict) or sorted(given) != sorted(names):
            got = ", ".join(given) if isinstance(given, dict) else "none"
            raise Refused(
                f"the body must be JSON with inputs by name: expected {', '.join(names)}, got {got or 'none'}"
            )
        arrays = []
        for each in self.config["inputs"]:
            try:
                array = np.asarray(given[each["name"]], dtype=each["dtype"])
            except (TypeError, ValueError) as error:
                raise Refused(f"input {each['name']!r} must be {each['dtype']} numbers of {each['shape']}") from error
            fits = array.ndim == len(each["shape"]) and all(
                isinstance(size, str) or size == got for size, got in zip(each["shape"], array.shape, strict=True)
            )
            if not fits or not 1 <= len(array) <= LARGEST_BATCH:
                raise Refused(f"input {each['name']!r} must have shape {each['shape']}, got {list(array.shape)}")
            arrays.append(array)
        return arrays

    async def answer(self, arrays: list[np.ndarray]) -> np.ndarray:
        """Return the first output for the inputs of one request."""
        done: asyncio.Future = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((arrays, done))
        return await asyncio.wait_for(done, TIMEOUT_S)

    async def work(self) -> None:
        """Answer requests for ever: those of equal shapes that wait at the same time in one call."""
        while True:
            waiting = [await self.queue.get()]
            await asyncio.sleep(WAIT_S)
            while not self.queue.empty() and sum(len(arrays[0]) for arrays, _ in waiting) < LARGEST_BATCH:
                waiting.append(self.queue.get_nowait())
            groups: dict = {}
            for arrays, done in waiting:
                if not done.done():  # its client still waits
                    groups.setdefault(tuple(array.shape[1:] for array in arrays), []).append((arrays, done))
            for group in groups.values():
                try:
                    joined = [np.concatenate(column) for column in zip(*(arrays for arrays, _ in group), strict=True)]
                    names = [each["name"] for each in self.config["inputs"]]
                    given = dict(zip(names, joined, strict=True))
                    outputs = (await asyncio.to_thread(self.session.run, None, given))[0]
                    ends = np.cumsum([len(arrays[0]) for arrays, _ in group])[:-1]
                    for (_, done), part in zip(group, np.split(outputs, ends), strict=True):
                        if not done.done():
                            done.set_result(part)
                except Exception as error:  # one bad batch must not end the server
                    for _, done in group:
                        if not done.done():
                            done.set_exception(error)


def application(folder: Path, threads: int = 1) -> Starlette:
    """Return the app of an export."""
    model = Model(folder, threads)

    async def predict(request: Request) -> JSONResponse:
        body = await request.body()
        if len(body) > LARGEST_BODY:
            return JSONResponse({"error": f"more than {LARGEST_BODY} bytes"}, 413)
        try:
            outputs = await model.answer(model.read(json.loads(body)))
        except Refused as error:
            return JSONResponse({"error": str(error)}, 400)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            return JSONResponse({"error": f"the body must be JSON: {error}"}, 400)
        except asyncio.QueueFull:
            return JSONResponse({"error": "too many requests wait"}, 503, {"Retry-After": "1"})
        except TimeoutError:
            return JSONResponse({"error": f"no answer within {TIMEOUT_S} s"}, 504)
        answer: dict = {"outputs": outputs.tolist()}
        if model.classes and outputs.ndim == 2 and outputs.shape[1] == len(model.classes):
            shares = np.exp(outputs - outputs.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            answer["labels"] = [model.classes[at] for at in outputs.argmax(axis=1)]
            answer["probabilities"] = shares.max(axis=1).tolist()
        return JSONResponse(answer)

    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"model": model.config["model"]["class"], "waiting": model.queue.qsize()})

    @contextlib.asynccontextmanager
    async def running(_: Starlette):
        task = asyncio.create_task(model.work())
        yield
        task.cancel()

    return Starlette(routes=[Route("/predict", predict, methods=["POST"]), Route("/health", health)], lifespan=running)


if __name__ == "__main__":
    import uvicorn

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    uvicorn.run(application(args.folder, args.threads), port=args.port, timeout_keep_alive=5, limit_concurrency=512)
