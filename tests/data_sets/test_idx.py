"""The idx files of the MNIST family."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import DATA

from truestep import data
from truestep.data import idx_files
from truestep.data.pictures.pixels import fits_in_memory
from truestep.errors import BadData

FASHION = DATA / "fashion-mnist"
real = pytest.mark.skipif(not FASHION.is_dir(), reason="no FashionMNIST in TRUESTEP_DATA")


def written(path, values, code=0x08, pack=False):
    values = np.asarray(values)
    big = values.astype(values.dtype.newbyteorder(">"))
    held = bytes([0, 0, code, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + big.tobytes()
    path.write_bytes(gzip.compress(held) if pack else held)
    return path


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, (6, 4, 5), dtype=np.uint8)


@pytest.fixture
def files(tmp_path, pixels):
    written(tmp_path / "train-images-idx3-ubyte.gz", pixels, pack=True)
    written(tmp_path / "train-labels-idx1-ubyte", np.arange(6, dtype=np.uint8) % 3)
    return tmp_path / "train-images", tmp_path / "train-labels"


def test_images_become_numbers_between_0_and_1_with_a_channel(files, pixels):
    made = data.idx(*files)
    x, y = made.tensors
    assert x.shape == (6, 1, 4, 5)
    assert x.dtype == torch.float32
    assert torch.equal(x, torch.from_numpy(pixels).unsqueeze(1) / 255)
    assert y.dtype == torch.int64
    assert y.tolist() == [0, 1, 2, 0, 1, 2]
    assert made.classes == ("0", "1", "2")


def test_they_are_normalised_once_as_torchvision_does(files, pixels):
    x, _ = data.idx(*files, mean=0.286, std=0.353).tensors
    one = torch.from_numpy(pixels[2]).unsqueeze(0).to(torch.float32).div(255)
    assert torch.equal(x[2], one.sub(torch.tensor(0.286)).div(torch.tensor(0.353)))


def test_bytes_kept_for_lack_of_memory_give_the_same_batches(files, monkeypatch):
    indices = torch.tensor([5, 0, 3])
    once = data.idx(*files, mean=0.3, std=0.4)
    monkeypatch.setattr(idx_files, "fits_in_memory", lambda nbytes: False)
    each = data.idx(*files, mean=0.3, std=0.4)
    assert each.nbytes < once.nbytes
    assert torch.equal(each.batch(indices)[0], once.batch(indices)[0])
    assert torch.equal(each.split(2, seed=None)[1].tensors[0], once.tensors[0][2:])


@pytest.mark.skipif(not Path("/proc/meminfo").is_file(), reason="the system does not tell its free memory")
def test_a_few_bytes_fit_and_a_quintillion_does_not():
    assert fits_in_memory(1000)
    assert not fits_in_memory(10**18)


def test_bytes_stay_bytes_where_they_are_asked_for(files, pixels):
    x, _ = data.idx(*files, dtype="uint8").tensors
    assert torch.equal(x[:, 0], torch.from_numpy(pixels))


@pytest.mark.program
def test_half_precision_is_rounded_after_normalising(files):
    exact, half = (data.idx(*files, dtype=dtype, mean=0.3, std=0.4).tensors[0] for dtype in ("float32", "bfloat16"))
    assert torch.equal(exact.to(torch.bfloat16), half)


def test_images_alone_are_one_field(files):
    assert len(data.idx(files[0])[0]) == 1


@pytest.mark.parametrize(
    ("code", "dtype", "wanted"),
    [
        (0x09, "i1", torch.int8),
        (0x0B, "i2", torch.int16),
        (0x0C, "i4", torch.int32),
        (0x0D, "f4", torch.float32),
        (0x0E, "f8", torch.float64),
    ],
)
def test_other_numbers_keep_their_type(tmp_path, code, dtype, wanted):
    values = np.array([[1, -2], [3, 4]], dtype=dtype)
    (x,) = data.idx(written(tmp_path / "v", values, code)).tensors
    assert x.dtype == wanted
    assert x.tolist() == values.tolist()


def test_the_exact_name_wins_over_names_that_begin_so(tmp_path, pixels):
    exact = written(tmp_path / "a", pixels[:2])
    written(tmp_path / "a-idx3-ubyte", pixels)
    assert len(data.idx(exact)) == 2


def test_a_file_beside_its_compressed_form_is_one_file(files, pixels):
    written(files[0].with_name("train-images-idx3-ubyte"), pixels)
    assert len(data.idx(*files)) == 6


def test_several_files_that_begin_so_are_an_error(files, pixels):
    written(files[0].with_name("train-images-small"), pixels)
    with pytest.raises(BadData, match="2 files begin with 'train-images'"):
        data.idx(*files)


def test_a_name_that_only_begins_alike_is_not_taken(tmp_path, pixels):
    written(tmp_path / "trainer-idx3", pixels)
    with pytest.raises(BadData, match="no file begins with 'train'") as caught:
        data.idx(tmp_path / "train")
    assert "trainer-idx3" in caught.value.expected


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(BadData, match="the folder does not exist"):
        data.idx(tmp_path / "nowhere" / "x")


def test_another_number_of_labels_is_an_error(files, pixels):
    written(files[1].with_name("five"), np.zeros(5, dtype=np.uint8))
    with pytest.raises(BadData, match="number of labels differs") as caught:
        data.idx(files[0], files[1].with_name("five"))
    assert caught.value.expected == "expected shape (6,), got (5,)"


def test_a_label_without_a_class_is_named_by_its_index(files):
    with pytest.raises(BadData, match="label 2 has no class") as caught:
        data.idx(*files, classes=["shirt", "shoe"])
    assert caught.value.where == "index 2"


@pytest.mark.parametrize(
    ("damage", "happened"),
    [
        (lambda held: held[:-3], "compressed file is damaged"),
        (lambda held: held[:40] + bytes(8) + held[48:], "compressed file is damaged"),
        (lambda held: gzip.compress(gzip.decompress(held)[:-1]), "truncated"),
        (lambda held: gzip.compress(gzip.decompress(held) + b"\0"), "goes on after its data"),
        (lambda held: gzip.compress(b"\x89PNG" + gzip.decompress(held)), "not an idx file"),
        (lambda held: b"\0\0\x08", "not an idx file"),
        (lambda held: b"\0\0\x08\x03\0\0", "truncated"),
        (lambda held: b"", "not an idx file"),
        (lambda held: b"\0\0\x08\x01" + bytes(4), "holds no samples"),
    ],
)
def test_damaged_files_are_errors_that_name_the_file(files, damage, happened):
    path = files[0].with_name("train-images-idx3-ubyte.gz")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadData, match=happened) as caught:
        data.idx(*files)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("options", "happened"),
    [
        ({"dtype": "int32"}, "dtype must be"),
        ({"dtype": "float23"}, "dtype must be"),
        ({"dtype": "uint8", "mean": 0.5}, "dtype must be floating"),
        ({"mean": (0.1, 0.2)}, "must be one number or"),
        ({"std": 0.0}, "std must be above 0"),
    ],
)
def test_options_that_mean_nothing_are_errors(files, options, happened):
    with pytest.raises(BadData, match=happened):
        data.idx(*files, **options)


@real
def test_fashion_mnist_is_read_whole():
    made = data.idx(FASHION / "t10k-images", FASHION / "t10k-labels")
    x, y = made.tensors
    assert x.shape == (10000, 1, 28, 28)
    assert y.bincount().tolist() == [1000] * 10
    assert round(float(x.mean()), 3) == 0.287
