"""Small pictures of images for a page: a single one, or many on one sheet."""

import math
from io import BytesIO
from typing import Any

import numpy as np

from mercer.app.report.figures import data_uri
from mercer.app.report.markup import Html, tag
from mercer.tables.frames import optional

# Images with a longer side than this many pixels are made smaller.
SIDE = 32
QUALITY = 80


def thumbnail(image: np.ndarray, name: str) -> Html:
    """Return a picture of an image with its name below it.

    Parameters
    ----------
    image : ndarray of shape (height, width) or (height, width, 3)
        Values from 0, black, to 1.
    name : str
    """
    picture = tag("img", src=_encoded(_small(image), "PNG"), alt=name, class_="thumbnail")
    return tag("figure", picture, tag("figcaption", name), class_="sample")


def sheet(images: np.ndarray) -> dict[str, Any]:
    """Return one picture of all images, in lines of `columns` images of `width` x `height` pixels each.

    Grey images are kept exactly, as PNG; images in color are written as JPEG, which is a fifth of the size.

    Parameters
    ----------
    images : ndarray of shape (n, height, width) or (n, height, width, 3)
    """
    small = [np.asarray(_small(image)) for image in images]
    height, width = small[0].shape[:2]
    columns = math.ceil(math.sqrt(len(small)))
    lines = math.ceil(len(small) / columns)
    whole = np.zeros((lines * height, columns * width, *small[0].shape[2:]), dtype=np.uint8)
    for i, one in enumerate(small):
        top, left = height * (i // columns), width * (i % columns)
        whole[top : top + height, left : left + width] = one
    picture = optional("PIL.Image", "images in a report", "files").fromarray(whole)
    source = _encoded(picture, "JPEG" if whole.ndim == 3 else "PNG")
    return {"src": source, "width": width, "height": height, "columns": columns}


def _small(image: np.ndarray) -> Any:
    pillow = optional("PIL.Image", "images in a report", "files")
    picture = pillow.fromarray(np.round(255.0 * np.clip(image, 0.0, 1.0)).astype(np.uint8))
    factor = SIDE / max(picture.size)
    if factor < 1.0:
        picture = picture.resize(tuple(max(1, round(side * factor)) for side in picture.size))
    return picture


def _encoded(picture: Any, kind: str) -> str:
    buffer = BytesIO()
    options = {"quality": QUALITY} if kind == "JPEG" else {"optimize": True}
    picture.save(buffer, format=kind, **options)
    return data_uri(buffer.getvalue(), f"image/{kind.lower()}")
