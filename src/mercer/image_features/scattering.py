"""Wavelet scattering of gray images: features without training that hardly change if an image is shifted or bent."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, like_input, walk
from mercer.checks import check_count, check_number

# Bruna and Mallat's Morlet wavelets, in pixels at the finest scale: the width of the envelope, the frequency, and the
# number of angles times the ratio of the width of the envelope along the wave to that across it.
WIDTH, FREQUENCY, SLANT = 0.8, 0.75 * math.pi, 4.0
# Gaussians are cut off at this many widths, where they are 1e-14.
REACH = 8.0


def scattering(images: Any, *, n_scales: int = 3, n_angles: int = 8, working_memory: float = WORKING_MEMORY) -> Any:
    """Return the scattering coefficients of images: the local strength of their waves at each scale and angle.

    The pixels of an image change a lot if it is shifted or bent. The strengths of its waves, averaged over 2^J pixels,
    change little. The information lost by averaging is recovered from the waves of these strengths (Bruna and Mallat,
    2013). Let x be an image, psi wavelets of scale j < J = `n_scales` and angle l < L = `n_angles`, and phi a Gaussian
    about 2^J pixels wide:

        S_0 = x * phi,    S_1 = |x * psi_1| * phi,    S_2 = ||x * psi_1| * psi_2| * phi  where j_2 > j_1.

    Each is evaluated at the center of every cell of 2^J by 2^J pixels. psi is a Morlet wavelet of mean 0 and frequency
    3 pi / 4 / 2^j. The waves of angle l run at pi l / L, from left to right for l = 0, and turn towards top to bottom
    as l grows. A common factor makes |phi^|^2 plus the sum of |psi^|^2 at most 1 at every frequency, so that no step
    increases the distance of two images.

    Parameters
    ----------
    images : array-like of shape (n, height, width)
        Gray images of any size. They are mirrored at their edges to whole cells, equally on both sides (one pixel more
        at the bottom and at the right if the number is odd), and by one further cell whose coefficients are dropped.
    n_scales : int, default=3
        J, the number of octaves. With the largest allowed J, one cell covers the whole image.
    n_angles : int, default=8
        L. If L is even, turning a square image by 90 degrees turns the maps and shifts all angles by L / 2. This is
        exact if the side of the image is even.
    working_memory : float, default=64.0
        Memory for the temporary arrays of one block of images, in MiB.

    Returns
    -------
    coefficients of shape (n, C, h, w), in the precision of the images
        h and w are height and width divided by 2^J, rounded up. The C = 1 + J L + L^2 J (J - 1) / 2 channels are in the
        order of `scattering_paths`. For a clustering, use `coefficients.reshape(n, -1)` as rows.

    Notes
    -----
    O(n L^2 J N log N) time for N pixels of a mirrored image, since all convolutions use the FFT: 2 to 3 ms for 28 x 28
    pixels on one core. As is usual, waves of scale j are evaluated only at the centers of cells of 2^j by 2^j pixels.
    On MNIST this changes the coefficients by 0.6 %.

    Some channels are much smaller than others but equally informative. Distances therefore improve if all channels have
    the same size. On MNIST (2000 images, 3 draws), dividing each channel by its root mean square over images and
    positions raises the accuracy of k-means from .42 to .57, and that of spectral clustering with 10 neighbors from .65
    to .68.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.image_features.scattering import scattering
    >>> scattering(np.zeros((5, 28, 28))).shape
    (5, 217, 4, 4)
    """
    pixels = images if hasattr(images, "shape") else as_tensor(images)
    if len(pixels.shape) != 3 or 0 in pixels.shape[1:]:
        raise ValueError(f"images have shape {tuple(pixels.shape)}: gray images are needed, (n, height, width).")
    octaves = max(1, math.ceil(math.log2(max(pixels.shape[1:]))))
    J = check_count("n_scales", n_scales, at_most=octaves, why="one cell then holds the whole image")
    L = check_count("n_angles", n_angles)
    check_number("working_memory", working_memory, above=0.0)
    like = as_tensor(pixels[:0])
    like = like.to(torch.promote_types(like.dtype, torch.float32))
    rows, columns = (_mirrored(size, 2**J).to(like.device) for size in pixels.shape[1:])
    filters = _filters(len(rows), len(columns), J, L, like)
    cells = (len(phi) for phi in filters.phi[0])
    result = like.new_empty((len(pixels), len(scattering_paths(J, L)), *cells))
    # For one image: the second-order waves of one pair of scales, on a grid with a quarter of the points, and the
    # first-order waves of one scale, both with their spectra.
    bytes_per_row = (L**2 + 4 * L) * len(rows) * len(columns) * 2 * like.element_size()
    for block, (x,) in walk([pixels], bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=like.dtype):
        if not x.isfinite().all():
            raise ValueError("images have pixels that are NaN or infinite: all must be finite.")
        result[block] = _scatter(x[:, rows][:, :, columns], filters)
    return like_input(result, images)


def scattering_paths(n_scales: int = 3, n_angles: int = 8) -> list[tuple[tuple[int, int], ...]]:
    """Return for each channel of `scattering` the (scale, angle) of each of its wavelets, in the order of application.

    The first channel is the average S_0. The channels of S_1 follow, by scale and angle, and then those of S_2, by
    pair of scales and, for each of these, by both angles.

    Parameters
    ----------
    n_scales : int, default=3
    n_angles : int, default=8

    Examples
    --------
    >>> from mercer.image_features.scattering import scattering_paths
    >>> scattering_paths(2, 1)
    [(), ((0, 0),), ((1, 0),), ((0, 0), (1, 0))]
    """
    scales, angles = range(n_scales), range(n_angles)
    first = [((j, k),) for j in scales for k in angles]
    second = [((i, k), (j, m)) for i in scales for j in scales[i + 1 :] for k in angles for m in angles]
    return [(), *first, *second]


class _Filters(NamedTuple):
    """The filters of a scattering. Grid i has the centers of the cells of 2^i by 2^i pixels of the mirrored image.

    Attributes
    ----------
    psi : dict of (i, j) to a tensor of shape (L, h, w)
        The spectra of the wavelets of scale j that map values on grid i to values on grid j.
    phi : list of pairs of tensors, of shapes (cells, h) and (cells, w)
        phi[i] averages values on grid i around the centers of the cells that are kept, down columns and along rows.
    """

    psi: dict[tuple[int, int], Tensor]
    phi: list[tuple[Tensor, Tensor]]


def _scatter(x: Tensor, filters: _Filters) -> Tensor:
    """Return the coefficients of mirrored images, of shape (n, C, cells down, cells along)."""
    psi, phi = filters
    first, second = [], []
    spectrum = torch.fft.fft2(x)
    for i in range(len(phi)):
        u = _waves(spectrum, psi[0, i], 2**i)
        first.append(_average(u, phi[i]))
        inner = torch.fft.fft2(u)
        for j in range(i + 1, len(phi)):
            v = _waves(inner, psi[i, j], 2 ** (j - i))
            second.append(_average(v, phi[j]).flatten(1, 2))
    return torch.cat([_average(x, phi[0])[:, None], *first, *second], dim=1)


def _waves(spectrum: Tensor, psi: Tensor, step: int) -> Tensor:
    """Return |x * psi| at every `step`-th position in both directions, for each angle of psi, from the spectra."""
    # Frequencies that coincide on these positions are summed, so the FFT is that of a smaller image.
    aliases = [part.unflatten(-1, (step, -1)).unflatten(-3, (step, -1)) for part in (spectrum, psi)]
    return torch.fft.ifft2(torch.einsum("...ahbw,kahbw->...khw", *aliases) / step**2).abs()


def _average(u: Tensor, phi: tuple[Tensor, Tensor]) -> Tensor:
    return phi[0] @ u @ phi[1].T


def _mirrored(size: int, cell: int) -> Tensor:
    """Return the pixel at each position of a side that is mirrored to whole cells plus one cell at both ends."""
    total = (math.ceil(size / cell) + 2) * cell
    place = (torch.arange(total) - (total - size) // 2) % (2 * size)
    return torch.minimum(place, 2 * size - 1 - place)


def _filters(height: int, width: int, J: int, L: int, like: Tensor) -> _Filters:
    """Return all filters for mirrored images of the given size, with the type and device of `like`."""
    phi = [(_averages(height >> i, J - i), _averages(width >> i, J - i)) for i in range(J)]
    pairs = [(i, j) for i in range(J) for j in range(J) if i == 0 or j > i]
    psi = {(i, j): torch.fft.fft2(_wavelets(height >> i, width >> i, j - i, L)) for i, j in pairs}
    factor = _largest_factor([psi[0, j] for j in range(J)], phi[0])
    return _Filters(
        {key: (factor * value).to(like.device, like.dtype.to_complex()) for key, value in psi.items()},
        [(down.to(like), along.to(like)) for down, along in phi],
    )


def _wavelets(height: int, width: int, scale: int, L: int) -> Tensor:
    """Return Morlet wavelets of one scale and all L angles on a torus, of shape (L, height, width), with sum 0.

    psi(t) = g(t) (exp(i xi . t) - b), with a Gaussian g of sum 1 and b such that psi has sum 0. Convolutions are read
    at the first of every 2^scale positions, but must give the value at their center. Position r therefore has the value
    psi(r + the distance from the first position to the center).
    """
    sigma, xi, slant = WIDTH * 2**scale, FREQUENCY / 2**scale, SLANT / L
    reach = REACH * sigma * max(1.0, 1.0 / slant)
    y, x = (_unrolled(size, reach) + (2**scale - 1) / 2 for size in (height, width))
    result = []
    for angle in range(L):
        cos, sin = math.cos(math.pi * angle / L), math.sin(math.pi * angle / L)
        along, across = cos * x + sin * y[:, None], cos * y[:, None] - sin * x
        g = torch.exp((along.square() + (slant * across).square()) / (-2.0 * sigma**2))
        g /= g.sum()
        wave = torch.polar(g, xi * along)
        psi = wave - wave.sum() * g
        result.append(psi.unflatten(1, (-1, width)).sum(dim=1).unflatten(0, (-1, height)).sum(dim=0))
    return torch.stack(result)


def _averages(size: int, depth: int) -> Tensor:
    """Return Gaussian weights around the centers of cells of 2^depth positions on a circle, of shape (cells, size).

    The first and the last cell are left out, and each row sums to 1.
    """
    sigma = WIDTH * 2 ** (depth - 1)
    centers = (torch.arange(1, size // 2**depth - 1, dtype=torch.float64) + 0.5) * 2**depth - 0.5
    g = torch.exp((_unrolled(size, REACH * sigma) - centers[:, None]).square() / (-2.0 * sigma**2))
    g = g.unflatten(1, (-1, size)).sum(dim=1)
    return g / g.sum(dim=1, keepdim=True)


def _unrolled(size: int, reach: float) -> Tensor:
    """Return the positions of a line from -reach to reach, extended to whole turns around a circle of `size`."""
    turns = math.ceil(reach / size)
    return torch.arange(-turns * size, (turns + 1) * size, dtype=torch.float64)


def _largest_factor(psi: list[Tensor], phi: tuple[Tensor, Tensor]) -> float:
    """Return the largest c such that |phi^|^2 + c^2 sum |psi^|^2 is at most 1 at every frequency.

    A real image has the same strength at frequencies w and -w, so the mean of |psi^|^2 over both is used.
    """
    energy = torch.stack([spectra.abs().square().sum(dim=0) for spectra in psi]).sum(dim=0)
    energy = (energy + energy.flip(0, 1).roll((1, 1), (0, 1))) / 2
    down, along = (torch.fft.fft(weights[0]).abs().square() for weights in phi)
    left = 1.0 - down[:, None] * along
    # Frequency 0 is left out, since both are zero there.
    return math.sqrt((left / energy).flatten()[1:].min())
