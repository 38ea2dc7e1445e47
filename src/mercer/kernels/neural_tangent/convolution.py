"""Convolutions in one and two dimensions, with groups, strides and dilation."""

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional

from mercer.blocks import WORKING_MEMORY, row_slices, rows_per_block
from mercer.kernels.neural_tangent.dense import OVERHEAD, products, summed
from mercer.kernels.neural_tangent.parts import Part, tiles

Two = tuple[int, int]


class Convolution(NamedTuple):
    """W of a convolution: dG = sum_p g_p u_p^T, u_p the patch of the image under position p of the output.

    Images have a height, of 1 in one dimension, and a width. `seen` pads them, so that no padding is left.
    """

    kernel: Two
    stride: Two
    padding: Any
    dilation: Two
    groups: int

    def seen(self, a: Tensor) -> Tensor:
        """Return the padded image, of shape (n, c, h, w) in one dimension too."""
        images = a.unsqueeze(2) if a.ndim == 3 else a
        return padded(images, self.padding, self.kernel, self.dilation)

    def patches(self, images: Tensor) -> Tensor:
        """Return the patches of images (n, c, h, w), of shape (n, groups, c / groups * kernel, P)."""
        unfolded = functional.unfold(images, self.kernel, dilation=self.dilation, stride=self.stride)
        return unfolded.unflatten(1, (self.groups, -1))

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each row, flat; several images of one row, (n, k, c, h, w), are added."""
        n = len(a)
        images = a.reshape(-1, *a.shape[-3:])
        k = len(images) // n
        u = self.patches(images)
        v = g.reshape(n * k, -1, u.shape[3]).unflatten(1, (self.groups, -1))
        G = (v @ u.mT).flatten(1).view(n, k, -1)
        return G[:, 0] if k == 1 else G.sum(dim=1)


def as_two(value: Any) -> Two:
    """Return a setting of a convolution as one of two dimensions; of one dimension, that of the width."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return (values[0], values[1]) if len(values) == 2 else (1, values[0])


def padded(images: Tensor, padding: Any, kernel: Two, dilation: Two) -> Tensor:
    """Return images of shape (n, c, h, w) with the zeros around them that a convolution adds."""
    if padding == "valid":
        return images
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        (top, left), (rows, columns) = [total // 2 for total in totals], totals
        around = (left, columns - left, top, rows - top)
    else:
        vertical, horizontal = padding
        around = (horizontal, horizontal, vertical, vertical)
    return functional.pad(images, around) if any(around) else images


class PatchFactors(Part):
    """G = sum_p g_p u_p^T by the padded image, (n, c, h, w), and by g, (n, c_out, h_out, w_out).

    As with dense layers the inner product of two such matrices is taken in the cheaper of two ways. The inner products
    of patches are sums over the kernel's places of inner products of pixels: with a stride of 1 the pixels' are worked
    out once, which for a kernel of 3 x 3 is a ninth of the work.
    """

    def __init__(self, images: Tensor, g: Tensor, kind: Convolution) -> None:
        super().__init__(images, g)
        self.kind = kind

    def with_tensors(self, *tensors: Tensor) -> Self:
        return type(self)(*tensors, kind=self.kind)

    def add_products(self, other: "PatchFactors", out: Tensor) -> None:  # type: ignore[override]
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
        """Return the same from the inner products of pixels, moved along with the kernel's places and added."""
        (a, g), b = self.tensors, other.tensors[0]
        (h, w), (high, wide) = a.shape[2:], g.shape[2:]
        pixels = products(a.flatten(2).mT, b.flatten(2).mT).view(len(a), h, w, len(b), h, w)
        total = torch.zeros((len(a), high, wide, len(b), high, wide), dtype=a.dtype, device=a.device)
        for i in range(self.kind.kernel[0]):
            for j in range(self.kind.kernel[1]):
                top, left = i * self.kind.dilation[0], j * self.kind.dilation[1]
                y, x = slice(top, top + high), slice(left, left + wide)
                total += pixels[:, y, x, :, y, x]
        return total.view(len(a) * high * wide, -1)

    def _add_by_matrices(self, other: "PatchFactors", out: Tensor) -> None:
        """Form the matrices for some of the outputs at a time, as many as fit the working memory."""
        groups, sides = self.kind.groups, []
        for part in (self, other):
            images, g = part.tensors
            sides.append((self.kind.patches(images).mT, g.flatten(2).unflatten(1, (groups, -1))))
        (u, g), (v, h) = sides
        bytes_per_output = (len(g) + len(h)) * groups * u.shape[3] * u.element_size()
        step = max(1, int(WORKING_MEMORY * 2**20 // bytes_per_output))
        for outputs in row_slices(g.shape[2], step):
            x, z = (g[:, :, outputs] @ u).flatten(1), (h[:, :, outputs] @ v).flatten(1)
            out.addmm_(x, z.T)

    def squares(self) -> Tensor:
        images, g = self.tensors
        n_weights = images.shape[1] * g.shape[1] * self.kind.kernel[0] * self.kind.kernel[1]
        step = rows_per_block(len(g), 2 * n_weights * g.element_size())
        blocks = [
            self.kind.gradient(images[rows], g[rows]).square().sum(dim=1)
            for rows in row_slices(len(g), step)
        ]
        return torch.cat(blocks)
