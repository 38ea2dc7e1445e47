"""Samples of any shape as flat rows, and sources of views, which reshape the rows to samples and back."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mercer.blocks import as_tensor, blocks_of, row_slices
from mercer.checks import check_sample_shape, refuse_sparse
from mercer.exceptions import invalid_parameter
from mercer.rows import is_elsewhere, rows_at_hand, some_rows_of, sum_over_rows, validated_rows
from mercer.views import check_view
from mercer.views.base import Augmentation
from mercer.views.neighbors import NeighborMixing, references_of, strength_of

# Number of rows whose views are drawn together.
ROWS_A_DRAW = 2048


def as_rows(X: Any, shape: tuple[int, ...]) -> Any:
    """Return images as flat rows, and anything else unchanged."""
    if len(shape) > 1 and getattr(X, "ndim", 2) > 2:
        if tuple(X.shape[1:]) != shape:
            raise ValueError(f"X has samples of shape {tuple(X.shape[1:])}, and those of the fit had {shape}.")
        return flat(X)
    return X


def flat(images: Any) -> Any:
    """Return images as flat rows; Dask arrays stay Dask arrays."""
    return (images if is_elsewhere(images) else np.asarray(images)).reshape(images.shape[0], prod(images.shape[1:]))


def check_samples(estimator: BaseEstimator, X: Any, reset: bool = False) -> np.ndarray:
    """Return validated flat rows; with `reset`, set the estimator's `sample_shape_` from X and its `image_shape`."""
    if not reset:
        rows = as_rows(X, estimator.sample_shape_)
        return validated_rows(estimator, rows, reset=False)
    refuse_sparse(estimator, X)
    own = tuple(X.shape[1:]) if getattr(X, "ndim", 2) in (3, 4) else None
    given = estimator.image_shape
    shape = own if given is None else check_sample_shape("image_shape", given, only_images=True)
    if own is not None and shape != own:
        raise invalid_parameter("image_shape", given, f"{own}, the shape of the images, or None")
    rows = validated_rows(estimator, X if own is None else flat(X), ensure_min_samples=2)
    if shape is not None and prod(shape) != rows.shape[1]:
        raise invalid_parameter("image_shape", given, f"a shape of {rows.shape[1]} numbers, which the rows have")
    estimator.sample_shape_ = (rows.shape[1],) if shape is None else shape
    return rows


