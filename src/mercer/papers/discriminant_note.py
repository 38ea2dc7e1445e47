"""The note on discriminant analysis in a kernel's space (kernel-discriminant): as printed."""

from typing import Any

from mercer.discriminant.kernel_discriminant import KernelDiscriminant
from mercer.kernels import check_kernel

LAMBDA = 1e-3


def kernel_discriminant(
    lambda_: float = LAMBDA,
    *,
    regularizer: str = "rkhs",
    center: bool = True,
    kernel: Any = "gaussian",
    bandwidth: Any = "median",
    **changed: Any,
) -> KernelDiscriminant:
    """Return the discriminants of the note for one λ, with nothing searched.

    ================================================================  ==================================================
    line of the note                                                  our parameter
    ================================================================  ==================================================
    (11): coordinates are functions of all rows                       `n_landmarks=None`
    (12): total over within-class variance, components uncorrelated   `lambda_=0`
    (13): λ, a nonnegative tuning parameter, as it stands             `lambda_`, which is `ridge`
    (13): R = I_n, or R = K                                           `regularizer="identity"`, or "rkhs"
    (13) for i = 2, ..., k: a constrained quotient each               `n_components`; all from one eigenproblem
    "Data Centering": K C_n in the place of K, and (14)               `center=True`; False is (11) itself
    ================================================================  ==================================================

    What the note leaves open, and what is taken: the kernel and its bandwidth (Gaussian at the median distance), λ
    (1e-3; it has the unit of a sum over rows, so that twice the rows want twice the λ), k (classes - 1). With centering
    R = K becomes C K C, the kernel of the centered features. The note scales nothing: components have unit regularized
    within-class variance. What our estimator adds and the note has not: a classifier in the coordinates. Our default
    differs by kernel, bandwidth and λ chosen by rows left out, and by landmarks beyond 10 000 rows; at equal settings
    the two are equal.

    Parameters
    ----------
    lambda_ : float, default=0.001
    regularizer : {"identity", "rkhs"}, default="rkhs"
    center : bool, default=True
    kernel : str, Kernel or callable, default="gaussian"
    bandwidth : float, "median" or None, default="median"
    **changed
        Parameters of `KernelDiscriminant`.

    Examples
    --------
    >>> from mercer.papers import kernel_discriminant
    >>> kernel_discriminant(0.1).ridge
    0.1
    """
    printed = {"ridge": lambda_, "regularizer": regularizer, "center": center, "bandwidth": None, "n_landmarks": None}
    return KernelDiscriminant(check_kernel(kernel, bandwidth), **{**printed, **changed})
