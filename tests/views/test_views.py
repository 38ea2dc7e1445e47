"""Views: laws run over all of them, naive twins of each, and the draws read off what they do."""

import inspect

import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from sklearn.base import clone

import mercer.views
from mercer.views import (
    Affine,
    Blur,
    Chain,
    Color,
    Crop,
    Elastic,
    FeatureDropping,
    FeatureSwapping,
    Flip,
    GaussianNoise,
    Gray,
    Identity,
    ImageView,
    Reshaped,
    Shift,
    View,
    check_view,
)
from mercer.views.affine import affine_images
from mercer.views.blur import blur_images
from mercer.views.color import YIQ, color_images, luminance
from mercer.views.crop import crop_images
from mercer.views.elastic import elastic_images, smooth_factor
from mercer.views.shift import shift_images
from tests.examples_of import numbers
from tests.model_files import there_and_back, value_there_and_back

TABLE = (5,)
GRAY = (9, 12)
ONE_CHANNEL = (9, 12, 1)
COLOR = (9, 12, 3)
FIVE_CHANNELS = (9, 12, 5)
IMAGES = (GRAY, ONE_CHANNEL, COLOR, FIVE_CHANNELS)

# name -> view, and the shapes of the samples that it takes
VIEWS = {
    "identity": (Identity(), (TABLE, GRAY, COLOR)),
    "noise": (GaussianNoise(0.3), (TABLE, GRAY, COLOR)),
    "dropping": (FeatureDropping(0.4), (TABLE, GRAY, COLOR)),
    "dropping_to_a_value": (FeatureDropping(0.4, fill=-1.5), (TABLE,)),
    "swapping": (FeatureSwapping(0.4), (TABLE, GRAY, COLOR)),
    "shift": (Shift(3), IMAGES),
    "shift_filled": (Shift(2, fill=0.5), IMAGES),
    "flip": (Flip(), IMAGES),
    "crop": (Crop(0.3), IMAGES),
    "affine": (Affine(), IMAGES),
    "affine_strong": (Affine(degrees=180.0, scale=0.5, shift=0.3, shear=20.0, fill=0.5), IMAGES),
    "elastic": (Elastic(), IMAGES),
    "elastic_filled": (Elastic(strength=3.0, smoothness=2.0, fill=0.0), IMAGES),
    "color": (Color(), (GRAY, ONE_CHANNEL, COLOR)),
    "brightness_and_contrast": (Color(0.3, 0.2, saturation=0.0, hue=0.0, probability=1.0), IMAGES),
    "gray": (Gray(0.5), (COLOR,)),
    "blur": (Blur(), IMAGES),
    "blur_of_one_width": (Blur(1.5), IMAGES),
    "chain": (Chain([GaussianNoise(0.1), FeatureDropping()]), (TABLE, GRAY, COLOR)),
    "chain_of_none": (Chain([]), (TABLE, COLOR)),
    "chain_of_chains": (Chain((Chain([Crop(), Flip()]), Color(), Blur())), (GRAY, COLOR)),
    "reshaped": (Reshaped(Chain([Affine(), GaussianNoise()]), (3, 4, 2)), ((24,),)),
}
PUBLIC = [getattr(mercer.views, name) for name in mercer.views.__all__]
CONCRETE = {
    kind for kind in PUBLIC if inspect.isclass(kind) and issubclass(kind, View) and not inspect.isabstract(kind)
}
# A view that is new comes in by itself, with its defaults.
for kind in CONCRETE - {type(view) for view, _ in VIEWS.values()}:
    VIEWS[kind.__name__] = (kind(), IMAGES if issubclass(kind, ImageView) else (TABLE, GRAY, COLOR))
RANDOM = {name: entry for name, entry in VIEWS.items() if name not in ("identity", "chain_of_none")}

# What moves pixels, or mixes them, with weights that sum to 1.
SPATIAL = ("shift", "flip", "crop", "affine", "elastic", "blur", "blur_of_one_width")

# Two or a few outcomes are possible, so that samples may meet the same fate; others have a continuum of them.
FEW_OUTCOMES = ("dropping", "dropping_to_a_value", "shift", "shift_filled", "flip", "gray", "blur_of_one_width")

ZERO_STRENGTH = {
    "noise": (GaussianNoise(0.0), COLOR),
    "dropping": (FeatureDropping(0.0, fill=7.0), TABLE),
    "swapping": (FeatureSwapping(0.0), TABLE),
    "shift": (Shift(0, fill=7.0), COLOR),
    "flip": (Flip(0.0), COLOR),
    "crop": (Crop(1.0), COLOR),
    "affine": (Affine(0.0, 0.0, 0.0, 0.0), COLOR),
    "affine_filled": (Affine(0.0, 0.0, 0.0, 0.0, fill=7.0), COLOR),
    "elastic": (Elastic(0.0), COLOR),
    "elastic_filled": (Elastic(0.0, fill=7.0), COLOR),
    "color": (Color(0.0, 0.0, 0.0, 0.0), COLOR),
    "color_never": (Color(probability=0.0), COLOR),
    "color_of_gray": (Color(0.0, 0.0, 0.9, 0.5), GRAY),
    "gray": (Gray(0.0), COLOR),
    "blur": (Blur(0.0), COLOR),
    "blur_never": (Blur(probability=0.0), COLOR),
    "chain": (Chain([]), TABLE),
}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def samples(n, shape, dtype=torch.float32, seed=0):
    return torch.from_numpy(numbers(n, *shape, seed=seed)).to(dtype)


