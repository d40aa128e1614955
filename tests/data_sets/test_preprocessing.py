"""The preprocessing of each data set, written as JSON, prepares new files exactly as the set prepared its own."""

import gzip
import json

import numpy
import pytest
import torch
from PIL import Image

from truestep import data
from truestep.data.preprocessing.preparation import preparation_of
from truestep.errors import BadData, BadInputs


def again(dataset):
    """Return the preprocessing after a way through JSON."""
    return preparation_of(json.loads(json.dumps(dataset.preparation.document())))


def idx_bytes(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return head + array.astype("u1").tobytes()


@pytest.fixture
def clothes(tmp_path):
    images = numpy.arange(2 * 5 * 4).reshape(2, 5, 4) * 6
    (tmp_path / "x").write_bytes(gzip.compress(idx_bytes(images)))
    (tmp_path / "y").write_bytes(idx_bytes(numpy.array([1, 0])))
    for at, image in enumerate(images):
        Image.fromarray(image.astype("u1")).save(tmp_path / f"{at}.png")
    return tmp_path, data.idx(tmp_path / "x", tmp_path / "y", mean=0.3, std=0.2, classes=["coat", "shirt"])


def test_pictures_of_an_idx_file(clothes):
    folder, dataset = clothes
    prepared = again(dataset.split(1, seed=None)[1])
    assert prepared.classes == ("coat", "shirt")
    (one,) = prepared.read(folder / "1.png")
    assert torch.equal(one.fields[0], dataset[1][0])
    assert one.source.endswith("1.png")


def test_pictures_of_another_size_or_with_colours_are_refused(clothes):
    folder, dataset = clothes
    Image.new("L", (8, 8)).save(folder / "large.png")
    with pytest.raises(BadInputs, match=r"large.png has 8 x 8 pixels"):
        again(dataset).read(folder / "large.png")
    Image.new("RGB", (4, 5), (9, 9, 9)).save(folder / "grey.png")
    assert len(again(dataset).read(folder / "grey.png")) == 1
    Image.new("RGB", (4, 5), (200, 0, 0)).save(folder / "red.png")
    with pytest.raises(BadInputs, match=r"red\.png has colours"):
        again(dataset).read(folder / "red.png")
    with pytest.raises(BadData):
        again(dataset).read(folder / "absent.png")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [3, None])
def test_pictures_of_a_folder(tmp_path, packed, size):
    for at, name in enumerate(("blue", "red")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        pixels = numpy.random.default_rng(at).integers(0, 255, (4, 6, 3), dtype="u1")
        Image.fromarray(pixels).save(tmp_path / "photos" / name / "1.png")
    pack = tmp_path / "photos.pack" if packed else None
    dataset = data.images(tmp_path / "photos", size=size, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4), pack=pack)
    prepared = again(dataset)
    (one,) = prepared.read(tmp_path / "photos" / "red" / "1.png")
    assert torch.equal(one.fields[0], dataset[1][0])
    assert prepared.document()["order"] == "RGB"


def test_rows_of_a_table(tmp_path):
    rows = ["rooms,place,kind,price", "4,bay,a,10", ",inland,b,20", "6,bay,a,30", "9,inland,b,35"]
    (tmp_path / "train.csv").write_text("\n".join(rows))
    dataset = data.csv(
        tmp_path / "train.csv",
        target="price",
        categorical={"place": "onehot", "kind": "codes"},
        missing={"rooms": "median"},
        standardize=True,
    )
    train, held_out = dataset.split(3, seed=None)
    prepared = again(train)
    assert (prepared.features, prepared.target) == (train.features, "price")
    (tmp_path / "new.csv").write_text("kind,rooms,extra,place\nb,9,1,inland\n\na,,1,bay\n")
    found = prepared.read(tmp_path / "new.csv")
    assert [one.source.rpartition("/")[2] for one in found] == ["new.csv, line 2", "new.csv, line 4"]
    assert torch.equal(found[0].fields[0], held_out[0][0])
    assert torch.equal(found[0].fields[1], held_out[0][1])
    features, codes = prepared.batch(found)
    assert (features.shape, codes.tolist()) == ((2, 3), [[1], [0]])
    (tmp_path / "less.csv").write_text("kind,rooms\na,3\n")
    with pytest.raises(BadInputs, match=r"less.csv has no column 'place'"):
        prepared.read(tmp_path / "less.csv")
    (tmp_path / "odd.csv").write_text("kind,rooms,place\nc,3,bay\n")
    with pytest.raises(BadData, match="'c' is not a known category"):
        prepared.read(tmp_path / "odd.csv")


