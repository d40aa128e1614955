"""Files of tensors are of the safetensors format, exact in types and bits, and keep tied weights tied."""

import io

import pytest
import safetensors.torch
import torch
from torch import nn

from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint.disk.tensor_file import fits, read_tensors, write_tensors
from truestep.loop.checkpoint.snapshot import Snapshot

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


def written(path, tensors):
    with path.open("wb") as file:
        write_tensors(file, tensors)
    return path


def as_bytes(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def test_the_bytes_are_those_that_the_library_writes():
    tensors = {"b": torch.randn(3, 2), "a": torch.ones(1, dtype=torch.int8), "c": torch.zeros(5, dtype=torch.float64)}
    file = io.BytesIO()
    write_tensors(file, tensors)
    assert file.getvalue() == safetensors.torch.save(tensors, metadata={"format": "pt"})


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_comes_back_bit_by_bit(tmp_path, dtype):
    raw = torch.randint(0, 2 if dtype is torch.bool else 256, (24,), dtype=torch.uint8)
    tensor = raw.view(dtype) if dtype is not torch.bool else raw.bool()
    assert fits("weight", tensor)
    back = read_tensors(written(tmp_path / "a.safetensors", {"weight": tensor}))["weight"]
    assert back.dtype == dtype
    assert torch.equal(as_bytes(back), as_bytes(tensor))


@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(0), torch.zeros(0, 3), torch.tensor(1.5), torch.randn(4, 6).T, torch.randn(3).expand(2, 3),
     torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last), torch.arange(10.0)[2:5], torch.arange(10.0)[::3]],
    ids=["empty", "empty rows", "scalar", "transposed", "expanded", "channels last", "slice", "strided"],
)  # fmt: skip
def test_every_shape_comes_back(tmp_path, tensor):
    back = read_tensors(written(tmp_path / "a.safetensors", {"weight": tensor, "other": torch.ones(3)}))
    assert torch.equal(back["weight"], tensor)
    assert back["weight"].shape == tensor.shape
    assert torch.equal(back["other"], torch.ones(3))


def test_parts_of_one_storage_are_written_each_by_itself(tmp_path):
    packed = torch.arange(3_000.0)
    parts = {"q": packed[:1000], "k": packed[1000:2000], "both": packed[500:1500]}
    snapshot = Snapshot(copies=False)
    path = written(tmp_path / "a.safetensors", {name: snapshot.take(part) for name, part in parts.items()})
    back = read_tensors(path)
    assert all(torch.equal(back[name], part) for name, part in parts.items())
    assert path.stat().st_size < 3 * 4_000 + 1_000


def test_tied_weights_are_written_once_and_come_back_tied(tmp_path):
    weight = torch.randn(100, 100)
    snapshot = Snapshot(copies=True)
    tensors = {name: snapshot.take(weight) for name in ("encoder", "decoder")}
    path = written(tmp_path / "a.safetensors", tensors)
    back = read_tensors(path)
    assert back["encoder"] is back["decoder"]
    assert torch.equal(back["encoder"], weight)
    assert path.stat().st_size < 41_000


def test_the_library_loads_tied_weights_too(tmp_path):
    def tied():
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        model[1].weight = model[0].weight
        return model

    model, other = tied(), tied()
    snapshot = Snapshot(copies=False)
    tensors = {name: snapshot.take(tensor) for name, tensor in model.state_dict().items()}
    path = written(tmp_path / "a.safetensors", tensors)
    safetensors.torch.load_model(other, path)
    assert all(torch.equal(*pair) for pair in zip(model.parameters(), other.parameters(), strict=True))


def test_empty_tensors_are_not_tied(tmp_path):
    back = read_tensors(written(tmp_path / "a.safetensors", {"a": torch.zeros(0), "b": torch.zeros(0)}))
    assert set(back) == {"a", "b"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("phase", torch.zeros(1, dtype=torch.complex64)),
        ("sparse", torch.eye(2).to_sparse()),
        ("__metadata__", torch.ones(1)),
        ("format", torch.ones(1)),
        ("extra", {"a": 1}),
    ],
)
def test_what_the_format_does_not_hold_does_not_fit(name, value):
    assert not fits(name, value)


@pytest.mark.parametrize("cut", [0, 4, 20, 100])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path, cut):
    path = written(tmp_path / "a.safetensors", {"weight": torch.randn(30)})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(BadCheckpoint, match=r"a\.safetensors"):
        read_tensors(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(BadCheckpoint, match=r"missing\.safetensors"):
        read_tensors(tmp_path / "missing.safetensors")


def test_a_snapshot_stays_as_it_was():
    weight = nn.Parameter(torch.zeros(3))
    taken = Snapshot(copies=True).take(weight)
    weight.data.add_(1)
    assert taken.tolist() == [0, 0, 0]
    assert not taken.requires_grad


COPIED = {
    "large": torch.randn(300, 300),
    "transposed": torch.randn(30, 40).T,
    "channels last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "part": torch.arange(100.0)[10:20],
    "strided": torch.arange(100.0)[::3],
    "expanded": torch.randn(3).expand(4, 3),
    "windows": torch.arange(4.0).as_strided((2, 2), (1, 1)),
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 3),
    "bool": torch.tensor([True, False, True]),
    "bfloat16": torch.randn(7).bfloat16(),
    "float8": torch.randn(7).to(torch.float8_e4m3fn),
    "complex": torch.randn(3, dtype=torch.complex128),
    "uint16": torch.tensor([1, 65535], dtype=torch.uint16),
    "parameter": nn.Parameter(torch.randn(3)),
}


@pytest.mark.parametrize("tensor", COPIED.values(), ids=COPIED)
def test_a_copy_has_the_same_bits_and_nothing_in_common(tensor):
    taken = Snapshot(copies=True).take(tensor)
    assert taken.dtype == tensor.dtype
    assert taken.shape == tensor.shape
    assert torch.equal(as_bytes(taken.detach()), as_bytes(tensor.detach()))
    assert tensor.numel() == 0 or taken.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", ["transposed", "channels last"])
def test_a_copy_lies_in_memory_as_the_tensor_does(name):
    assert Snapshot(copies=True).take(COPIED[name]).stride() == COPIED[name].stride()


def test_without_copies_a_tensor_is_taken_as_it_is_unless_it_is_part_of_a_larger_storage():
    whole = torch.randn(10)
    snapshot = Snapshot(copies=False)
    assert snapshot.take(whole).data_ptr() == whole.data_ptr()
    assert snapshot.take(whole[:5]).untyped_storage().nbytes() == 20
    assert snapshot.bytes == 60


def test_a_snapshot_resolves_conjugation():
    number = torch.tensor([1 + 2j])
    taken = Snapshot(copies=False).take(number.conj())
    assert not taken.is_conj()
    assert taken.tolist() == [1 - 2j]
