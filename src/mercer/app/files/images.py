"""Read a folder of images, which may have different sizes and formats, as one array."""

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import DataFileError, DataWarning, invalid_parameter
from mercer.storage.atomic import check_path
from mercer.tables.frames import listed, nearest, optional

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
# The most pixels a side, unless a shape is asked for. Kernels compare images pixel by pixel, and finer detail rarely
# agrees between two images.
MAX_SIDE = 64
# Pillow's modes without color: bits, bytes, bytes with alpha, whole numbers and fractions.
GREY_MODES = ("1", "L", "LA", "La", "I", "F")
# The EXIF tag for the orientation, and the orientations in which width and height are swapped.
ORIENTATION, ON_A_SIDE = 0x0112, (5, 6, 7, 8)
# Pixels that are whole numbers (mode I) have 16 bits; images of 8 bits have other modes.
LARGEST = 65535.0
WHITE = (255, 255, 255, 255)


class ImageFolder(NamedTuple):
    """Images of a folder.

    Attributes
    ----------
    X : ndarray of float32, of shape (n, height, width) or (n, height, width, 3)
        Values from 0, black, to 1.
    names : tuple of str
        The path of each image inside the folder, with "/" between folders; sorted.
    shape : tuple of int
        The shape of one image.
    """

    X: np.ndarray
    names: tuple[str, ...]
    shape: tuple[int, ...]


class _Header(NamedTuple):
    """What the header of an image file says: its size after rotation, and whether it is grey."""

    height: int
    width: int
    is_grey: bool


def read_images(
    folder: str | os.PathLike[str], shape: Sequence[int] | None = None, max_side: int = MAX_SIDE
) -> ImageFolder:
    """Return the images of a folder and of the folders in it, resized to one size.

    PNG, JPEG, BMP, TIFF, WebP and the first frame of GIF files are read, recognized by their endings. The result is
    grey if all images are, and has three colors otherwise. Transparent pixels become white, and photographs are rotated
    as their camera says. Files that are not images, or are broken, are skipped with a warning that names them; hidden
    files are skipped without one.

    Parameters
    ----------
    folder : str or path
    shape : tuple of int or None, default=None
        (height, width) or (height, width, 3) to which images are resized, such as the shape in a fit. None takes the
        size that all images have or, with a warning, the median height and width if they differ.
    max_side : int, default=64
        Larger images are reduced to this many pixels along the longer side, unless `shape` is given.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such folder, or it is a file.
    DataFileError
        If there is no image in it that can be read.

    Notes
    -----
    Memory is 4 n height width bytes, or three times that with colors, and one image at a time at its full size.
    """
    folder = _check_folder(folder)
    wanted = None if shape is None else _check_shape(shape)
    check_count("max_side", max_side)
    pillow = optional("PIL.Image", "reading images", "files")
    paths, refused = _image_paths(folder)
    headers: dict[str, _Header] = {}
    for name in paths:
        try:
            headers[name] = _header(pillow, folder / name)
        except Exception as error:  # decoders can raise any exception
            refused[name] = _reason(error)
    _check_some(headers, folder, refused)
    target = _common_shape(headers.values(), max_side) if wanted is None else wanted
    X = np.empty((len(headers), *target), dtype=np.float32)
    names: list[str] = []
    for name in headers:
        try:
            X[len(names)] = _pixels(pillow, folder / name, target)
        except Exception as error:
            refused[name] = _reason(error)
        else:
            names.append(name)
    _check_some(names, folder, refused)
    _warn(target, [headers[name] for name in names], refused)
    return ImageFolder(X[: len(names)], tuple(names), target)


def _check_folder(path: str | os.PathLike[str]) -> Path:
    folder = check_path(path, "folder")
    if not folder.exists():
        beside = sorted(other.name for other in folder.parent.iterdir()) if folder.parent.is_dir() else []
        raise FileNotFoundError(f"there is no folder {str(folder)!r}{nearest(folder.name, beside)}.")
    if not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is a file, where a folder of images was expected.")
    return folder


def _check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    sides = tuple(shape)
    is_image = len(sides) == 2 or (len(sides) == 3 and sides[2] == 3)
    if not is_image or not all(isinstance(side, (int, np.integer)) and side > 0 for side in sides):
        raise invalid_parameter("shape", shape, "(height, width) or (height, width, 3), or None")
    return tuple(int(side) for side in sides)