def test_lines_of_text(tmp_path):
    (tmp_path / "reviews.tsv").write_text("a fine film\tgood\nbad film indeed\tpoor\n")
    dataset = data.text(tmp_path / "reviews.tsv", max_length=2)
    prepared = again(dataset)
    (tmp_path / "new.txt").write_text("a fine film\n\nunheard film\n")
    tokens, lengths = prepared.batch(prepared.read(tmp_path / "new.txt"))
    assert torch.equal(tokens[:1], dataset.batch(torch.tensor([0]))[0])
    assert (tokens[1].tolist()[0], lengths.tolist(), prepared.classes) == (1, [2, 2], ("good", "poor"))
    (tmp_path / "other.txt").write_text("alpha beta\n")
    with pytest.raises(BadInputs, match=r"no word of .*other\.txt is in the vocabulary"):
        prepared.read(tmp_path / "other.txt")
    assert data.text(tmp_path / "reviews.tsv", tokenizer=lambda text: [len(text)]).preparation is None


def test_a_prompt(tmp_path):
    (tmp_path / "abc.txt").write_text("abcabca")
    dataset = data.tokens(tmp_path / "abc.txt", block=3)
    prepared = again(dataset)
    (tmp_path / "new.txt").write_text("cab\n")
    (one,) = prepared.read(tmp_path / "new.txt")
    assert torch.equal(one.fields[0], dataset.encode("cab"))
    assert (prepared.decode(one.fields[0]), prepared.block) == ("cab", 3)
    (tmp_path / "odd.txt").write_text("cax")
    with pytest.raises(BadInputs, match=r"odd\.txt has the character 'x'"):
        prepared.read(tmp_path / "odd.txt")


@pytest.mark.parametrize(
    ("shape", "mean", "std"), [((3,), (1.0, 2.0, 3.0), 2.0), ((1, 2, 2), None, 16), ((2,), 0.5, None)]
)
def test_arrays(tmp_path, shape, mean, std):
    raw = torch.randn(4, *shape)
    dataset = data.tensors(raw, torch.zeros(4), mean=mean, std=std)
    prepared = again(dataset)
    numpy.save(tmp_path / "x.npy", raw.numpy())
    torch.save(raw[1], tmp_path / "x.pt")
    rows = [",".join(map(repr, row)) for row in raw.flatten(1).tolist()]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    assert torch.equal(prepared.batch(prepared.read(tmp_path / "x.npy"))[0], dataset.tensors[0])
    assert torch.equal(prepared.batch(prepared.read(tmp_path / "x.csv"))[0], dataset.tensors[0])
    (one,) = prepared.read(tmp_path / "x.pt")
    assert torch.equal(one.fields[0], dataset[1][0])


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    prepared = again(data.tensors(torch.zeros(4, 3)))
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(BadInputs, match=r"x.csv has samples of shape \(2,\)"):
        prepared.read(tmp_path / "x.csv")
    (tmp_path / "names.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(BadData, match=r"'a' is not a number .*line 1"):
        prepared.read(tmp_path / "names.csv")
    torch.save(torch.tensor([[0.5, 1.0, 2.0]]), tmp_path / "x.pt")
    with pytest.raises(BadInputs, match=r"x\.pt has fractions"):
        again(data.tensors(torch.zeros(4, 3, dtype=torch.int64))).read(tmp_path / "x.pt")
    (tmp_path / "x.bin").write_text("1")
    with pytest.raises(BadData, match="not an array of numbers"):
        prepared.read(tmp_path / "x.bin")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"std": 0.0}, "std must be above 0"), ({"mean": (1.0, 2.0)}, "mean has 2 numbers")],
)
def test_statistics_that_do_not_fit_are_refused(options, said):
    with pytest.raises(BadData, match=said):
        data.tensors(torch.zeros(4, 3), **options)
    with pytest.raises(BadData, match="need floats"):
        data.tensors(torch.zeros(4, 3, dtype=torch.int64), std=2.0)


def test_the_name_of_a_transform_is_kept():
    def doubled(x):
        return 2 * x

    dataset = data.tensors(torch.zeros(4, 3), transform=doubled)
    assert again(dataset).transform.endswith("doubled")


def test_another_kind_is_refused():
    with pytest.raises(BadInputs, match='"sound" is unknown'):
        preparation_of({"kind": "sound"})
    assert preparation_of({"mean": 3}) is None