def means_and_deviations(X: Any, of_columns: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each column, or of all numbers, in two passes over the rows."""
    if isinstance(X, np.ndarray):
        axis = 0 if of_columns else None
        # In float32, the rounding error of a sum of a million numbers can be as large as a column's deviation.
        return X.mean(axis, dtype=np.float64), X.std(axis, dtype=np.float64)
    n = X.shape[0] if of_columns else prod(X.shape)
    center = torch.zeros(X.shape[1] if of_columns else 1, dtype=torch.float64)
    found = []
    for power in (1, 2):
        (total,) = sum_over_rows(powers, (center, power, of_columns), X, rows_a_block=ROWS_A_DRAW)
        found.append(total.numpy() / n)
        center = torch.from_numpy(found[0])
    return found[0], np.sqrt(found[1])


def powers(center: Tensor, power: int, of_columns: bool) -> Callable[[Tensor], tuple[Tensor]]:
    """Return the function rows -> sum of (row - center)^power, by columns or over all numbers."""

    def summed(x: Tensor) -> tuple[Tensor]:
        terms = (x.to(torch.float64) - center) ** power
        return (terms.sum(dim=0) if of_columns else terms.sum().reshape(1),)

    return summed


class Augmented(NamedTuple):
    """A view of flat rows: these are reshaped to samples, standardized if needed, changed, and mapped back.

    A shorthand such as "auto" must suit columns and pixels of any scale. Tables are therefore standardized before the
    view is drawn, gray images by the mean and the deviation of all pixels, and the views are scaled back. Color images
    are not standardized, and neither are rows for a view that the user made.

    Attributes
    ----------
    augment : None, str, View or callable
        The estimator's parameter; see `check_view`.
    shape : tuple of int
        The shape of one sample.
    center, scale : ndarrays of shape (d,) or None
        The mean and the deviation by which rows are standardized; None leaves them as they are.
    references : ndarray of shape (m, d) or None
        Rows towards which table rows are moved (`NeighborMixing`), in place of `augment`.
    kernel : Kernel or None
        The kernel by which near reference rows are found.
    strength : float
        The largest share of the way to a reference row.
    """

    augment: Any
    shape: tuple[int, ...]
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    references: np.ndarray | None = None
    kernel: Any = None
    strength: float = 0.0

    @classmethod
    def fitted(cls, augment: Any, shape: tuple[int, ...], X: np.ndarray) -> "Augmented":
        """Return the views for rows like those of X."""
        check_view(augment, shape)
        is_color = len(shape) == 3 and shape[2] > 1
        if is_color or not isinstance(augment, str):
            return cls(augment, shape)
        is_table = len(shape) == 1
        moments = means_and_deviations(X, is_table)
        center, scale = (np.broadcast_to(np.asarray(part, X.dtype), X.shape[1:]) for part in moments)
        return cls(augment, shape, center.copy(), np.where(scale > 0, scale, 1.0).astype(X.dtype))

    @classmethod
    def towards_neighbors(cls, X: np.ndarray, kernel: Any, seed: int) -> "Augmented":
        """Return views that move table rows towards their neighbors, by the strength that `strength_of` chooses."""
        references = references_of(X, seed)
        strength = strength_of(torch.from_numpy(references), kernel)
        return cls("auto", X.shape[1:], references=references, kernel=kernel, strength=strength)

    def view(self) -> Augmentation:
        """Return the view that is applied to samples."""
        if self.references is None:
            return check_view(self.augment, self.shape)
        return NeighborMixing(torch.from_numpy(self.references), self.kernel, self.strength)

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return a view of each row."""
        view = self.view()
        if self.center is None or self.scale is None:
            changed = view(x.reshape(len(x), *self.shape), generator)
        else:
            center, scale = (torch.from_numpy(part).to(x) for part in (self.center, self.scale))
            changed = view(((x - center) / scale).reshape(len(x), *self.shape), generator)
            changed = changed.reshape(x.shape) * scale + center
        if not isinstance(changed, Tensor) or changed.numel() != x.numel():
            got = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
            raise invalid_parameter("augment", self.augment, f"views of the batch's shape {tuple(x.shape)}, not {got}")
        return changed.reshape(x.shape).to(x)


class DrawnViews(NamedTuple):
    """Views that are drawn when they are needed: `n_views` of each row, or the rows themselves if `augmented` is None.

    The views depend on `seed` and on the place of a block of rows in the data, but not on the available memory. `seen`
    is the number of rows that came before these.
    """

    X: np.ndarray
    augmented: Augmented | None
    n_views: int
    seed: int
    seen: int = 0

    def chunks(self, like: Tensor) -> Iterator[list[Tensor]]:
        """Yield the views of one block of rows after another, with the type and device of `like`."""
        bounds = list(row_slices(len(self.X), ROWS_A_DRAW))
        for rows, block in zip(bounds, blocks_of(self.X, bounds), strict=True):
            yield self._views(block, self.seen + rows.start, like)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.X)

    @property
    def rows_a_draw(self) -> int:
        """How many rows have their views drawn together."""
        return ROWS_A_DRAW

    @property
    def held(self) -> Sequence[Any]:
        """The arrays that are held: the rows themselves."""
        return [self.X]

    def without_rows(self) -> "DrawnViews":
        """Return the same source without its rows, which is what a worker needs beside the rows of its block."""
        return self._replace(X=np.empty((0, 0)))

    def views_of(self, held: Sequence[Tensor], place: int, like: Tensor) -> list[Tensor]:
        """Return the views of a block of rows that begins at row `place` of the data."""
        return self._views(held[0], place, like)

    def batch(self, index: np.ndarray, generator: torch.Generator, like: Tensor) -> list[Tensor]:
        """Return views of the rows at `index`, drawn by the generator, with the type and device of `like`."""
        x = as_tensor(self.X[index], dtype=like.dtype, device=like.device)
        return [x] if self.augmented is None else [self.augmented(x, generator) for _ in range(self.n_views)]

    def of_rows(self, index: np.ndarray) -> "DrawnViews":
        """Return the source of views of the rows at `index`."""
        return self._replace(X=some_rows_of(self.X, index))

    @contextmanager
    def at_hand(self) -> "Iterator[DrawnViews]":
        """Give the same source with rows that can be read in any order (`mercer.rows.rows_at_hand`)."""
        with rows_at_hand(self.X) as X:
            yield self._replace(X=X)

    def stacked(self, index: np.ndarray) -> np.ndarray:
        """Return all views of the rows at `index`: the first view of every row, then the second, and so on."""
        x = as_tensor(self.X[index])
        return torch.cat(self._views(self.X[index], -1, x)).cpu().numpy()

    def _views(self, rows: Any, place: int, like: Tensor) -> list[Tensor]:
        x = as_tensor(rows, dtype=like.dtype, device=like.device)
        if self.augmented is None:
            return [x]
        state = np.random.SeedSequence([self.seed, place + 1]).generate_state(1, dtype=np.uint64)
        generator = torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
        return [self.augmented(x, generator) for _ in range(self.n_views)]