def _image_paths(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the sorted names of files with the ending of an image, and the names of the others with the reason."""
    found, refused = [], {}
    for place, inside, files in os.walk(folder):
        inside[:] = [name for name in inside if not name.startswith(".")]
        for file in files:
            if file.startswith("."):
                continue
            name = (Path(place) / file).relative_to(folder).as_posix()
            if file.lower().endswith(ENDINGS):
                found.append(name)
            else:
                refused[name] = "not an image by its ending"
    return sorted(found), refused


def _header(pillow: Any, path: Path) -> _Header:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns about files that it can read
        with pillow.open(path) as image:
            width, height = image.size
            if image.getexif().get(ORIENTATION) in ON_A_SIDE:
                width, height = height, width
            return _Header(height, width, _is_grey(image))


def _is_grey(image: Any) -> bool:
    if image.mode in ("P", "PA"):
        colors = np.reshape(image.getpalette("RGB") or [], (-1, 3))
        return bool((colors == colors[:, :1]).all())
    return image.mode in GREY_MODES or image.mode.startswith("I;")


def _common_shape(headers: Iterable[_Header], max_side: int) -> tuple[int, ...]:
    """Return the median size, reduced to `max_side` if it is larger, and a third dimension if an image has colors."""
    several = list(headers)
    height, width = (float(np.median([header[side] for header in several])) for side in (0, 1))
    factor = min(1.0, max_side / max(height, width))
    sides = tuple(max(1, round(side * factor)) for side in (height, width))
    return sides if all(header.is_grey for header in several) else (*sides, 3)


def _pixels(pillow: Any, path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return an image resized to a shape, as float32 from 0 to 1."""
    ops = optional("PIL.ImageOps", "reading images", "files")
    height, width = shape[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pillow.open(path) as image:
            # A large JPEG file is decoded at a reduced size, which is still several times the final one.
            image.draft(None, (4 * max(height, width), 4 * max(height, width)))
            upright = ops.exif_transpose(image)
        plain = _grey(pillow, upright) if len(shape) == 2 else _rgb(pillow, upright)
        if plain.size != (width, height):
            plain = plain.resize((width, height), pillow.Resampling.BILINEAR)
    values = np.asarray(plain, dtype=np.float32)
    return values if len(shape) == 2 else values / 255.0


def _grey(pillow: Any, image: Any) -> Any:
    """Return an image in shades of grey, as fractions from 0 to 1. Images of 16 bits keep their precision."""
    if image.mode == "F" or image.mode.startswith("I"):
        return pillow.fromarray(_fractions(image))
    shades = np.asarray(_over_white(pillow, image).convert("L"), dtype=np.float32)
    return pillow.fromarray(shades / np.float32(255.0))


def _rgb(pillow: Any, image: Any) -> Any:
    """Return an image in three colors of 8 bits each."""
    if image.mode == "F" or image.mode.startswith("I"):
        image = pillow.fromarray(np.round(255.0 * _fractions(image)).astype(np.uint8))
    return _over_white(pillow, image).convert("RGB")


def _fractions(image: Any) -> np.ndarray:
    """Return pixels of 16 bits, or fractions, as fractions; raise if some are out of range."""
    values = np.asarray(image, dtype=np.float32) / np.float32(1.0 if image.mode == "F" else LARGEST)
    if not (values >= 0.0).all() or not (values <= 1.0).all():
        allowed = "0 to 1" if image.mode == "F" else f"0 to {LARGEST:.0f}"
        raise ValueError(f"pixels outside the range {allowed}")
    return values


def _over_white(pillow: Any, image: Any) -> Any:
    if "transparency" not in image.info and not {"A", "a"} & set(image.getbands()):
        return image
    above = image.convert("RGBA")
    return pillow.alpha_composite(pillow.new("RGBA", above.size, WHITE), above)


def _reason(error: Exception) -> str:
    if isinstance(error, MemoryError):
        raise error
    if type(error).__name__ == "UnidentifiedImageError":  # its message names the file and says no more
        return "not an image, whatever its ending says"
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _check_some(some: Any, folder: Path, refused: dict[str, str]) -> None:
    if not some:
        tried = {name: why for name, why in refused.items() if name.lower().endswith(ENDINGS)}
        what = f" that can be read: {_with_reasons(tried)}" if tried else f": files that end in {', '.join(ENDINGS)}"
        raise DataFileError(f"{str(folder)!r} holds no image{what}.")


def _with_reasons(refused: dict[str, str], at_most: int = 5) -> str:
    shown = [f"{name!r} ({why})" for name, why in sorted(refused.items())]
    return ", ".join(shown[:at_most]) + (f" and {len(shown) - at_most} more" if len(shown) > at_most else "")


def _warn(shape: tuple[int, ...], headers: list[_Header], refused: dict[str, str]) -> None:
    """Warn of the files that were skipped, and of what was changed in the others."""
    if refused:
        by_ending = [name for name in sorted(refused) if not name.lower().endswith(ENDINGS)]
        broken = {name: why for name, why in refused.items() if name not in by_ending}
        parts = [f"not images: {listed(by_ending, 5)}"] if by_ending else []
        parts += [f"not readable: {_with_reasons(broken)}"] if broken else []
        warnings.warn(f"some files were skipped; {'; '.join(parts)}.", DataWarning, stacklevel=3)
    sizes = {(header.height, header.width) for header in headers}
    if sizes != {shape[:2]}:
        several = f"from {min(sizes)} to {max(sizes)}" if len(sizes) > 1 else f"of {min(sizes)}"
        warnings.warn(
            f"images {several} pixels, height and width, were resized to {shape[:2]}.", DataWarning, stacklevel=3
        )
    if len(shape) == 2 and not all(header.is_grey for header in headers):
        warnings.warn("images in color were made grey, as those of the fit are.", DataWarning, stacklevel=3)
