"""Defects of files that once went through in silence, or were reported in the words of another library."""

import struct

import pytest
import torch

from truestep import data
from truestep.errors import BadData, DigitsLost, UnscaledImages
from truestep.loop.loading.loader import Loader


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def table(folder, text, **options):
    pytest.importorskip("polars")
    return data.csv(write(folder / "t.csv", text), **options)


class TestTargets:
    def test_one_cell_of_text_among_numbers_is_an_error(self, tmp_path):
        text = "x,price\n" + "".join(f"{n},{n * 3.5}\n" for n in range(50)) + "7,N/A\n"
        with pytest.raises(BadData, match="the target has 'N/A' among 50 numbers") as caught:
            table(tmp_path, text, target="price")
        assert caught.value.where == "line 52, column 'price'"
        assert 'classes="all"' in caught.value.remedy
        assert len(table(tmp_path, text, target="price", null_values=("", "N/A"), missing={"price": "drop"})) == 50
        assert len(table(tmp_path, text, target="price", classes="all").classes) == 51

    def test_text_with_few_numbers_stays_classes(self, tmp_path):
        assert table(tmp_path, "x,c\n1,a\n2,b\n3,7\n", target="c").classes == ("7", "a", "b")

    def test_two_spellings_of_a_class_are_an_error(self, tmp_path):
        with pytest.raises(BadData, match=r"classes '1' and '1\.0' are the same number .*line 3"):
            table(tmp_path, "x,c\n1,1\n2,1.0\n3,2\n", target="c", classes="all")
        made = table(tmp_path, "x,c\n1,1\n2,1.0\n3,2\n", target="c", classes="all", replace={"1.0": "1"})
        assert made.classes == ("1", "2")


class TestDigits:
    @pytest.mark.parametrize(("text", "target"), [("id,b\n16777217,1\n16777216,4\n", "b"),
                                                  ("a,b\n1,16777217\n2,16777216\n", "b")])  # fmt: skip
    def test_numbers_that_become_equal_are_a_warning(self, tmp_path, text, target):
        with pytest.warns(DigitsLost, match=r"2 different numbers above 2\*\*24 become 1 in float32.*16777217.*line 2"):
            table(tmp_path, text, target=target)

    def test_large_numbers_that_stay_different_are_none(self, tmp_path):
        table(tmp_path, "a,b\n1700000000,1\n1800000001,2\n0.1,3\n", target="b")
        table(tmp_path, "id,b\n16777217,1\n16777216,4\n", target="b", standardize=True)
        table(tmp_path, "id,b\n16777217,1\n16777216,4\n", target="b", drop=["id"])


class TestLayout:
    @pytest.mark.parametrize(("separator", "name"), [("\t", "tabs"), (";", "semicolons"), ("|", "bars")])
    def test_another_separator_is_suggested(self, tmp_path, separator, name):
        with pytest.raises(BadData, match=f"line 1 is one cell with {name}") as caught:
            table(tmp_path, f"a{separator}b\n1{separator}2\n", target="b")
        assert caught.value.remedy == f"pass separator={separator!r}"
        assert table(tmp_path, f"a{separator}b\n1{separator}2\n", target="b", separator=separator).features == ("a",)

    def test_lines_that_end_with_a_carriage_return_are_read(self, tmp_path):
        made = table(tmp_path, "a,b\r1,2\r3,4\r", target="b")
        assert made.batch(torch.arange(2))[0].tolist() == [[1.0], [3.0]]
        with pytest.raises(BadData, match="line 3"):
            table(tmp_path, "a,b\r1,2\r3,4,5\r", target="b")

    def test_a_column_without_a_name_can_be_dropped(self, tmp_path):
        text = ",a,b\n0,1,2\n1,3,4\n"
        with pytest.raises(BadData, match="column 1 has no name") as caught:
            table(tmp_path, text, target="b")
        assert 'drop=["column_0"]' in caught.value.remedy
        assert table(tmp_path, text, target="b", drop=["column_0"]).features == ("a",)


class TestLines:
    def test_a_header_is_no_class(self, tmp_path):
        path = write(tmp_path / "x.tsv", "sentence\tlabel\ngood\t1\nbad\t0\n")
        with pytest.raises(BadData, match="line 1 is the only line with the label 'label'") as caught:
            data.text(path)
        assert "header=True" in caught.value.remedy
        made = data.text(path, header=True)
        assert (made.classes, len(made)) == (("0", "1"), 2)

    def test_a_class_of_that_name_is_one(self, tmp_path):
        path = write(tmp_path / "x.tsv", "a\tlabel\nb\tlabel\nc\tother\n")
        assert data.text(path).classes == ("label", "other")

    @pytest.mark.parametrize("label", ["", "  "])
    def test_an_empty_label_is_an_error(self, tmp_path, label):
        with pytest.raises(BadData, match=r"the line has no label .*line 2"):
            data.text(write(tmp_path / "x.tsv", f"c\tneg\nabc\t{label}\n"))


class TestImages:
    def idx(self, path, kind, shape, held):
        sizes = b"".join(struct.pack(">I", size) for size in shape)
        return write(path, struct.pack(">HBB", 0, kind, len(shape)) + sizes + held)

    def test_images_without_pixels_are_an_error(self, tmp_path):
        with pytest.raises(BadData, match=r"no pixels(.|\n)*\(3, 0, 4\)"):
            data.idx(self.idx(tmp_path / "im", 8, (3, 0, 4), b""))

    def test_floats_that_are_not_scaled_are_a_warning(self, tmp_path):
        held = struct.pack(">4f", 0.0, 255.0, 1.0, 2.0)
        with pytest.warns(UnscaledImages, match="float32 up to 255"):
            data.idx(self.idx(tmp_path / "im", 13, (1, 2, 2), held))
        data.idx(self.idx(tmp_path / "im", 13, (1, 2, 2), struct.pack(">4f", 0.0, 0.5, 1.0, 0.25)))

    def test_a_bit_that_flipped_in_a_packed_file_is_seen(self, tmp_path):
        pillow = pytest.importorskip("PIL.Image")
        for name in ("a", "b"):
            (tmp_path / "im" / name).mkdir(parents=True)
            pillow.new("RGB", (8, 8), (10, 20, 30)).save(tmp_path / "im" / name / "x.png")
        pack = tmp_path / "x.pack"
        data.images(tmp_path / "im", pack=pack)
        data.images(tmp_path / "im", pack=pack)
        held = bytearray(pack.read_bytes())
        held[100] ^= 1
        pack.write_bytes(held)
        with pytest.raises(BadData, match="the packed file is damaged"):
            data.images(tmp_path / "im", pack=pack)

    @pytest.mark.parametrize("workers", [0, 1])
    def test_an_error_keeps_its_parts_out_of_a_worker(self, tmp_path, workers):
        pillow = pytest.importorskip("PIL.Image")
        (tmp_path / "im" / "a").mkdir(parents=True)
        pillow.new("RGB", (8, 8)).save(tmp_path / "im" / "a" / "x.png")
        broken = write(tmp_path / "im" / "a" / "y.png", b"<html>")
        with pytest.raises(BadData, match="cannot be decoded") as caught:
            list(Loader(data.images(tmp_path / "im"), batch_size=2, num_workers=workers).epoch(0))
        assert caught.value.path == str(broken)
        assert "Traceback" not in str(caught.value)
        assert caught.value.remedy


def test_an_index_beyond_the_end_is_reported():
    with pytest.raises(IndexError, match="index 5 of 3 samples"):
        data.tensors(torch.arange(3)).batch(torch.tensor([1, 5]))
