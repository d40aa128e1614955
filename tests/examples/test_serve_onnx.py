"""The server of the how-to answers bounded requests on the loopback, in batches, with limits of time and size."""

import asyncio
import importlib.util
import json
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")

PROGRAM = Path(__file__).parents[2] / "examples" / "serve_onnx.py"
WEIGHT = numpy.arange(12, dtype="f4").reshape(4, 3) / 10


@pytest.fixture
def serving():
    spec = importlib.util.spec_from_file_location("serve_onnx", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    """An export: one product of matrices, written without torch."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", kind, ["batch", 4])],
        [helper.make_tensor_value_info("y", kind, ["batch", 3])],
        [onnx.numpy_helper.from_array(WEIGHT, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, tmp_path / "model.onnx")
    config = {
        "file": "model.onnx",
        "model": {"class": "network.Net"},
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}],
        "preprocessing": {"classes": ["a", "b", "c"]},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.fixture
def server(serving, folder):
    """A running server; its address."""
    made = uvicorn.Server(uvicorn.Config(serving.application(folder), port=0, log_level="error", lifespan="on"))
    thread = threading.Thread(target=made.run)
    thread.start()
    ends = time.monotonic() + 60
    while not made.started and time.monotonic() < ends:
        time.sleep(0.01)
    port = made.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    made.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


def ask(address, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(f"{address}/predict", data, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_many_clients_get_their_own_answers(server):
    random = numpy.random.default_rng(0)
    asked = [random.normal(size=(size, 4)).astype("f4") for size in (1, 2, 5) * 40]
    with ThreadPoolExecutor(8) as clients:
        found = list(clients.map(lambda x: ask(server, {"inputs": {"x": x.tolist()}}), asked))
    for x, (status, answer) in zip(asked, found, strict=True):
        assert status == 200
        numpy.testing.assert_allclose(answer["outputs"], x @ WEIGHT, rtol=1e-4, atol=1e-5)
        assert answer["labels"] == ["abc"[at] for at in (x @ WEIGHT).argmax(1)]
        assert all(1 / 3 <= share <= 1 for share in answer["probabilities"])
    with urllib.request.urlopen(f"{server}/health", timeout=30) as answer:
        assert json.load(answer) == {"model": "network.Net", "waiting": 0}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"inputs": {"x": [[1, 2, 3]]}}, 400, "must have shape ['batch', 4], got [1, 3]"),
        ({"inputs": {"x": []}}, 400, "must have shape"),
        ({"inputs": {"x": [[1, 2, 3, "four"]]}}, 400, "must be float32 numbers"),
        ({"inputs": {}}, 400, "expected x, got none"),
        ({"inputs": {"x": [[0, 0, 0, 0]] * 65}}, 400, "must have shape"),
        ({"inputs": {"y": [[1, 2, 3, 4]]}}, 400, "expected x, got y"),
        ([1], 400, "the body must be JSON with inputs by name"),
        (b"no json", 400, "the body must be JSON: Expecting value"),
        (b"[" * ((1 << 20) + 1), 413, "more than 1048576 bytes"),
    ],
)
def test_requests_that_do_not_fit_are_refused(server, body, status, said):
    code, answer = ask(server, body)
    assert code == status
    assert said in answer["error"]


class Session:
    """Counts calls, and waits in each."""

    def __init__(self, seconds):
        self.seconds, self.sizes = seconds, []

    def run(self, _, given):
        time.sleep(self.seconds)
        self.sizes.append(len(given["x"]))
        return [given["x"] @ WEIGHT]


def test_requests_that_wait_together_are_one_call(serving, folder):
    async def ten():
        model = serving.Model(folder)
        model.session = Session(0)
        task = asyncio.create_task(model.work())
        given = [numpy.full((1, 4), at, dtype="f4") for at in range(10)]
        outputs = await asyncio.gather(*(model.answer([x]) for x in given))
        task.cancel()
        return model.session.sizes, outputs

    sizes, outputs = asyncio.run(ten())
    assert sizes == [10]
    assert [float(part[0, 1]) for part in outputs] == pytest.approx([2.2 * at for at in range(10)], rel=1e-4)


def test_a_slow_model_and_a_full_queue_are_errors(serving, folder, monkeypatch):
    monkeypatch.setattr(serving, "TIMEOUT_S", 0.05)
    monkeypatch.setattr(serving, "QUEUE", 2)

    async def slow():
        model = serving.Model(folder)
        model.session = Session(0.3)
        one = [numpy.ones((1, 4), dtype="f4")]
        waiting = [asyncio.create_task(model.answer(one)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(asyncio.QueueFull):
            await model.answer(one)
        task = asyncio.create_task(model.work())
        results = await asyncio.gather(*waiting, return_exceptions=True)
        task.cancel()
        return results

    assert [type(result) for result in asyncio.run(slow())] == [TimeoutError, TimeoutError]