def cases(views):
    return [
        pytest.param(view, shape, id=f"{name}-{'x'.join(map(str, shape))}")
        for name, (view, shapes) in views.items()
        for shape in shapes
    ]


every_view = pytest.mark.parametrize(("view", "shape"), cases(VIEWS))
every_random_view = pytest.mark.parametrize(("view", "shape"), cases(RANDOM))
every_spatial_view = pytest.mark.parametrize(("view", "shape"), cases({name: VIEWS[name] for name in SPATIAL}))


# ---- laws --------------------------------------------------------------------------------------------------


def test_every_view_has_a_strength_of_zero():
    """The laws run over a new view by themselves; under which parameters it changes nothing must be said."""
    missing = CONCRETE - {type(view) for view, _ in ZERO_STRENGTH.values()} - {Identity, Reshaped}
    assert not missing, f"ZERO_STRENGTH lacks {missing}: add each with the parameters under which it changes nothing."


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_view
def test_shape_and_type_stay_and_the_argument_is_left_alone(view, shape, dtype):
    batch = samples(6, shape, dtype)
    before = batch.clone()
    result = view(batch, seeded())
    assert result.shape == batch.shape
    assert result.dtype == dtype
    assert result.isfinite().all()
    result.add_(1.0)
    assert torch.equal(batch, before)


@every_random_view
def test_all_chance_comes_from_the_generator(view, shape):
    batch, generator = samples(30, shape), seeded(3)
    state = torch.get_rng_state()
    first, second = view(batch, generator), view(batch, generator)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(view(batch, seeded(3)), first)
    assert not torch.equal(second, first)
    assert not torch.equal(view(batch, seeded(4)), first)
    assert not torch.equal(first, batch)


@pytest.mark.parametrize(
    ("view", "shape", "few"),
    [
        pytest.param(view, shape, name in FEW_OUTCOMES, id=f"{name}-{'x'.join(map(str, shape))}")
        for name, (view, shapes) in RANDOM.items()
        for shape in shapes
        if name != "swapping"  # equal samples have nothing to swap
    ],
)
def test_every_sample_has_its_own_draw(view, shape, few):
    """Thirty copies of one sample become different ones; those that chance leaves alone are set aside."""
    batch = samples(1, shape).expand(30, *shape)
    result = view(batch, seeded())
    changed = result[(result - batch).flatten(1).abs().amax(dim=1) > 1e-5]
    assert len(changed) > 5
    outcomes = len(torch.unique(result, dim=0))
    assert outcomes > 1
    assert few or len(torch.unique(changed, dim=0)) == len(changed), (
        "two samples met the same fate: a view of which only so many outcomes are possible goes into FEW_OUTCOMES"
    )