class GivenViews(NamedTuple):
    """Views that the user gives: arrays of one shape, in which row i of each is a view of sample i.

    A batch has all of the views, or `n_drawn` of them, drawn for each batch.
    """

    arrays: Sequence[np.ndarray]
    n_drawn: int | None = None

    def chunks(self, like: Tensor) -> Iterator[list[Tensor]]:
        """Yield the views of one block of rows after another, with the type and device of `like`."""
        bounds = list(row_slices(len(self.arrays[0]), ROWS_A_DRAW))
        for blocks in zip(*(blocks_of(array, bounds) for array in self.arrays), strict=True):
            yield [as_tensor(block, dtype=like.dtype, device=like.device) for block in blocks]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.arrays[0])

    @property
    def rows_a_draw(self) -> int:
        """How many rows have their views drawn together."""
        return ROWS_A_DRAW

    @property
    def held(self) -> Sequence[Any]:
        """The arrays that are held: all views of the rows."""
        return self.arrays

    def without_rows(self) -> "GivenViews":
        """Return the same source without its views."""
        return self._replace(arrays=[])

    def views_of(self, held: Sequence[Tensor], place: int, like: Tensor) -> list[Tensor]:
        """Return the views of a block of rows, which are given in `held`."""
        return list(held)

    def batch(self, index: np.ndarray, generator: torch.Generator, like: Tensor) -> list[Tensor]:
        """Return the views of the rows at `index`, with the type and device of `like`."""
        arrays = self.arrays
        if self.n_drawn is not None and self.n_drawn < len(arrays):
            arrays = [arrays[i] for i in torch.randperm(len(arrays), generator=generator)[: self.n_drawn].tolist()]
        return [as_tensor(array[index], dtype=like.dtype, device=like.device) for array in arrays]

    def of_rows(self, index: np.ndarray) -> "GivenViews":
        """Return the source of views of the rows at `index`."""
        return self._replace(arrays=[some_rows_of(array, index) for array in self.arrays])

    @contextmanager
    def at_hand(self) -> "Iterator[GivenViews]":
        """Give the same source with views that can be read in any order (`mercer.rows.rows_at_hand`)."""
        with ExitStack() as files:
            yield self._replace(arrays=[files.enter_context(rows_at_hand(array)) for array in self.arrays])

    def stacked(self, index: np.ndarray) -> np.ndarray:
        """Return all views of the rows at `index`: the first view of every row, then the second, and so on."""
        return np.concatenate([array[index] for array in self.arrays])


ViewSource = DrawnViews | GivenViews


def given_arrays(source: ViewSource) -> Sequence[np.ndarray]:
    """Return the arrays of views that the user has given; none if views are drawn."""
    return source.arrays if isinstance(source, GivenViews) else ()
