"""Images in a folder per class, decoded one by one or packed into one file."""

import pickle
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from truestep import data
from truestep.data.pictures import packed
from truestep.errors import BadData, PackageMissing
from truestep.loop.loading.in_memory import in_memory
from truestep.loop.loading.loader import Loader


def noise(seed, height=6, width=8):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "pictures"
    for number, name in enumerate(("cat", "dog")):
        (place / name / "more").mkdir(parents=True)
        for at in range(3):
            Image.fromarray(noise(10 * number + at)).save(place / name / f"{at}.png")
        Image.fromarray(noise(10 * number + 9)).save(place / name / "more" / "9.PNG")
        (place / name / ".DS_Store").write_bytes(b"x")
        (place / name / "notes.txt").write_text("x")
    return place


def test_an_image_is_its_pixels_divided_by_255(folder):
    made = data.images(folder)
    x, y = made[5]
    assert len(made) == 8
    assert torch.equal(x, torch.from_numpy(noise(11)).permute(2, 0, 1) / 255)
    assert x.dtype == torch.float32
    assert int(y) == 1
    assert made.classes == ("cat", "dog")


def test_packed_images_are_the_same_as_decoded_ones(folder, tmp_path):
    options = {"size": 5, "mean": (0.1, 0.2, 0.3), "std": 0.5}
    one = data.images(folder, **options)
    all_ = data.images(folder, **options, pack=tmp_path / "pictures.pack")
    x, y = all_.batch(torch.arange(8))
    assert torch.equal(x, torch.stack([image for image, _ in one]))
    assert torch.equal(y, one.labels)
    assert in_memory(all_) is all_
    assert in_memory(one) is None


def test_a_packed_file_is_used_again_until_an_image_changes(folder, tmp_path, monkeypatch):
    packs = []
    write = packed.write
    monkeypatch.setattr(packed, "write", lambda *args: (packs.append(args[0]), write(*args)))
    pack = tmp_path / "deep" / "pictures.pack"
    for _ in range(2):
        data.images(folder, size=4, pack=pack)
    assert len(packs) == 1
    Image.fromarray(noise(77)).save(folder / "cat" / "0.png")
    made = data.images(folder, size=4, pack=pack)
    assert len(packs) == 2
    assert torch.equal(made[0][0], data.images(folder, size=4)[0][0])
    data.images(folder, size=5, pack=pack)
    data.images(folder, size=5, channels=1, pack=pack)
    data.images(folder, size=5, channels=1, classes=["dog", "cat"], pack=pack)
    assert len(packs) == 5


def test_processes_with_one_number_on_two_hosts_can_pack_at_the_same_time(folder, tmp_path, monkeypatch):
    pack, decoded, packs = tmp_path / "pictures.pack", packed._decoded, []

    def while_another_packs(files, made_of):
        for number, pixels in enumerate(decoded(files, made_of)):
            if number == 3 and not packs:
                packs.append(number)
                data.images(folder, size=4, pack=pack)
            yield pixels

    monkeypatch.setattr(packed, "_decoded", while_another_packs)
    made = data.images(folder, size=4, pack=pack)
    assert packs == [3]
    assert torch.equal(made[0][0], data.images(folder, size=4)[0][0])
    assert [path.name for path in tmp_path.glob("pictures.pack*")] == ["pictures.pack"]


@pytest.mark.parametrize(
    "damage", [lambda held: held[:-20] + packed._MARK, lambda held: held[7:], lambda held: held[:-30] + held[-16:]]
)
def test_a_damaged_packed_file_is_made_again(folder, tmp_path, damage):
    pack = tmp_path / "p"
    whole = data.images(folder, size=4, pack=pack).batch(torch.arange(8))
    pack.write_bytes(damage(pack.read_bytes()))
    again = data.images(folder, size=4, pack=pack).batch(torch.arange(8))
    assert all(torch.equal(one, other) for one, other in zip(whole, again, strict=True))


def test_a_foreign_file_is_not_written_over(folder, tmp_path):
    (tmp_path / "thesis.doc").write_text("three years of work")
    with pytest.raises(BadData, match="a file of another kind"):
        data.images(folder, size=4, pack=tmp_path / "thesis.doc")
    assert (tmp_path / "thesis.doc").read_text() == "three years of work"


def test_a_pack_that_fails_leaves_nothing_behind(folder, tmp_path):
    (folder / "dog" / "2.png").write_bytes(b"no image")
    (tmp_path / "packs").mkdir()
    with pytest.raises(BadData, match="cannot be decoded"):
        data.images(folder, size=4, pack=tmp_path / "packs" / "p")
    assert not list((tmp_path / "packs").iterdir())


def test_images_of_different_sizes_are_packed_with_a_size_only(folder, tmp_path):
    Image.fromarray(noise(1, 9, 9)).save(folder / "dog" / "0.png")
    with pytest.raises(BadData, match="9 by 9 pixels, but the first one is 6 by 8"):
        data.images(folder, pack=tmp_path / "p")
    assert data.images(folder, size=(3, 7), pack=tmp_path / "p")[0][0].shape == (3, 3, 7)


def test_an_image_is_scaled_to_cover_the_size_and_its_middle_is_taken(folder):
    stripes = np.zeros((2, 6, 3), dtype=np.uint8)
    stripes[:, 2:4] = 255
    Image.fromarray(stripes).save(folder / "cat" / "0.png")
    assert float(data.images(folder, size=2)[0][0].min()) == 1.0


def test_grey_images_have_one_channel(folder):
    assert data.images(folder, channels=1)[0][0].shape == (1, 6, 8)


