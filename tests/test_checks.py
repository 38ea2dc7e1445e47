"""Checks of parameters: what is allowed passes as the right type, all else is named with what is allowed."""

import math
import pickle
import re

import numpy as np
import pytest

import mercer
from mercer import exceptions
from mercer.checks import check_choice, check_count, check_flag, check_number, check_sample_shape
from mercer.exceptions import InvalidParameterError, invalid_parameter

GOOD = [
    (check_number, 2, {}, 2.0),
    (check_number, np.float32(0.5), {"above": 0}, 0.5),
    (check_number, np.int64(3), {"at_most": 3}, 3.0),
    (check_number, 0, {"at_least": 0}, 0.0),
    (check_number, -7.5, {"at_most": 0, "above": -8}, -7.5),
    (check_count, 1, {}, 1),
    (check_count, np.int64(4), {"at_most": 4}, 4),
    (check_count, 0, {"at_least": 0}, 0),
    (check_choice, "full", {"choices": ("full", "diagonal")}, "full"),
    (check_flag, np.True_, {}, True),
    (check_sample_shape, [np.int64(7)], {}, (7,)),
    (check_sample_shape, (2, 3), {"only_images": True}, (2, 3)),
    (check_sample_shape, (2, 3, 1), {"only_images": True, "or_none": True}, (2, 3, 1)),
]
IMAGES = "(height, width) or (height, width, channels)."

BAD = [
    (check_flag, 1, {}, "True or False."),
    (check_flag, "yes", {}, "True or False."),
    (check_number, "1", {}, "a finite number."),
    (check_number, None, {}, "a finite number."),
    (check_number, True, {}, "a finite number."),
    (check_number, 1j, {}, "a finite number."),
    (check_number, math.nan, {"at_least": 0}, "a finite number at least 0."),
    (check_number, math.inf, {"at_most": 1}, "a finite number at most 1."),
    (check_number, np.array([1.0]), {}, "a finite number."),
    (check_number, 0.0, {"above": 0}, "a finite number above 0."),
    (check_number, -1e-300, {"at_least": 0}, "a finite number at least 0."),
    (check_number, 1.5, {"above": 0, "at_most": 1}, "a finite number above 0 and at most 1."),
    (check_count, 2.0, {}, "a whole number, at least 1."),
    (check_count, True, {}, "a whole number, at least 1."),
    (check_count, "3", {}, "a whole number, at least 1."),
    (check_count, 0, {}, "a whole number, at least 1."),
    (check_count, 9, {"at_most": 5}, "a whole number, at least 1 and at most 5."),
    (check_count, 9, {"at_most": 5, "why": "rows"}, "a whole number, at least 1 and at most 5 (rows)."),
    (check_choice, "ful", {"choices": ("full", "diagonal")}, "one of 'full', 'diagonal'."),
    (check_choice, None, {"choices": ("full", "diagonal")}, "one of 'full', 'diagonal'."),
    (check_choice, ["full"], {"choices": {"full": 1}}, "one of 'full'."),
    (check_sample_shape, (), {}, "that of one sample: (d,), " + IMAGES),
    (check_sample_shape, 7, {}, "that of one sample: (d,), " + IMAGES),
    (check_sample_shape, (7,), {"only_images": True}, IMAGES),
    (check_sample_shape, (1, 2, 3, 4), {"only_images": True, "or_none": True}, "None, " + IMAGES),
]


@pytest.mark.parametrize(("check", "value", "bounds", "expected"), GOOD)
def test_what_is_allowed_passes_as_a_plain_number(check, value, bounds, expected):
    checked = check("size", value, **bounds)
    assert checked == expected
    assert type(checked) is type(expected)


@pytest.mark.parametrize(("check", "value", "bounds", "allowed"), BAD)
def test_what_is_not_allowed_is_named_with_its_value_and_what_is(check, value, bounds, allowed):
    message = f"size={value!r} is not allowed: size must be {allowed}"
    with pytest.raises(InvalidParameterError, match=f"^{re.escape(message)}$"):
        check("size", value, **bounds)


def test_the_side_of_a_shape_that_is_not_allowed_is_named():
    with pytest.raises(InvalidParameterError, match=r"^image_shape\[1\]=0 is not allowed: image_shape\[1\] must be "):
        check_sample_shape("image_shape", (2, 0))


def test_invalid_parameter_takes_a_sentence_or_choices_and_a_hint():
    assert str(invalid_parameter("a", 1, "above 2")) == "a=1 is not allowed: a must be above 2."
    assert str(invalid_parameter("a", 1, ["x", "y"], "Try x.")) == (
        "a=1 is not allowed: a must be one of 'x', 'y'. Try x."
    )


def test_errors_and_warnings_pickle_and_have_the_bases_that_users_catch():
    kinds = [k for k in vars(exceptions).values() if isinstance(k, type) and issubclass(k, Exception)]
    assert len(kinds) >= 7
    for kind in kinds:
        copied = pickle.loads(pickle.dumps(kind("what went wrong")))
        assert type(copied) is kind
        assert str(copied) == "what went wrong"
        assert issubclass(kind, exceptions.MercerWarning) == kind.__name__.endswith("Warning")
    assert issubclass(InvalidParameterError, ValueError)
    assert issubclass(exceptions.NumericalError, ArithmeticError)
    error = pickle.loads(pickle.dumps(invalid_parameter("ridge", -1.0, "above 0")))
    assert str(error) == "ridge=-1.0 is not allowed: ridge must be above 0."


def test_missing_values_and_devices_that_are_not_there_come_with_a_remedy():
    import torch

    X = np.random.default_rng(0).normal(size=(20, 2))
    holes = np.where(X > 1, np.nan, X)
    for model in (mercer.GPRegressor("gaussian"), mercer.KernelDiscriminant(), mercer.Nystrom(n_landmarks=3)):
        with pytest.raises(ValueError, match=rf"Input X contains NaN, .*mercer\.tabular\({type(model).__name__}"):
            model.fit(holes, X[:, 0] > 0)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device='cuda'"):
            mercer.GPRegressor("gaussian", device="cuda").fit(X, X[:, 0])
