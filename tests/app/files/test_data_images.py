"""Folders of images: sizes, kinds of pixels, order, and files that are none."""

import warnings

import numpy as np
import pytest
from PIL import Image

from mercer.app.files.images import ENDINGS, read_images
from mercer.exceptions import DataFileError, DataWarning, InvalidParameterError

RANDOM = np.random.default_rng(0)


def shades(height=6, width=5):
    return RANDOM.integers(0, 256, size=(height, width), dtype=np.uint8)


def colors(height=6, width=5):
    return RANDOM.integers(0, 256, size=(height, width, 3), dtype=np.uint8)


def put(folder, name, pixels, **options):
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


def test_grey_images_of_one_size_stay_as_they_are(tmp_path):
    arrays = {name: shades() for name in ("b.png", "a.bmp", "sub/deep/c.TIF", "B.png", "a.tiff", "d.webp")}
    for name, pixels in arrays.items():
        put(tmp_path, name, pixels, **({"lossless": True} if name.endswith("webp") else {}))
    # WebP has no grey: with it all images have three colors.
    found = read_images(tmp_path)
    assert found.names == ("B.png", "a.bmp", "a.tiff", "b.png", "d.webp", "sub/deep/c.TIF")
    assert found.shape == (6, 5, 3)
    (tmp_path / "d.webp").unlink()
    found = read_images(str(tmp_path))
    assert found.shape == (6, 5)
    assert found.X.shape == (5, 6, 5)
    assert found.X.dtype == np.float32
    for x, name in zip(found.X, found.names, strict=True):
        np.testing.assert_allclose(x, arrays[name] / 255.0, atol=1e-7)


def test_one_color_image_makes_all_colored(tmp_path):
    grey, color = shades(), colors()
    put(tmp_path, "grey.png", grey)
    put(tmp_path, "color.png", color)
    X, names, shape = read_images(tmp_path)
    assert names == ("color.png", "grey.png")
    assert shape == (6, 5, 3)
    np.testing.assert_allclose(X[0], color / 255.0, atol=1e-7)
    np.testing.assert_allclose(X[1], np.repeat(grey[:, :, None], 3, axis=2) / 255.0, atol=1e-7)


def test_kinds_of_pixels_without_color(tmp_path):
    deep = RANDOM.integers(0, 65536, size=(6, 5), dtype=np.uint16)
    bits = shades() > 127
    alpha = np.stack([shades(), np.full((6, 5), 128, np.uint8)], axis=2)
    fractions = RANDOM.uniform(size=(6, 5)).astype(np.float32)
    palette = shades() // 64
    indexed = Image.fromarray(palette)
    indexed = indexed.convert("P")
    indexed.putpalette([value for level in (0, 50, 100, 255) for value in (level, level, level)])
    put(tmp_path, "16.png", deep)
    put(tmp_path, "1.png", Image.fromarray(bits))
    put(tmp_path, "alpha.png", Image.fromarray(alpha, mode="LA"))
    put(tmp_path, "fractions.tif", fractions)
    put(tmp_path, "palette.png", indexed)
    expected = {
        "16.png": deep / 65535.0,
        "1.png": bits.astype(float),
        "alpha.png": (alpha[:, :, 0] * (128 / 255.0) + 255.0 - 128.0) / 255.0,
        "fractions.tif": fractions,
        "palette.png": np.array([0, 50, 100, 255])[palette] / 255.0,
    }
    X, names, shape = read_images(tmp_path)
    assert shape == (6, 5)
    assert set(names) == set(expected)
    for x, name in zip(X, names, strict=True):
        np.testing.assert_allclose(x, expected[name], atol=1e-6 if name[0] != "a" else 1 / 255, err_msg=name)


