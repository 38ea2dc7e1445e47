"""Wavelet scattering: against convolutions written out, and the invariances it is made for."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage
from sklearn.datasets import load_digits

from mercer.image_features.scattering import _filters, _mirrored, scattering, scattering_paths
from tests.examples_of import numbers

DIGITS = ndimage.zoom(load_digits().images[:6] / 16.0, (1, 4, 4), order=1)


def naive_morlet(shape, scale, angle, L, shift):
    """g(t) (exp(i xi . t) - b) at t = r + shift, wound up on a torus; g has sum 1, and b takes the sum to 0."""
    sigma, xi, slant = 0.8 * 2**scale, 0.75 * np.pi / 2**scale, 4 / L
    direction = np.array([np.sin(np.pi * angle / L), np.cos(np.pi * angle / L)])
    precision = slant**2 * np.eye(2) + (1 - slant**2) * np.outer(direction, direction)
    t = np.stack(np.meshgrid(*[np.arange(-8 * n, 8 * n) + shift for n in shape], indexing="ij"), axis=-1)
    g = np.exp(-0.5 * np.einsum("abi,ij,abj->ab", t, precision, t) / sigma**2)
    g /= g.sum()
    wave = g * np.exp(1j * xi * (t @ direction))
    psi = wave - g * wave.sum()
    return psi.reshape(16, shape[0], 16, shape[1]).sum(axis=(0, 2))


def naive_waves(u, psi, step):
    """|u * psi| on a torus at every step-th place, one sum a place."""
    h, w = u.shape
    places = [(y, x) for y in range(0, h, step) for x in range(0, w, step)]
    turned = psi[::-1, ::-1]
    sums = [abs((u * np.roll(turned, (y + 1, x + 1), axis=(0, 1))).sum()) for y, x in places]
    return np.reshape(sums, (h // step, w // step))


def naive_average(u, i, J):
    """A Gaussian average of grid i around the center of each cell of 2^J pixels, but for the outermost cells."""
    h, w = (size * 2**i // 2**J for size in u.shape)
    result = np.zeros((h - 2, w - 2))
    for a in range(1, h - 1):
        for b in range(1, w - 1):
            weights = 1.0
            for size, center in zip(u.shape, (a, b), strict=True):
                t = (np.arange(-8 * size, 8 * size) + 0.5) * 2**i - (center + 0.5) * 2**J
                g = np.exp(-0.5 * (t / (0.8 * 2 ** (J - 1))) ** 2).reshape(16, size).sum(axis=0)
                weights = np.multiply.outer(weights, g / g.sum())
            result[a - 1, b - 1] = (weights * u).sum()
    return result


def naive_factor(shape, J, L):
    """The largest factor of the wavelets with which no frequency comes out stronger than it went in."""
    phi = 1.0
    for size in shape:
        t = np.arange(-8 * size, 8 * size) - 1.5 * 2**J + 0.5
        phi = np.multiply.outer(phi, np.exp(-0.5 * (t / (0.4 * 2**J)) ** 2).reshape(16, size).sum(axis=0))
    left = 1 - np.abs(np.fft.fft2(phi / phi.sum())) ** 2
    energy = sum(
        np.abs(np.fft.fft2(naive_morlet(shape, j, k, L, (2**j - 1) / 2))) ** 2 for j in range(J) for k in range(L)
    )
    opposite = np.roll(energy[::-1, ::-1], (1, 1), axis=(0, 1))
    return np.sqrt((left / ((energy + opposite) / 2)).ravel()[1:].min())


def naive_scattering(image, J, L, everywhere=False):
    """The coefficients of one image; `everywhere` reads the waves at every pixel and not once a cell of their size."""
    total = [(math.ceil(n / 2**J) + 2) * 2**J for n in image.shape]
    x = np.pad(
        image, [((m - n) // 2, (m - n) - (m - n) // 2) for n, m in zip(image.shape, total, strict=True)], "symmetric"
    )
    factor = naive_factor(x.shape, J, L)

    def after(path):
        u, grid = x, 0
        for j, angle in path:
            step, shift = (1, 0.0) if everywhere else (2 ** (j - grid), (2 ** (j - grid) - 1) / 2)
            u = naive_waves(u, factor * naive_morlet(u.shape, j - grid, angle, L, shift), step)
            grid = 0 if everywhere else j
        return naive_average(u, grid, J)

    return np.array([after(path) for path in scattering_paths(J, L)])


@pytest.mark.parametrize(("shape", "J", "L"), [((6, 8), 1, 3), ((7, 5), 2, 2), ((3, 4), 2, 6), ((1, 9), 3, 1)])
def test_equals_convolutions_written_out(shape, J, L):
    image = numbers(*shape)
    expected = naive_scattering(image, J, L)
    assert_allclose(scattering(image[None], n_scales=J, n_angles=L)[0], expected, atol=1e-12 * np.abs(expected).max())


def test_reading_waves_once_a_cell_changes_little():
    image = DIGITS[0, ::2, ::2]
    everywhere = naive_scattering(image, 2, 4, everywhere=True)
    once = scattering(image[None], n_scales=2, n_angles=4)[0]
    for order in (slice(1, 9), slice(9, None)):
        assert np.linalg.norm(once[order] - everywhere[order]) < 0.02 * np.linalg.norm(everywhere[order])
    assert_allclose(once[0], everywhere[0])


@pytest.mark.parametrize(("J", "L"), [(1, 1), (1, 8), (2, 3), (3, 8), (4, 4)])
def test_channels_and_cells_are_counted(J, L):
    paths = scattering_paths(J, L)
    assert len(paths) == len(set(paths)) == 1 + J * L + L**2 * J * (J - 1) // 2
    assert all(second[0] > first[0] for first, second in (path for path in paths if len(path) == 2))
    made = scattering(numbers(2, 17, 32), n_scales=J, n_angles=L)
    assert made.shape == (2, len(paths), math.ceil(17 / 2**J), math.ceil(32 / 2**J))


@pytest.mark.parametrize("size", [(24, 32), (48, 24)])
@pytest.mark.parametrize("L", [1, 5, 8])
def test_wavelets_have_mean_0_and_no_frequency_is_made_stronger(size, L):
    filters = _filters(*size, 3, L, torch.zeros(0, dtype=torch.float64))
    for psi in filters.psi.values():
        assert psi[:, 0, 0].abs().max() < 1e-13
    down, along = (np.abs(np.fft.fft(weights[0].numpy())) ** 2 for weights in filters.phi[0])
    waves = sum((filters.psi[0, j].abs() ** 2).sum(dim=0).numpy() for j in range(3))
    both = np.outer(down, along) + (waves + np.roll(waves[::-1, ::-1], (1, 1), axis=(0, 1))) / 2
    assert_allclose(both[0, 0], 1.0)
    assert both.max() < 1 + 1e-12
    assert_allclose(both.ravel()[1:].max(), 1.0)


def test_wavelets_of_waves_are_scaled_as_the_first_are():
    filters = _filters(48, 48, 3, 4, torch.zeros(0, dtype=torch.float64))
    strongest = {key: psi.abs().amax() for key, psi in filters.psi.items()}
    assert set(strongest) == {(0, 0), (0, 1), (0, 2), (1, 2)}
    assert_allclose(strongest[1, 2], strongest[0, 1], rtol=0.02)


@pytest.mark.parametrize("J", [1, 2, 3])
def test_images_are_not_taken_further_apart(J):
    random = np.random.default_rng(0)
    pairs = [
        (DIGITS[:3], DIGITS[3:]),
        (random.normal(size=(3, 32, 32)), random.normal(size=(3, 32, 32))),
        (np.ones((1, 32, 32)), np.zeros((1, 32, 32))),
        (np.cos(2.3 * np.arange(32))[None, None] * np.ones((1, 32, 1)), DIGITS[:1]),
        (DIGITS[:3], 1.01 * DIGITS[:3]),
    ]
    places = _mirrored(32, 2**J).numpy()
    for x, y in pairs:
        after = 2**J * (scattering(x, n_scales=J) - scattering(y, n_scales=J))
        before = (x - y)[:, places][:, :, places]
        assert (np.linalg.norm(after.reshape(len(x), -1), axis=1) <= np.linalg.norm(before, axis=(1, 2))).all()


def test_what_is_constant_has_its_value_for_average_and_no_waves():
    made = scattering(np.full((1, 20, 13), -2.5))
    assert_allclose(made[:, 0], -2.5)
    assert_allclose(made[:, 1:], 0.0, atol=1e-12)


def test_coefficients_grow_with_the_image():
    made = scattering(DIGITS)
    assert_allclose(scattering(-3.0 * DIGITS)[:, 1:], 3.0 * made[:, 1:], atol=1e-12)
    assert_allclose(scattering(-3.0 * DIGITS)[:, 0], -3.0 * made[:, 0])
    assert (made[:, 1:] >= 0).all()


def test_moving_an_image_by_whole_cells_moves_the_maps():
    image = np.zeros((1, 64, 64))
    image[0, 20:30, 24:34] = numbers(10, 10)
    made = scattering(image, n_scales=2)
    moved = scattering(np.roll(image, (8, -4), axis=(1, 2)), n_scales=2)
    assert_allclose(moved, np.roll(made, (2, -1), axis=(2, 3)), atol=1e-4 * made.max())
    assert np.abs(moved - made).max() > 0.1 * made.max()


def test_small_moves_change_less_than_the_pixels_and_less_with_more_scales():
    images = np.pad(np.kron(DIGITS[:, ::4, ::4] > 0.5, np.ones((4, 4))), ((0, 0), (8, 8), (8, 8)))
    moved = np.roll(images, (1, 1), axis=(1, 2))

    def change(before, after):
        """How far a move takes images, as a share of how far they are from each other."""
        return np.linalg.norm(after - before) / np.linalg.norm(before - before.mean(axis=0))

    pairs = [(scattering(images, n_scales=J), scattering(moved, n_scales=J)) for J in (2, 3, 4)]
    for first in (0, 1):  # with the average of the pixels, and without
        two, three, four = (change(before[:, first:], after[:, first:]) for before, after in pairs)
        assert four < three < two < change(images, moved)
        assert four < 0.5 * change(images, moved)


def channels_of(paths, change):
    """The channel of each path after `change` is made to all of its angles."""
    return [paths.index(tuple((j, change(k)) for j, k in path)) for path in paths]


@pytest.mark.parametrize(("J", "L", "size"), [(3, 8, 28), (2, 6, 10), (1, 2, 4), (2, 4, 16)])
def test_turning_a_square_image_turns_the_maps_and_the_angles(J, L, size):
    images = numbers(2, size, size)
    turned = scattering(np.rot90(images, axes=(1, 2)), n_scales=J, n_angles=L)
    made = scattering(images, n_scales=J, n_angles=L)
    order = channels_of(scattering_paths(J, L), lambda k: (k + L // 2) % L)
    assert_allclose(turned, np.rot90(made[:, order], axes=(2, 3)), atol=1e-12)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("L", [5, 8])
def test_flipping_an_image_flips_the_maps_and_the_angles(axis, L):
    images = numbers(2, 20, 28)
    flipped = scattering(np.flip(images, axis), n_scales=2, n_angles=L)
    order = channels_of(scattering_paths(2, L), lambda k: -k % L)
    expected = np.flip(scattering(images, n_scales=2, n_angles=L)[:, order], axis + 1)
    assert_allclose(flipped, expected, atol=1e-12)


@pytest.mark.parametrize(("j", "angle"), [(0, 0), (1, 2), (1, 3), (2, 1)])
def test_a_wave_is_strongest_in_the_channel_of_its_scale_and_angle(j, angle):
    y, x = np.mgrid[:64, :64]
    direction = np.pi * angle / 4
    wave = np.cos(0.75 * np.pi / 2**j * (np.cos(direction) * x + np.sin(direction) * y))
    made = scattering(wave[None], n_angles=4)[0, 1:13, 2:-2, 2:-2].mean(axis=(1, 2))
    assert scattering_paths(3, 4)[1 + made.argmax()] == ((j, angle),)


def test_blocks_change_nothing():
    images = numbers(7, 12, 9)
    whole = scattering(images, n_scales=2, n_angles=3)
    for working_memory in (1e-6, 0.2):
        assert_allclose(scattering(images, n_scales=2, n_angles=3, working_memory=working_memory), whole, atol=1e-14)


def test_what_comes_in_comes_out():
    images = numbers(3, 8, 8)
    expected = scattering(images, n_scales=2)
    assert isinstance(expected, np.ndarray)
    assert_array_equal(scattering(images.tolist(), n_scales=2), expected)
    tensor = scattering(torch.from_numpy(images), n_scales=2)
    assert isinstance(tensor, torch.Tensor)
    assert_array_equal(tensor.numpy(), expected)
    single = scattering(images.astype(np.float32), n_scales=2)
    assert single.dtype == np.float32
    assert_allclose(single, expected, atol=1e-5)
    assert scattering(torch.zeros(1, 8, 8, dtype=torch.float16)).dtype == torch.float32
    whole = (100 * images).astype(np.int64)
    assert_array_equal(scattering(whole), scattering(whole.astype(np.float64)))
    assert scattering(images[:0], n_scales=2).shape == (0, *expected.shape[1:])


def test_images_are_not_written_to():
    images = numbers(2, 8, 8)
    before = images.copy()
    scattering(images)
    assert_array_equal(images, before)


@pytest.mark.parametrize(
    ("images", "settings", "message"),
    [
        (np.zeros((4, 64)), {}, r"shape \(4, 64\): gray images are needed, \(n, height, width\)"),
        (np.zeros((4, 8, 8, 3)), {}, r"shape \(4, 8, 8, 3\): gray images"),
        (np.zeros((4, 0, 8)), {}, r"shape \(4, 0, 8\)"),
        (np.full((2, 8, 8), np.nan), {}, "NaN or infinite"),
        (np.full((2, 8, 8), -np.inf), {}, "NaN or infinite"),
        (np.full((2, 8, 8), "dark"), {}, "could not convert"),
        (np.zeros((2, 8, 8)), {"n_scales": 0}, "n_scales=0 .* at least 1 and at most 3"),
        (np.zeros((2, 8, 9)), {"n_scales": 5}, "n_scales=5 .* at most 4 .one cell then holds the whole image"),
        (np.zeros((2, 8, 8)), {"n_angles": 2.5}, r"n_angles=2\.5 .* whole number"),
        (np.zeros((2, 8, 8)), {"working_memory": 0}, "working_memory=0 .* above 0"),
    ],
)
def test_bad_input_is_named(images, settings, message):
    with pytest.raises(ValueError, match=message):
        scattering(images, **settings)


def test_tiny_images_work():
    made = scattering(np.array([[[3.0]]]), n_scales=1)
    assert made.shape == (1, 9, 1, 1)
    assert_allclose(made.ravel(), [3.0] + 8 * [0.0], atol=1e-12)
