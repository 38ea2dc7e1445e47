"""Gradients by the weights of convolutions in one and two dimensions, with groups, strides and dilation."""

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional

from mercer.blocks import WORKING_MEMORY, row_slices, rows_per_block
from mercer.kernels.neural_tangent.dense import OVERHEAD, products, summed
from mercer.kernels.neural_tangent.parts import Part, tiles

Two = tuple[int, int]


class Convolution(NamedTuple):
    """The weights W of a convolution, whose gradient is G = sum_p g_p u_p^T over the positions p of the output.

    u_p is the patch of the image from which position p is computed, and g_p is the gradient of the head by the output
    at p. A convolution in one dimension is treated as one of images of height 1.

    Attributes
    ----------
    kernel, stride, dilation : pairs of int
        (height, width).
    around : tuple of four int
        Numbers of zeros that are added at the left, right, top and bottom of the images.
    groups : int
    """

    kernel: Two
    stride: Two
    around: tuple[int, int, int, int]
    dilation: Two
    groups: int

    def seen(self, a: Tensor) -> Tensor:
        """Return the inputs as images of shape (n, c, h, w), with h = 1 for a convolution in one dimension."""
        return a.unsqueeze(2) if a.ndim == 3 else a

    def patches(self, images: Tensor) -> Tensor:
        """Return the patches of images (n, c, h, w), of shape (n, groups, q, P).

        P is the number of positions of the output, and q = c / groups * kernel height * kernel width.
        """
        padded = functional.pad(images, self.around) if any(self.around) else images
        unfolded = functional.unfold(padded, self.kernel, dilation=self.dilation, stride=self.stride)
        return unfolded.unflatten(1, (self.groups, -1))

    def offsets(self) -> list[Two]:
        """Return the offset (down, right) in pixels of each entry of the kernel from its top left corner."""
        (high, wide), (down, right) = self.kernel, self.dilation
        return [(i * down, j * right) for i in range(high) for j in range(wide)]

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each row, flat. If a row has k images, a of shape (n, k, c, h, w), they are summed."""
        n = len(a)
        images = a.reshape(-1, *a.shape[-3:])
        k = len(images) // n
        u = self.patches(images)
        v = g.reshape(n * k, -1, u.shape[3]).unflatten(1, (self.groups, -1))
        G = (v @ u.mT).flatten(1).view(n, k, -1)
        return G[:, 0] if k == 1 else G.sum(dim=1)


def crop(padded: Tensor, kind: Convolution, offset: Two, size: tuple[int, ...]) -> Tensor:
    """Return the pixels of padded images that are multiplied by the kernel's entry at `offset`: (n, c, *size)."""
    (top, left), (down, right), (high, wide) = offset, kind.stride, size
    return padded[:, :, top : top + down * (high - 1) + 1 : down, left : left + right * (wide - 1) + 1 : right]