def test_a_photo_is_turned_as_its_camera_says(folder):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(noise(5)).save(folder / "cat" / "0.jpg", exif=exif)
    assert data.images(folder)[0][0].shape == (3, 8, 6)


@pytest.mark.parametrize("mode", ["P", "RGBA", "L", "LA", "1", "CMYK"])
def test_every_mode_becomes_colours(folder, mode):
    path = folder / "cat" / ("0.tif" if mode == "CMYK" else "0.png")
    Image.fromarray(noise(5)).convert("L" if mode == "LA" else mode if mode != "P" else "RGB").convert(mode).save(path)
    assert data.images(folder)[0][0].shape == (3, 6, 8)


def test_a_transparent_palette_gives_no_warning(folder):
    Image.fromarray(noise(5)).convert("P").save(folder / "cat" / "0.png", transparency=bytes(range(200)))
    assert data.images(folder)[0][0].shape == (3, 6, 8)


def test_16_bits_per_channel_are_an_error_and_not_clipped(folder):
    Image.fromarray(np.full((4, 4), 60000, dtype=np.uint16)).save(folder / "cat" / "0.png")
    with pytest.raises(BadData, match="more than 8 bits"):
        data.images(folder, channels=1)[0]


def test_the_transform_gets_one_image_or_a_packed_batch(folder, tmp_path):
    shapes = []

    def noted(x):
        shapes.append(tuple(x.shape))
        return x.mean()[None].expand(x.shape[0])

    data.images(folder, transform=noted)[0]
    data.images(folder, transform=noted, pack=tmp_path / "p").batch(torch.arange(4))
    assert shapes == [(3, 6, 8), (4, 3, 6, 8)]


def test_parts_share_no_image(folder):
    first, second = data.images(folder).split(0.75, seed=0)
    assert (len(first), len(second)) == (6, 2)
    assert not set(first.files) & set(second.files)
    assert all(int(y) == second.labels[at] for at, (_, y) in enumerate(second))


def test_parts_of_a_packed_set_read_the_same_map(folder, tmp_path):
    made = data.images(folder, pack=tmp_path / "p")
    first, second = made.split(6, seed=0)
    seen = torch.cat([first.tensors[0], second.tensors[0]])
    assert sorted(seen.sum((1, 2, 3)).tolist()) == sorted(made.tensors[0].sum((1, 2, 3)).tolist())
    assert first._tensors[0] is made._tensors[0]


def test_classes_can_be_given_for_a_part_that_lacks_one(folder):
    made = data.images(folder, classes=["bird", "cat", "dog"])
    assert made.labels.unique().tolist() == [1, 2]
    assert made.classes == ("bird", "cat", "dog")


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_reads_them_with_workers(folder, workers):
    loader = Loader(data.images(folder), batch_size=3, num_workers=workers)
    assert torch.cat([y for _, y in loader]).tolist() == [0] * 4 + [1] * 4
    loader.close()


def test_an_image_that_cannot_be_decoded_is_named_also_from_a_worker(folder):
    path = folder / "dog" / "1.png"
    path.write_bytes(path.read_bytes()[:100])
    made = data.images(folder)
    with pytest.raises(BadData, match="cannot be decoded") as caught:
        made[5]
    assert caught.value.path == str(path)
    batches = iter(DataLoader(made, batch_size=8, num_workers=1))
    with pytest.raises(BadData, match=r"dog/1\.png"):
        next(batches)
    batches._shutdown_workers()  # at the next search for cycles it would take 5 s


def test_the_error_survives_a_pickle():
    error = BadData("the image cannot be decoded", path="a/b.png", where="index 3", expected="e", remedy="r")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "the image cannot be decoded (a/b.png, index 3)\n  e\n  r"
    assert (again.path, again.where) == ("a/b.png", "index 3")


@pytest.mark.parametrize(
    ("change", "happened"),
    [
        (lambda folder: [path.rename(folder / path.name) for path in (folder / "cat").glob("0.png")], "outside the"),
        (lambda folder: (folder / "bird").mkdir(), "class 'bird' has no images"),
        (lambda folder: folder.rename(folder.with_name("gone")), "the folder does not exist"),
    ],
)
def test_folders_that_are_no_classes_are_errors(folder, change, happened):
    change(folder)
    with pytest.raises(BadData, match=happened):
        data.images(folder)


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(BadData, match="holds no folders"):
        data.images(tmp_path)


def test_a_folder_that_is_no_class_is_an_error(folder):
    with pytest.raises(BadData, match="'dog' is not among the classes"):
        data.images(folder, classes=["cat"])


@pytest.mark.parametrize("options", [{"channels": 4}, {"size": 0}, {"size": (3, 4, 5)}, {"mean": (0.1, 0.2)}])
def test_options_that_mean_nothing_are_errors(folder, options):
    with pytest.raises(BadData):
        data.images(folder, **options)


@pytest.mark.parametrize(
    ("name", "module", "call"),
    [
        ("PIL", "PIL.Image", lambda folder: data.images(folder)),
        ("polars", "polars", lambda folder: data.csv(folder / "table.csv")),
    ],
)
def test_a_missing_package_is_named_with_what_to_install(folder, monkeypatch, name, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(PackageMissing, match=f"needs {name}, which is not installed") as caught:
        call(folder)
    assert caught.value.remedy == "run `pip install 'truestep[data]'`"


def test_describe_names_size_and_classes(folder):
    assert data.images(folder, size=4).describe() == "8 images of 4 by 4 pixels, 3 channels; 2 classes; on disk"
    assert "their own sizes" in data.images(folder).describe()