@pytest.mark.parametrize(("view", "shape"), cases({name: entry for name, entry in VIEWS.items() if name != "swapping"}))
def test_a_sample_does_not_depend_on_its_neighbors(view, shape):
    batch = samples(5, shape)
    other = batch.clone()
    other[2] = 10.0 * samples(1, shape, seed=1)[0] + 3.0
    result, of_other = view(batch, seeded(1)), view(other, seeded(1))
    rest = [0, 1, 3, 4]
    assert torch.equal(result[rest], of_other[rest])
    assert not torch.equal(result[2], of_other[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ZERO_STRENGTH)
def test_zero_strength_is_the_identity(name, dtype):
    view, shape = ZERO_STRENGTH[name]
    batch = samples(20, shape, dtype)
    atol = 1e-5 if dtype is torch.float32 else 1e-12
    torch.testing.assert_close(view(batch, seeded()), batch, rtol=0.0, atol=atol)


@every_spatial_view
def test_spatial_views_are_linear_and_keep_constants(view, shape):
    """With the edge repeated, no value comes from outside and the weights sum to 1, the channels alike."""
    x, y = samples(8, shape, torch.float64), samples(8, shape, torch.float64, seed=1)
    combined = view(2.0 * x - 3.0 * y + 0.7, seeded())
    separately = 2.0 * view(x, seeded()) - 3.0 * view(y, seeded()) + 0.7
    torch.testing.assert_close(combined, separately, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("name", [*SPATIAL, "affine_strong", "elastic_filled", "shift_filled"])
def test_channels_move_together(name):
    view = VIEWS[name][0]
    batch = samples(8, (*GRAY, 4), torch.float64)
    result = view(batch, seeded())
    for c in range(4):
        torch.testing.assert_close(result[..., c], view(batch[..., c], seeded()), rtol=0.0, atol=1e-12)


@every_view
def test_no_samples_one_sample_and_strided_memory(view, shape):
    assert view(samples(0, shape), seeded()).shape == (0, *shape)
    assert view(samples(1, shape), seeded()).shape == (1, *shape)
    batch = samples(4, shape)
    strided = batch.movedim(0, -1).contiguous().movedim(-1, 0)
    torch.testing.assert_close(view(strided, seeded()), view(batch, seeded()), rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_values(name, tmp_path):
    view = VIEWS[name][0]
    assert eval(repr(view), vars(mercer.views)) == view
    assert clone(view) == view
    assert clone(view) is not view
    # As the parameter and as an attribute of an estimator.
    assert value_there_and_back(view, tmp_path) == view
    assert there_and_back(view, tmp_path) == view
    others = [other for other, _ in VIEWS.values() if other is not view]
    assert all(view != other for other in others)


def test_equality_looks_at_every_parameter():
    assert Affine(degrees=5.0) != Affine(degrees=6.0)
    assert Affine(fill=1.0) != Affine()
    assert Chain([Flip(), Crop()]) != Chain([Crop(), Flip()])
    assert Chain([Flip(), Crop()]) == Chain([Flip(), Crop()])
    assert Reshaped(Flip(), (2, 3)) != Reshaped(Flip(0.1), (2, 3))
    assert Flip() != FeatureDropping(0.5)
    assert Reshaped(Flip(0.1), (2, 3)).get_params()["view__probability"] == 0.1


def halved(batch, generator):
    return batch / 2.0


def test_a_chain_with_a_function_of_the_user_is_saved_without_it(tmp_path):
    chain = Chain([halved, GaussianNoise(0.2)])
    loaded = there_and_back(chain, tmp_path, views__0=halved)
    assert loaded == chain
    batch = samples(4, TABLE)
    assert torch.equal(loaded(batch, seeded()), chain(batch, seeded()))


# Each parameter, changed from the default, changes the result: none is dead.
PARAMETERS = [
    (GaussianNoise(), GaussianNoise(scale=0.2), TABLE),
    (FeatureDropping(), FeatureDropping(probability=0.9), TABLE),
    (FeatureDropping(0.5), FeatureDropping(0.5, fill=3.0), TABLE),
    (FeatureSwapping(), FeatureSwapping(probability=0.9), TABLE),
    (Shift(), Shift(pixels=4), GRAY),
    (Shift(), Shift(fill=0.0), GRAY),
    (Flip(), Flip(probability=1.0), GRAY),
    (Crop(), Crop(smallest=0.2), GRAY),
    *[
        (Affine(), Affine(**change), GRAY)
        for change in ({"degrees": 20.0}, {"scale": 0.3}, {"shift": 0.3}, {"shear": 9.0}, {"fill": 0.0})
    ],
    *[(Elastic(), Elastic(**change), GRAY) for change in ({"strength": 2.0}, {"smoothness": 2.0}, {"fill": 0.0})],
    *[
        (Color(), Color(**{name: 0.2}), COLOR)
        for name in ("brightness", "contrast", "saturation", "hue", "probability")
    ],
    (Gray(), Gray(probability=1.0), COLOR),
    (Blur(), Blur(sigma=(0.1, 1.0)), GRAY),
    (Blur(), Blur(probability=1.0), GRAY),
]


@pytest.mark.parametrize(("view", "changed", "shape"), PARAMETERS)
def test_no_parameter_is_dead(view, changed, shape):
    batch = samples(20, shape)
    assert not torch.allclose(view(batch, seeded()), changed(batch, seeded()))


def test_every_parameter_is_among_those_changed():
    covered = {
        (type(view), name)
        for view, changed, _ in PARAMETERS
        for name, value in changed.get_params(deep=False).items()
        if value != view.get_params(deep=False)[name]
    }
    kinds = {type(view) for view, _ in VIEWS.values()} - {Chain, Reshaped}
    missing = {(kind, name) for kind in kinds for name in kind().get_params(deep=False)} - covered
    assert not missing, f"PARAMETERS lacks {missing}: add the view with the parameter changed."


# ---- tables ------------------------------------------------------------------------------------------------


def test_noise_has_its_scale_and_is_independent():
    batch = samples(5000, (4,), torch.float64)
    noise = (GaussianNoise(0.3)(batch, seeded()) - batch).numpy()
    np.testing.assert_allclose(np.cov(noise.T), 0.09 * np.eye(4), atol=0.007)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.02)
    assert stats.kstest(noise.ravel() / 0.3, "norm").pvalue > 1e-3


def test_features_are_dropped_at_the_rate_asked_for():
    batch = samples(5000, (4,)) + 100.0
    result = FeatureDropping(0.3, fill=-7.0)(batch, seeded())
    dropped = result == -7.0
    assert torch.equal(result[~dropped], batch[~dropped])
    np.testing.assert_allclose(dropped.double().mean(dim=0), 0.3, atol=0.03)
    # Each value has its own chance: rows lose 0 to 4, not all or none.
    counts = torch.bincount(dropped.sum(dim=1), minlength=5) / len(batch)
    np.testing.assert_allclose(counts, stats.binom.pmf(range(5), 4, 0.3), atol=0.03)


def test_features_are_swapped_within_their_column_and_with_others_only():
    n, d = 6, 5000
    batch = (torch.arange(n)[:, None] * d + torch.arange(d)).double()
    result = FeatureSwapping(0.4)(batch, seeded())
    assert torch.equal(result % d, batch % d)
    donors = (result // d).long()
    shares = torch.stack([torch.bincount(row, minlength=n) for row in donors]) / d
    expected = np.full((n, n), 0.4 / (n - 1)) + np.diag(np.full(n, 0.6 - 0.4 / (n - 1)))
    np.testing.assert_allclose(shares, expected, atol=0.03)
    assert not (FeatureSwapping(1.0)(batch, seeded()) == batch).any()


# ---- reading off what a view did ---------------------------------------------------------------------------


def sources(view, n=400, height=40, width=60, seed=0):
    """Where each pixel of the result was taken from, (n, h, w, 2) as (x, y) in pixels from the center.

    The images hold their own coordinates, which linear interpolation reproduces wherever the edge is not touched.
    """
    coordinates = centered(height, width)
    return view(torch.from_numpy(coordinates).expand(n, height, width, 2), seeded(seed)).numpy(), coordinates


def centered(height, width):
    y, x = np.mgrid[:height, :width].astype(float)
    return np.stack([x - (width - 1) / 2, y - (height - 1) / 2], axis=2)


def read_affine(view, **options):
    """The matrices and offsets with source = matrix p + offset, from a few pixels in the middle."""
    found, p = sources(view, **options)
    height, width = p.shape[:2]
    i, j = height // 2, width // 2
    matrix = np.stack([found[:, i, j + 1] - found[:, i, j], found[:, i + 1, j] - found[:, i, j]], axis=2)
    return matrix, found[:, i, j] - matrix @ p[i, j]


def is_uniform(values, low, high):
    return stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > 1e-3


def interpolated(image, places, mode="nearest", cval=0.0):
    """The value of an image at each place (x, y), in pixels from its center."""
    y = places[..., 1] + (image.shape[0] - 1) / 2
    x = places[..., 0] + (image.shape[1] - 1) / 2
    return ndimage.map_coordinates(image, [y, x], order=1, mode=mode, cval=cval)


def number(value):
    return torch.tensor([value], dtype=torch.float64)


def one_image(*shape, seed=0):
    """An image in NumPy, and as a batch with its channels first."""
    image = numbers(*shape, seed=seed)
    return image, torch.from_numpy(image)[None, None]


# ---- images: geometry --------------------------------------------------------------------------------------


@pytest.mark.parametrize("right", [-2, 0, 3])
@pytest.mark.parametrize("down", [-4, 0, 1])
def test_shift_against_roll(right, down):
    image, batch = one_image(6, 5)
    move = torch.tensor([right]), torch.tensor([down])
    rolled = np.roll(image, (down, right), axis=(0, 1))
    outside = np.ones_like(image, dtype=bool)
    outside[max(down, 0) : 6 + min(down, 0), max(right, 0) : 5 + min(right, 0)] = False
    np.testing.assert_array_equal(shift_images(batch, *move, 7.0)[0, 0], np.where(outside, 7.0, rolled))
    padded = np.pad(image, 5, mode="edge")[5 - down : 11 - down, 5 - right : 10 - right]
    np.testing.assert_array_equal(shift_images(batch, *move)[0, 0], padded)


def test_shifts_are_uniform_over_all_places():
    matrix, offset = read_affine(Shift(2), n=5000, height=8, width=10)
    np.testing.assert_array_equal(matrix, np.broadcast_to(np.eye(2), matrix.shape))
    moves, counts = np.unique(offset, axis=0, return_counts=True)
    np.testing.assert_array_equal(moves, [[x, y] for x in range(-2, 3) for y in range(-2, 3)])
    assert stats.chisquare(counts).pvalue > 1e-3


def test_flip_mirrors_left_and_right():
    batch = samples(2000, (3, 4))
    result = Flip(0.3)(batch, seeded()).numpy()
    flipped = (result == batch.numpy()[:, :, ::-1]).all(axis=(1, 2))
    np.testing.assert_array_equal(result[~flipped], batch.numpy()[~flipped])
    assert abs(flipped.mean() - 0.3) < 0.04
    color = samples(3, COLOR)
    np.testing.assert_array_equal(Flip(1.0)(color, seeded()), color.numpy()[:, :, ::-1])


def affine_of(batch, angle=0.0, scale=1.0, shear=0.0, shift=(0.0, 0.0), fill=None):
    shifts = torch.tensor([shift], dtype=torch.float64)
    return affine_images(batch, number(angle), number(scale), number(shear), shifts, fill)[0, 0].numpy()


def test_turns_by_right_angles():
    image, batch = one_image(7, 7)
    for quarters in range(-1, 4):
        np.testing.assert_allclose(affine_of(batch, 90.0 * quarters), np.rot90(image, quarters), atol=1e-10)
    image, batch = one_image(5, 8)
    np.testing.assert_allclose(affine_of(batch, 180.0), image[::-1, ::-1], atol=1e-10)


def test_affine_shift_is_a_share_of_the_size_to_the_right_and_down():
    image, batch = one_image(5, 8)
    expected = np.full_like(image, 7.0)
    expected[1:, 2:] = image[:-1, :-2]
    np.testing.assert_allclose(affine_of(batch, shift=(2 / 8, 1 / 5), fill=7.0), expected, atol=1e-10)


@pytest.mark.parametrize(("fill", "mode"), [(None, "nearest"), (0.0, "grid-constant"), (-0.7, "grid-constant")])
def test_affine_against_its_formula(fill, mode):
    """p -> s R K p + t, inverted numerically, on an image that is not square."""
    height, width, angle, scale, shear, shift = 9, 14, 25.0, 0.8, 15.0, (0.1, -0.2)
    image, batch = one_image(height, width)
    turn, slope = np.deg2rad(angle), np.tan(np.deg2rad(shear))
    R = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])  # counter-clockwise, y down
    forward = scale * R @ np.array([[1.0, slope], [0.0, 1.0]])
    back = (centered(height, width) - np.multiply(shift, (width, height))) @ np.linalg.inv(forward).T
    expected = interpolated(image, back, mode, cval=fill or 0.0)
    np.testing.assert_allclose(affine_of(batch, angle, scale, shear, shift, fill), expected, atol=1e-10)


def test_affine_draws_are_uniform_in_their_ranges():
    matrix, _ = read_affine(Affine(degrees=30.0, scale=0.2, shift=0.0, shear=10.0))
    forward = np.linalg.inv(matrix)
    scale = np.sqrt(np.linalg.det(forward))
    angle = np.rad2deg(np.arctan2(-forward[:, 1, 0], forward[:, 0, 0]))
    first, second = forward[:, :, 0], forward[:, :, 1]
    shear = np.rad2deg(np.arctan((first * second).sum(axis=1) / scale**2))
    assert is_uniform(scale, 0.8, 1.2)
    assert is_uniform(angle, -30.0, 30.0)
    assert is_uniform(shear, -10.0, 10.0)
    assert abs(np.corrcoef([scale, angle, shear]) - np.eye(3)).max() < 0.2


def test_affine_shifts_are_uniform_in_their_range():
    matrix, offset = read_affine(Affine(degrees=0.0, scale=0.0, shift=0.1), height=40, width=60)
    np.testing.assert_allclose(matrix, np.broadcast_to(np.eye(2), matrix.shape), atol=1e-9)
    assert is_uniform(-offset[:, 0], -6.0, 6.0)
    assert is_uniform(-offset[:, 1], -4.0, 4.0)
    assert abs(np.corrcoef(offset.T)[0, 1]) < 0.2


@pytest.mark.parametrize(
    ("area", "aspect", "place"), [(0.5, 1.0, (0.3, -0.8)), (0.9, -1.0, (1.0, 1.0)), (1.0, 1.0, (1, 1))]
)
def test_crop_against_its_box(area, aspect, place):
    height, width = 9, 14
    image, batch = one_image(height, width)
    ratio = min(4 / 3, 1 / area) ** aspect
    sides = np.sqrt([area * ratio, area / ratio])
    assert sides.max() <= 1.0 + 1e-12
    room = (1.0 - sides) / 2.0 * (width, height)
    expected = interpolated(image, centered(height, width) * sides + room * place)
    places = torch.tensor([place], dtype=torch.float64)
    np.testing.assert_allclose(crop_images(batch, number(area), number(aspect), places)[0, 0], expected, atol=1e-10)


def test_crops_have_the_areas_ratios_and_places_asked_for():
    height, width = 40, 60
    matrix, offset = read_affine(Crop(0.3), n=1000, height=height, width=width)
    sides = matrix[:, [0, 1], [0, 1]]
    np.testing.assert_allclose(matrix[:, [0, 1], [1, 0]], 0.0, atol=1e-9)
    area, ratio = sides.prod(axis=1), sides[:, 0] / sides[:, 1]
    assert is_uniform(area, 0.3, 1.0)
    small = area < 0.75  # all ratios fit
    assert is_uniform(np.log(ratio[small]), -np.log(4 / 3), np.log(4 / 3))
    assert (sides <= 1.0 + 1e-9).all()
    room = (1.0 - sides) / 2.0 * (width, height)
    for axis in range(2):
        place = (offset / room)[sides[:, axis] < 0.99, axis]
        assert is_uniform(place, -1.0, 1.0)


def test_elastic_against_its_displacements():
    height, width = 9, 14
    image, batch = one_image(height, width)
    moves = 2.0 * numbers(2, height, width, seed=1)
    expected = interpolated(image, centered(height, width) + np.moveaxis(moves, 0, 2))
    np.testing.assert_allclose(elastic_images(batch, torch.from_numpy(moves)[None])[0, 0], expected, atol=1e-10)
    filled = interpolated(image, centered(height, width) + np.moveaxis(moves, 0, 2), "grid-constant", cval=2.0)
    np.testing.assert_allclose(elastic_images(batch, torch.from_numpy(moves)[None], 2.0)[0, 0], filled, atol=1e-10)


@pytest.mark.parametrize("size", [1, 28, 70])
def test_few_directions_stand_for_smoothed_noise(size):
    """Their covariance is that of noise smoothed within the image and scaled to variance 1, up to the edges."""
    i = np.arange(size)
    M = np.exp(-0.5 * ((i[:, None] - i) / 4.0) ** 2)
    M /= np.sqrt((M**2).sum(axis=1, keepdims=True))
    A = smooth_factor(size, 4.0, torch.zeros(0, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(A @ A.T, M @ M.T, atol=1e-4)
    assert A.shape[1] <= 1 + size / 2.5


@pytest.mark.parametrize("smoothness", [2.0, 4.0])
def test_elastic_displacements_have_their_strength_and_smoothness(smoothness):
    """Of white noise smoothed by a Gaussian, values at a distance r correlate by exp(-r^2 / (4 s^2))."""
    found, p = sources(Elastic(strength=0.5, smoothness=smoothness), n=2000, height=30, width=44)
    moves = (found - p)[:, 4:-4, 4:-4]  # so far inside that no displacement reaches the edge
    np.testing.assert_allclose(moves.std(axis=0), 0.5, atol=0.06)
    np.testing.assert_allclose(moves.mean(axis=0), 0.0, atol=0.06)
    middle = moves[:, 11, 18]
    for axis in range(2):
        assert stats.kstest(middle[:, axis] / 0.5, "norm").pvalue > 1e-3
        for r in (1, 3, 6):
            expected = np.exp(-((r / smoothness) ** 2) / 4.0)
            for other in (moves[:, 11 + r, 18], moves[:, 11, 18 + r]):
                assert abs(np.corrcoef(middle[:, axis], other[:, axis])[0, 1] - expected) < 0.08
    assert abs(np.corrcoef(middle.T)[0, 1]) < 0.08


# ---- images: values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("width", [0.3, 1.0, 2.5])
def test_blur_against_scipy(axis, width):
    image, batch = one_image(9, 14)
    both = blur_images(batch, number(width), radius=7)[0, 0].numpy()
    along = ndimage.gaussian_filter1d(image, width, axis=axis, mode="nearest", radius=7)
    expected = ndimage.gaussian_filter1d(along, width, axis=1 - axis, mode="nearest", radius=7)
    np.testing.assert_allclose(both, expected, atol=1e-12)


def test_blur_reaches_as_far_as_scipys():
    image, batch = one_image(20, 24)
    result = Blur(1.6, probability=1.0)(batch[0], seeded())
    np.testing.assert_allclose(result[0], ndimage.gaussian_filter(image, 1.6, mode="nearest"), atol=1e-12)


def test_blur_widths_are_uniform_in_their_range():
    """The width is read off a single bright pixel, whose image has the variance sigma^2 in both directions."""
    size = 41
    batch = torch.zeros(1500, size, size, dtype=torch.float64)
    batch[:, size // 2, size // 2] = 1.0
    result = Blur((1.0, 2.0), probability=0.6)(batch, seeded()).numpy()
    place = np.arange(size) - size // 2
    variances = [(result.sum(axis=axis) * place**2).sum(axis=1) for axis in (1, 2)]
    np.testing.assert_allclose(variances[0], variances[1], atol=1e-9)
    sharp = variances[0] < 1e-9
    assert abs(sharp.mean() - 0.4) < 0.05
    # Within a pixel the sampled Gaussian is not quite the continuous one; at widths from 1 on it is, to 1e-3.
    assert is_uniform(np.sqrt(variances[0][~sharp]), 1.0, 2.0)


def naive_color(image, brightness, contrast, saturation, turn):
    """Pixel by pixel: values scaled, then pulled to the mean gray, then their color scaled and turned."""
    T, angle = np.array(YIQ), 2.0 * np.pi * turn
    image = brightness * image
    mean = np.mean([T[0] @ pixel for pixel in image.reshape(-1, 3)])
    image = mean + contrast * (image - mean)
    result = np.empty_like(image)
    for i, j in np.ndindex(image.shape[:2]):
        y, a, b = T @ image[i, j]
        color = saturation * np.exp(1j * angle) * (a + 1j * b)
        result[i, j] = np.linalg.solve(T, [y, color.real, color.imag])
    return result


@pytest.mark.parametrize(
    "amounts",
    [(1.3, 1.0, 1.0, 0.0), (1.0, 0.4, 1.0, 0.0), (1.0, 1.0, 1.7, 0.0), (1.0, 1.0, 1.0, 0.2), (0.7, 1.5, 0.3, -0.4)],
)
def test_color_against_pixel_by_pixel(amounts):
    image = np.random.default_rng(0).random((4, 5, 3))
    batch = torch.from_numpy(image).movedim(2, 0)[None]
    result = color_images(batch, *map(number, amounts))[0].movedim(0, 2)
    np.testing.assert_allclose(result, naive_color(image, *amounts), atol=1e-12)


def test_turning_colors():
    red = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64).reshape(1, 3, 1, 1)
    turned = [
        color_images(red, number(1.0), number(1.0), number(1.0), number(t)).flatten() for t in (1 / 3, 2 / 3, 1.0)
    ]
    assert {int(color.argmax()) for color in turned[:2]} == {1, 2}  # green and blue, as on the color circle
    torch.testing.assert_close(turned[2], red.flatten())
    for color in turned:
        torch.testing.assert_close(luminance(color.reshape(1, 3, 1, 1)), luminance(red))


def test_luminance_is_that_of_pillow_and_matplotlib():
    weights = luminance(torch.eye(3, dtype=torch.float64)[:, :, None, None]).flatten()
    np.testing.assert_allclose(weights, [0.299, 0.587, 0.114])
    assert np.isclose(np.sum(YIQ[1]), 0.0, atol=1e-12)  # gray has no color
    assert np.isclose(np.sum(YIQ[2]), 0.0, atol=1e-12)


def test_brightness_factors_are_uniform_and_some_images_are_left_alone():
    batch = samples(1500, (4, 5, 3), torch.float64)
    result = Color(0.4, 0.0, 0.0, 0.0, probability=0.7)(batch, seeded())
    factors = (result / batch).flatten(1).numpy()
    np.testing.assert_allclose(factors, np.broadcast_to(factors[:, :1], factors.shape), rtol=1e-9)
    alone = np.isclose(factors[:, 0], 1.0, rtol=1e-9)
    assert abs(alone.mean() - 0.3) < 0.05
    assert is_uniform(factors[~alone, 0], 0.6, 1.4)


def test_contrast_keeps_the_mean_gray_of_each_image():
    for shape in (COLOR, GRAY, FIVE_CHANNELS):
        batch = samples(1000, shape, torch.float64) + 2.0
        result = Color(0.0, 0.5, 0.0, 0.0, probability=1.0)(batch, seeded())
        images = [x.movedim(3, 1) if x.ndim == 4 else x[:, None] for x in (batch, result)]
        means = [luminance(image).mean(dim=(1, 2, 3)) for image in images]
        torch.testing.assert_close(means[0], means[1])
        factors = ((images[1] - means[1].reshape(-1, 1, 1, 1)) / (images[0] - means[0].reshape(-1, 1, 1, 1))).flatten(1)
        np.testing.assert_allclose(factors, factors[:, :1].expand_as(factors), rtol=1e-5)
        assert is_uniform(factors[:, 0].numpy(), 0.5, 1.5)


def test_color_draws_are_uniform_and_independent():
    """All four are read off an image of two pixels: its mean gray, its distances from that, its colors."""
    batch = torch.tensor([[0.9, 0.3, 0.2], [0.1, 0.4, 0.5]], dtype=torch.float64).reshape(1, 1, 2, 3)
    result = Color(0.4, 0.3, 0.5, 0.2, probability=1.0)(batch.expand(1000, 1, 2, 3), seeded())
    before, after = (np.moveaxis(images.numpy()[:, 0] @ np.transpose(YIQ), 2, 0) for images in (batch, result))
    mean, mean_after = before[0].mean(), after[0].mean(axis=1)
    brightness = mean_after / mean
    contrast = (after[0, :, 0] - mean_after) / (before[0, 0, 0] - mean) / brightness
    color = (after[1] + 1j * after[2])[:, 0] / (before[1] + 1j * before[2])[0, 0] / (brightness * contrast)
    draws = {"brightness": 0.4, "contrast": 0.3, "saturation": 0.5, "hue": 0.2}
    read = [brightness - 1.0, contrast - 1.0, np.abs(color) - 1.0, np.angle(color) / (2.0 * np.pi)]
    for (name, width), values in zip(draws.items(), read, strict=True):
        assert is_uniform(values, -width, width), name
    assert abs(np.corrcoef(read) - np.eye(4)).max() < 0.15


def test_gray_takes_the_colors_of_some():
    batch = samples(2000, (2, 3, 3), torch.float64)
    result = Gray(0.3)(batch, seeded()).numpy()
    expected = (batch.numpy() @ YIQ[0])[..., None].repeat(3, axis=3)
    gray = np.isclose(result, expected).all(axis=(1, 2, 3))
    assert abs(gray.mean() - 0.3) < 0.04
    np.testing.assert_array_equal(result[~gray], batch.numpy()[~gray])


# ---- views of views ----------------------------------------------------------------------------------------


def test_a_chain_is_one_after_another():
    batch, generator = samples(8, COLOR), seeded()
    expected = Blur()(Flip()(Crop()(batch, generator), generator), generator)
    assert torch.equal(Chain([Crop(), Flip(), Blur()])(batch, seeded()), expected)
    assert torch.equal(Chain([halved])(batch, seeded()), batch / 2.0)


@pytest.mark.parametrize("shape", [(4, 6), (4, 3, 2), [2, 4, 3]])
def test_reshaped_is_the_view_of_the_images(shape):
    batch = samples(8, (24,))
    expected = Affine()(batch.reshape(8, *shape), seeded()).reshape(8, 24)
    assert torch.equal(Reshaped(Affine(), shape)(batch, seeded()), expected)


TABLES = Chain([GaussianNoise(0.3), FeatureDropping()])
GENTLE = Chain([Affine(degrees=5.0, scale=0.05, shift=0.05), Elastic(strength=0.7), GaussianNoise(0.3)])

SMALL_COLOR = Chain([Crop(), Flip(), Color()])
CHOICES = [
    (None, (7,), Identity()),
    (None, (28, 28), Identity()),
    ("auto", (7,), TABLES),
    ("auto", (28, 28), GENTLE),
    ("auto", (100, 100), GENTLE),
    ("auto", (28, 28, 1), GENTLE),
    ("auto", (32, 32, 3), SMALL_COLOR),
    ("auto", [32, 32, 3], SMALL_COLOR),
    ("auto", (63, 200, 3), SMALL_COLOR),
    ("auto", (64, 64, 3), Chain([Crop(), Flip(), Color(), Blur()])),
    ("auto", (32, 32, 4), Chain([Crop(), Flip(), Color(saturation=0.0, hue=0.0)])),
    ("images", (28, 28), GENTLE),
    ("images", (32, 32, 3), SMALL_COLOR),
    ("tables", (7,), TABLES),
    ("noise", (28, 28), GaussianNoise()),
    ("swapping", (7,), FeatureSwapping()),
    ("digits", (28, 28), Chain([Affine(), Elastic()])),
]


@pytest.mark.parametrize(("augment", "shape", "expected"), CHOICES)
def test_check_view_resolves(augment, shape, expected):
    view = check_view(augment, shape)
    assert view == expected
    assert view(samples(3, tuple(shape)), seeded()).shape == (3, *shape)


def test_check_view_leaves_views_and_functions_as_they_are():
    view = Shift()
    assert check_view(view, (7,)) is view
    assert check_view(halved, (7,)) is halved


# ---- errors ------------------------------------------------------------------------------------------------

ERRORS = [
    (GaussianNoise(-1.0), r"scale=-1.0 is not allowed: scale must be a finite number at least 0"),
    (GaussianNoise("a"), r"scale='a'"),
    (FeatureDropping(1.5), r"probability=1.5 .* at most 1"),
    (FeatureDropping(fill=None), r"fill=None"),
    (FeatureSwapping(-0.1), r"probability=-0.1 .* at least 0"),
    (Shift(-1), r"pixels=-1 .*whole number, at least 0"),
    (Shift(1.5), r"pixels=1.5 .*whole number"),
    (Shift(9), r"pixels=9 is not allowed: pixels must be less than .* here 9 and 12"),
    (Shift(fill="mirror"), r"fill='mirror' is not allowed: fill must be 'edge' or a number"),
    (Flip(2), r"probability=2 .* at most 1"),
    (Crop(0.0), r"smallest=0.0 .* above 0 and at most 1"),
    (Crop(1.1), r"smallest=1.1 .* at most 1"),
    (Affine(degrees=200), r"degrees=200 .* at most 180"),
    (Affine(scale=1.0), r"scale=1.0 .* at most 0.9"),
    (Affine(shift=-0.1), r"shift=-0.1 .* at least 0"),
    (Affine(shear=90), r"shear=90 .* at most 60"),
    (Affine(fill="zero"), r"fill='zero' .*'edge' or a number"),
    (Elastic(strength=-1), r"strength=-1 .* at least 0"),
    (Elastic(smoothness=0), r"smoothness=0 .* above 0"),
    (Elastic(fill=[0]), r"fill=\[0\]"),
    (Color(brightness=-1), r"brightness=-1 .* at least 0"),
    (Color(contrast=2), r"contrast=2 .* at most 1"),
    (Color(saturation=2), r"saturation=2 .* at most 1"),
    (Color(hue=0.6), r"hue=0.6 .* at most 0.5"),
    (Color(probability=7), r"probability=7 .* at most 1"),
    (Gray(7), r"probability=7 .* at most 1"),
    (Gray(), r"batch has 1 channels: Gray takes images with 3"),
    (Blur(-1.0), r"sigma=-1.0 .* at least 0"),
    (Blur((1.0, 0.5)), r"sigma\[1\]=0.5 .* at least 1"),
    (Blur((1.0, 2.0, 3.0)), r"sigma=\(1.0, 2.0, 3.0\) .*a number or a pair"),
    (Blur(probability=-1), r"probability=-1 .* at least 0"),
    (Chain(Flip()), r"views=Flip\(\) is not allowed: views must be a list of views"),
    (Chain([Flip(), "blur"]), r"views\[1\]='blur' .*a view such as GaussianNoise\(\)"),
    (Chain([Flip]), r"views\[0\]=.*Flip.* is not allowed"),
    (Reshaped(Flip, (9, 12)), r"view=.*Flip.* is not allowed"),
    (Reshaped(Flip(), (108,)), r"image_shape=\(108,\) .*\(height, width\) or \(height, width, channels\)"),
    (Reshaped(Flip(), (9, 0)), r"image_shape\[1\]=0 .*at least 1"),
    (Reshaped(Flip(), (9, 12)), r"batch has shape \(2, 9, 12\): with image_shape=\(9, 12\) it must be \(n, 108\)"),
]


@pytest.mark.parametrize(("view", "message"), ERRORS)
def test_errors_name_the_parameter(view, message):
    with pytest.raises(ValueError, match=message):
        view(samples(2, GRAY), seeded())


@pytest.mark.parametrize("name", [name for name, (view, _) in VIEWS.items() if isinstance(view, ImageView)])
def test_image_views_refuse_tables(name):
    view = VIEWS[name][0]
    with pytest.raises(
        ValueError, match=rf"shape \(4, 5\): {type(view).__name__} takes images, \(n, height, width\) or"
    ):
        view(samples(4, TABLE), seeded())


def test_errors_about_what_views_are_given():
    with pytest.raises(ValueError, match=r"type torch.int64: Flip takes a tensor of floats"):
        Flip()(torch.zeros(2, 3, 3, dtype=torch.long), seeded())
    with pytest.raises(ValueError, match=r"type ndarray: Flip takes a tensor of floats"):
        Flip()(np.zeros((2, 3, 3)), seeded())
    with pytest.raises(ValueError, match=r"shape \(3,\): GaussianNoise takes samples in rows"):
        GaussianNoise()(torch.zeros(3), seeded())
    with pytest.raises(ValueError, match=r"generator=0 is not allowed: generator must be a torch.Generator"):
        GaussianNoise()(torch.zeros(3, 2), 0)
    with pytest.raises(ValueError, match=r"batch has 4 channels: with saturation=0.4 and hue=0.1 it must have 1 or 3"):
        Color()(samples(2, (3, 3, 4)), seeded())
    with pytest.raises(ValueError, match=r"batch has shape \(2, 0, 3\)"):
        Flip()(torch.zeros(2, 0, 3), seeded())


def test_errors_of_check_view():
    allowed = "'auto', 'tables', 'images', 'noise', 'swapping', 'digits'"
    with pytest.raises(ValueError, match=rf"augment='mixup' is not allowed: augment must be one of {allowed}"):
        check_view("mixup", (3,))
    with pytest.raises(ValueError, match=r"augment=3 .*a view such as"):
        check_view(3, (3,))
    with pytest.raises(ValueError, match=r"augment=.*Flip.* is not allowed"):
        check_view(Flip, (3, 3))
    with pytest.raises(ValueError, match=r"augment='images' is for images, and a sample has shape \(3,\)"):
        check_view("images", (3,))
    for shape in ((), (2, 3, 4, 5), 3):
        with pytest.raises(ValueError, match=r"shape=.* is not allowed: shape must be that of one sample"):
            check_view("auto", shape)
    with pytest.raises(ValueError, match=r"shape\[1\]=0 .*at least 1"):
        check_view("auto", (2, 0))