def as_two(value: Any) -> Two:
    """Return a kernel size as (height, width); in one dimension the height is 1."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return (values[0], values[1]) if len(values) == 2 else (1, values[0])


def zeros_around(padding: Any, kernel: Two, dilation: Two) -> tuple[int, int, int, int]:
    """Return the numbers of zeros that a convolution adds at the left, right, top and bottom of an image.

    `padding` is "same", "valid" or a pair (vertical, horizontal).
    """
    if padding == "valid":
        return 0, 0, 0, 0
    if padding == "same":
        rows, columns = (d * (k - 1) for k, d in zip(kernel, dilation, strict=True))
        return columns // 2, columns - columns // 2, rows // 2, rows - rows // 2
    vertical, horizontal = padding
    return horizontal, horizontal, vertical, vertical


class PatchFactors(Part):
    """G = sum_p g_p u_p^T of a convolution, kept as the images (n, c, h, w) and as g of shape (n, c_out, h_out, w_out).

    As for dense layers, the inner products of the matrices G are computed in the cheaper of two ways. The inner product
    of two patches is a sum of inner products of pixels, one for each entry of the convolution's kernel. With a stride
    of 1 the inner products of pixels are computed once, which takes a ninth of the work for a kernel of 3 x 3.
    """

    def __init__(self, images: Tensor, g: Tensor, kind: Convolution) -> None:
        super().__init__(images, g)
        self.kind = kind

    def with_tensors(self, *tensors: Tensor) -> Self:
        images, g = tensors
        return type(self)(images, g, self.kind)

    def add_products(self, other: "PatchFactors", out: Tensor) -> None:
        a, g = self.tensors
        n_positions, c_out, inside = g[0, 0].numel(), g.shape[1], self.kind.kernel[0] * self.kind.kernel[1]
        n_weights = a.shape[1] * inside * c_out // self.kind.groups
        by_matrices = n_weights * (1 + n_positions / len(self) + n_positions / len(other))
        of_patches = n_positions**2 * a.shape[1] * inside
        of_pixels = a[0, 0].numel() ** 2 * a.shape[1] + n_positions**2 * OVERHEAD * inside
        squared = n_positions**2 * (c_out + OVERHEAD)
        if self.kind.groups > 1 or by_matrices < squared + min(of_patches, of_pixels):
            self._add_by_matrices(other, out)
            return
        by_pixels = self.kind.stride == (1, 1) and of_pixels < of_patches
        bytes_per_pair = (2 * n_positions**2 + a[0, 0].numel() ** 2) * a.element_size()
        for rows, columns in tiles(self, other, bytes_per_pair):
            x, z = self[rows], other[columns]
            grams = x._of_pixels(z) if by_pixels else x._of_patches(z)
            grams.mul_(products(x.tensors[1].flatten(2).mT, z.tensors[1].flatten(2).mT))
            out[rows, columns] += summed(grams, n_positions, n_positions)

    def _of_patches(self, other: Self) -> Tensor:
        """Return the inner products of all patches, of shape (n P, m P)."""
        x, z = (part.kind.patches(part.tensors[0])[:, 0].mT for part in (self, other))
        return products(x, z)

    def _of_pixels(self, other: Self) -> Tensor:
        """Return the inner products of all patches, as sums of inner products of pixels."""
        (a, g), b = self.tensors, other.tensors[0]
        (h, w), (high, wide), (left, _, top, _) = a.shape[2:], g.shape[2:], self.kind.around
        pixels = products(a.flatten(2).mT, b.flatten(2).mT).view(len(a), h, w, len(b), h, w)
        total = torch.zeros((len(a), high, wide, len(b), high, wide), dtype=a.dtype, device=a.device)
        for i, j in self.kind.offsets():
            (y, y_in), (x, x_in) = overlap(i - top, high, h), overlap(j - left, wide, w)
            total[:, y, x, :, y, x] += pixels[:, y_in, x_in, :, y_in, x_in]
        return total.view(len(a) * high * wide, -1)

    def _add_by_matrices(self, other: "PatchFactors", out: Tensor) -> None:
        """Add the inner products of the matrices G, formed for as many outputs at a time as fit the working memory."""
        images, g = self.tensors
        inputs = images.shape[1] * self.kind.kernel[0] * self.kind.kernel[1] * images.element_size()
        step = max(1, int(WORKING_MEMORY * 2**20 // ((len(self) + len(other)) * inputs)))
        for outputs in row_slices(g.shape[1] // self.kind.groups, step):
            out.addmm_(self._matrices(outputs), other._matrices(outputs).T)

    def _matrices(self, outputs: slice) -> Tensor:
        """Return the gradients by the weights of some outputs of each group, flat, computed by blocks of rows."""
        images, g = self.tensors
        grouped = g.flatten(2).unflatten(1, (self.kind.groups, -1))[:, :, outputs]
        bytes_per_row = images[0].numel() * self.kind.kernel[0] * self.kind.kernel[1] * images.element_size()
        found: Tensor | None = None
        for rows in row_slices(len(g), rows_per_block(len(g), bytes_per_row, WORKING_MEMORY / 4)):
            G = (grouped[rows] @ self.kind.patches(images[rows]).mT).flatten(1)
            if found is None:
                found = G.new_empty((len(g), G.shape[1]))
            found[rows] = G
        return found  # type: ignore[return-value]

    def squares(self) -> Tensor:
        images, g = self.tensors
        n_positions, c_in = g[0, 0].numel(), images.shape[1] * self.kind.kernel[0] * self.kind.kernel[1]
        by_positions = n_positions * (c_in + g.shape[1]) < c_in * g.shape[1] and self.kind.groups == 1
        numbers = n_positions * c_in + (2 * n_positions**2 if by_positions else c_in * g.shape[1])
        found = []
        for rows in row_slices(len(g), rows_per_block(len(g), numbers * g.element_size())):
            if by_positions:
                u, v = self.kind.patches(images[rows])[:, 0], g[rows].flatten(2)
                found.append((u.mT @ u).mul_(v.mT @ v).sum(dim=(1, 2)))
            else:
                G = self.kind.gradient(images[rows], g[rows])
                found.append(torch.linalg.vector_norm(G, dim=1).square_())
        return torch.cat(found)


def overlap(offset: int, n_out: int, n_in: int) -> tuple[slice, slice]:
    """Return the positions p of the output for which the pixel p + offset is inside the image, and these pixels."""
    first, end = max(0, -offset), max(0, -offset, min(n_out, n_in - offset))
    return slice(first, end), slice(first + offset, end + offset)
