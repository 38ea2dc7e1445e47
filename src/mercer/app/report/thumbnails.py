"""Images as small pictures in a page: one by one, or many on one sheet."""

import math
from io import BytesIO
from typing import Any

import numpy as np

from mercer.app.report.figures import data_uri
from mercer.app.report.markup import Html, tag
from mercer.tables.frames import optional

# Pixels a side, at most. Larger images are made smaller.
SIDE = 32
QUALITY = 80


def thumbnail(image: np.ndarray, name: str) -> Html:
    """Return an image with its name below.

    Parameters
    ----------
    image : ndarray of shape (height, width) or (height, width, 3)
        From 0, black, to 1.
    name : str
    """
    picture = tag("img", src=_encoded(_small(image), "PNG"), alt=name, class_="thumbnail")
    return tag("figure", picture, tag("figcaption", name), class_="sample")


def sheet(images: np.ndarray) -> dict[str, Any]:
    """Return all images side by side in one picture, and how to find one: by rows of `columns`, each width x height.

    Grey ones are kept as they are; those with colors as JPEG, a fifth of the size.

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