def test_kinds_of_pixels_with_color(tmp_path):
    rgba = np.dstack([colors(), np.full((6, 5), 255, np.uint8)])
    rgba[0, :, 3] = 0
    indexed = Image.fromarray(shades() // 128).convert("P")
    indexed.putpalette([255, 0, 0, 0, 0, 255])
    deep = np.full((6, 5), 257 * 100, dtype=np.uint16)
    put(tmp_path, "alpha.png", rgba)
    put(tmp_path, "deep.png", deep)
    put(tmp_path, "palette.gif", indexed)
    put(tmp_path, "see-through.png", indexed, transparency=0)
    put(tmp_path, "cmyk.tif", Image.new("CMYK", (5, 6), (0, 255, 255, 0)))
    X, names, shape = read_images(tmp_path)
    assert shape == (6, 5, 3)
    by_name = dict(zip(names, X, strict=True))
    np.testing.assert_array_equal(by_name["alpha.png"][0], 1.0)
    np.testing.assert_allclose(by_name["alpha.png"][1:], rgba[1:, :, :3] / 255.0, atol=1e-7)
    np.testing.assert_allclose(by_name["deep.png"], 100 / 255.0, atol=1e-6)
    second = np.asarray(indexed) == 1
    red, white, blue = [1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0]
    np.testing.assert_array_equal(by_name["palette.gif"], np.where(second[:, :, None], blue, red))
    np.testing.assert_array_equal(by_name["see-through.png"], np.where(second[:, :, None], blue, white))
    np.testing.assert_array_equal(by_name["cmyk.tif"], np.broadcast_to(red, (6, 5, 3)))


def test_of_a_film_the_first_frame(tmp_path):
    frames = [Image.fromarray(np.full((6, 5), level, np.uint8)) for level in (0, 255)]
    frames[0].save(tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(read_images(tmp_path).X, np.zeros((1, 6, 5)))


def test_photographs_are_turned_upright(tmp_path):
    pixels = shades(6, 5)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held so that its top is at the right
    put(tmp_path, "a.png", pixels, exif=exif)
    X, _, shape = read_images(tmp_path)
    assert shape == (5, 6)
    np.testing.assert_allclose(X[0], np.rot90(pixels, -1) / 255.0, atol=1e-7)


def test_sizes_that_differ_become_the_median(tmp_path):
    for i, (height, width) in enumerate([(10, 40), (20, 30), (30, 10)]):
        put(tmp_path, f"{i}.png", np.full((height, width), 51 * i, np.uint8))
    with pytest.warns(DataWarning, match=r"from \(10, 40\) to \(30, 10\) pixels.*resized to \(20, 30\)"):
        X, _, shape = read_images(tmp_path)
    assert shape == (20, 30)
    np.testing.assert_allclose(X, np.broadcast_to(np.arange(3)[:, None, None] / 5, X.shape), atol=1e-6)


def test_large_images_are_made_smaller_and_keep_their_proportions(tmp_path):
    ramp = np.tile(np.arange(200, dtype=np.uint8), (100, 1))
    put(tmp_path, "a.png", ramp)
    with pytest.warns(DataWarning, match=r"of \(100, 200\) pixels.*resized to \(32, 64\)"):
        X, _, shape = read_images(tmp_path)
    assert shape == (32, 64)
    # A pixel is the mean of what it covers: a ramp stays one.
    np.testing.assert_allclose(
        X[0, :, 5:-5], np.tile((np.arange(64) + 0.5) * 3.125 - 0.5, (32, 1))[:, 5:-5] / 255, atol=2e-3
    )
    with pytest.warns(DataWarning, match="resized"):
        assert read_images(tmp_path, max_side=10).shape == (5, 10)
    assert read_images(tmp_path, max_side=200).shape == (100, 200)


@pytest.mark.parametrize("shape", [(6, 5), (3, 9), (6, 5, 3), [200, 100, 3]])
def test_the_shape_of_a_fit_wins(tmp_path, shape):
    put(tmp_path, "a.png", colors())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X, _, found = read_images(tmp_path, shape)
    assert found == tuple(shape)
    assert X.shape == (1, *shape)
    messages = [str(warning.message) for warning in caught]
    assert any("made grey" in message for message in messages) == (len(shape) == 2)
    assert any("resized" in message for message in messages) == (tuple(shape[:2]) != (6, 5))


@pytest.mark.parametrize("shape", [(6,), (6, 5, 4), (0, 5), (6, 5.0), (6, 5, 3, 1)])
def test_other_shapes_are_refused(tmp_path, shape):
    put(tmp_path, "a.png", shades())
    with pytest.raises(InvalidParameterError, match=r"shape=.*\(height, width, 3\)"):
        read_images(tmp_path, shape)


def test_files_that_are_no_images_are_passed_over_by_name(tmp_path):
    good = put(tmp_path, "good.png", shades())
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:60])
    (tmp_path / "text.jpg").write_text("not an image")
    (tmp_path / "empty.bmp").touch()
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / ".hidden.png").write_text("hidden")
    (tmp_path / ".cache").mkdir()
    put(tmp_path, ".cache/b.png", shades())
    put(tmp_path, "wide.tif", np.full((6, 5), 300.0, np.float32))
    with pytest.warns(DataWarning) as caught:
        found = read_images(tmp_path)
    assert found.names == ("good.png",)
    assert found.X.shape == (1, 6, 5)
    (message,) = (str(warning.message) for warning in caught)
    assert "not images: 'notes.txt'" in message
    for name in ("cut.png", "text.jpg", "empty.bmp"):
        assert repr(name) in message
    assert "'wide.tif' (pixels outside the range 0 to 1)" in message
    assert "hidden" not in message
    assert "cache" not in message


def test_whole_numbers_of_more_than_16_bits_may_mean_anything(tmp_path):
    put(tmp_path, "a.tif", np.full((6, 5), 70000, np.int32))
    with pytest.raises(
        DataFileError, match=r"holds no image that can be read: 'a.tif' \(pixels outside the range 0 to 65535"
    ):
        read_images(tmp_path)


def test_many_names_are_cut_short(tmp_path):
    put(tmp_path, "good.png", shades())
    for i in range(8):
        (tmp_path / f"{i}.png").write_text("no")
    with pytest.warns(DataWarning, match="'4.png' .* and 3 more"):
        read_images(tmp_path)


def test_a_folder_without_images_names_the_endings(tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(DataFileError, match="holds no image: files that end in " + ", ".join(ENDINGS)):
        read_images(tmp_path)


def test_what_is_no_folder(tmp_path):
    file = put(tmp_path, "photos.png", shades())
    with pytest.raises(NotADirectoryError, match=r"photos.png' is a file, where a folder of images"):
        read_images(file)
    with pytest.raises(FileNotFoundError, match=r"no folder .*fotos.png' \(nearest: 'photos.png'\)"):
        read_images(tmp_path / "fotos.png")
    with pytest.raises(InvalidParameterError, match="folder=3"):
        read_images(3)
    with pytest.raises(InvalidParameterError, match="max_side=0"):
        read_images(tmp_path, max_side=0)


def test_without_pillow_the_error_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install \"mercer\[files\]\""):
        read_images(tmp_path)
