"""The note on discriminant analysis in the space of a kernel (kernel-discriminant), as printed."""

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
    """Return the discriminants of the note for one given λ; no parameter is searched.

    ================================================================  ==================================================
    line of the note                                                  our parameter
    ================================================================  ==================================================
    (11): coordinates are functions of all rows                       `n_landmarks=None`
    (12): total over within-class variance, components uncorrelated   `lambda_=0`
    (13): λ, a nonnegative tuning parameter, not scaled               `lambda_`, which is `ridge`
    (13): R = I_n, or R = K                                           `regularizer="identity"`, or "rkhs"
    (13), for i = 2, ..., k: a constrained quotient each              `n_components`; all from one eigenproblem
    "Data Centering": K C_n in the place of K, and (14)               `center=True`; False is (11) itself
    ================================================================  ==================================================

    The note leaves some settings open. The kernel is Gaussian here, and its bandwidth the median distance. λ is 1e-3;
    it is added to a sum over rows, so twice as many rows need twice the λ. k is the number of classes minus 1. With
    centering, R = K becomes C K C, the kernel of the centered features. The note does not scale the components; here
    their regularized within-class variance is 1.

    Our estimator also classifies in the coordinates, which the note does not. By default, it chooses kernel, bandwidth
    and λ by left-out rows, and uses landmarks for more than 10 000 rows. With equal settings, both are equal.

    Parameters
    ----------
    lambda_ : float, default=0.001
        λ.
    regularizer : {"identity", "rkhs"}, default="rkhs"
        R of (13).
    center : bool, default=True
        Whether features are centered in the space of the kernel.
    kernel : str, Kernel or callable, default="gaussian"
    bandwidth : float, "median" or None, default="median"
    **changed
        Parameters of `KernelDiscriminant`, which replace those above.

    Examples
    --------
    >>> from mercer.papers import kernel_discriminant
    >>> kernel_discriminant(0.1).ridge
    0.1
    """
    printed = {"ridge": lambda_, "regularizer": regularizer, "center": center, "bandwidth": None, "n_landmarks": None}
    return KernelDiscriminant(check_kernel(kernel, bandwidth), **{**printed, **changed})
