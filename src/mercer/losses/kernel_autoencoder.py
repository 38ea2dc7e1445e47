"""The kernel autoencoder: encoder and decoder as kernel machines (krepes, section 2; Esser et al. 2024)."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mercer.checks import check_count, check_number
from mercer.exceptions import invalid_parameter
from mercer.losses.objective import Embed, Objective
from mercer.losses.penalties import tikhonov, unit_norms
from mercer.losses.vicreg import squared_covariances

DecoderKernel = Callable[[Tensor, Tensor], Tensor]
"""(U, V) -> the matrix of l(u, v), differentiable by torch, such as a `mercer.kernels.Kernel`."""


def kernel_autoencoder(
    inputs: Tensor, reconstructions: Tensor, *, B: Tensor, L: Tensor | None = None, ridge: float = 1e-3
) -> Tensor:
    """Return E |x - g(f(x))|^2 + μ Tr(B^T L B), the squared error of reconstruction plus the decoder's RKHS norm.

    The full loss of the kernel autoencoder also has the encoder's norm, λ Tr(A^T K_mm A) (`tikhonov`). The code that
    trains the encoder adds it, as for any other loss.

    Parameters
    ----------
    inputs, reconstructions : tensors of shape (n, d)
        x and g(f(x)).
    B : tensor of shape (m, d)
        The coefficients of the decoder g(z) = B^T l_z + c.
    L : tensor of shape (m, m), optional
        The decoder's kernel matrix. The default is the identity, for a linear decoder g(z) = B^T z + c.
    ridge : float, default=1e-3
        μ.
    """
    if inputs.shape != reconstructions.shape or inputs.ndim != 2:
        shapes = tuple(inputs.shape), tuple(reconstructions.shape)
        raise ValueError(f"inputs and reconstructions have shapes {shapes}: one shape (n, d) is needed.")
    return (inputs - reconstructions).square().sum(dim=1).mean() + ridge * tikhonov(B, L)


class KernelAutoencoder(Objective):
    """The objective that is small if the inputs can be reconstructed from their embeddings.

    It is E |x - g(f(x))|^2 + μ Tr(B^T L B) + ρ E (|f(x)|^2 - 1)^2 + κ c(f), to which the trainer of the encoder
    f(x) = A^T k_x + γ adds λ Tr(A^T K_mm A). The decoder is a kernel machine on the embedding space,
    g(z) = B^T l_z + c, (l_z)_j = l(u_j, z), L_ij = l(u_i, u_j),
    with a kernel l of its own. u_j = f(x_j) are the current embeddings of landmarks x_j. By the representer theorem the
    optimal decoder is a combination of l at the samples' embeddings; here landmarks take the place of all samples.

    Parameters
    ----------
    landmarks : tensor of shape (m, d)
        x_j, inputs of the model. Their mean is the initial value of c.
    n_components : int
        h, the number of components of an embedding.
    kernel : callable of (U, V), or "linear"
        l, a function of two sets of embeddings that torch can differentiate. "linear" is the decoder g(z) = B^T z + c,
        with B of shape (h, d), L = I and no landmarks.
    ridge : float, default=1e-3
        μ, the weight of the decoder's norm.
    unit : float, default=1.0
        ρ, the weight of the penalty for embeddings whose length is not 1. Esser et al. require |f(x_i)| = 1 exactly.
    covariance : float, default=0.0
        κ, the weight of the sum of squared covariances between the columns of f, divided by h, as in `vicreg`.
    rows : tensor of shape (n, d), optional
        Inputs to which the decoder is fitted exactly, by `solve_decoder`, at the beginning and every `solve_every`
        steps. Only the encoder is then trained by gradients. A few thousand rows are enough. Without `rows`, B and c
        are parameters of the objective and are trained together with the encoder.
    solve_every : int, default=10
        The number of steps between two fits of the decoder.

    Notes
    -----
    krepes prints no formula and refers to Esser et al. (2024), where all samples are centers. It does not say which
    kernel and landmarks the decoder has, whether |f(x_i)| = 1 is kept, and what the 'covariance coefficient' is that
    its appendix B.3 tunes for this loss; κ is the likely meaning. It searches all weights in [1e-5, 100] and gives none
    as a default.

    With `rows`, the decoder is always close to its optimum. Without them its training is slow, since kernel matrices
    are ill-conditioned. A lower loss does not necessarily mean better embeddings.

    Several views count as additional samples, each of which is reconstructed. In addition to the embeddings of n
    samples, a batch costs the embeddings of m landmarks and O(n m (h + d) + m^2 (h + d)). A few hundred landmarks are
    enough.
    """

    min_views = 1
    landmarks: Tensor
    rows: Tensor | None
    B: Tensor
    c: Tensor

    def __init__(
        self,
        landmarks: Tensor,
        n_components: int,
        *,
        kernel: DecoderKernel | str,
        ridge: float = 1e-3,
        unit: float = 1.0,
        covariance: float = 0.0,
        rows: Tensor | None = None,
        solve_every: int = 10,
    ) -> None:
        super().__init__()
        if landmarks.ndim != 2 or not len(landmarks):
            raise invalid_parameter("landmarks", tuple(landmarks.shape), "of shape (m, d), with m at least 1")
        if not callable(kernel) and kernel != "linear":
            raise invalid_parameter("kernel", kernel, "a callable of two sets of embeddings, or 'linear'")
        h = check_count("n_components", n_components)
        self.kernel = kernel if callable(kernel) else None
        self.ridge = check_number("ridge", ridge, at_least=0.0)
        self.unit = check_number("unit", unit, at_least=0.0)
        self.covariance = check_number("covariance", covariance, at_least=0.0)
        self.min_batch = 2 if self.covariance > 0 else 1
        self.solve_every = check_count("solve_every", solve_every)
        self.register_buffer("landmarks", None if self.kernel is None else landmarks.detach().clone())
        # The rows are data, which are given again when a training is resumed: checkpoints do not contain them.
        self.register_buffer("rows", rows, persistent=False)
        self._hold("B", landmarks.new_zeros(h if self.kernel is None else len(landmarks), landmarks.shape[1]))
        self._hold("c", landmarks.detach().mean(dim=0))

    def _hold(self, name: str, start: Tensor) -> None:
        """Register a part of the decoder: as a parameter if it is trained, otherwise as a buffer."""
        if self.rows is None:
            self.register_parameter(name, torch.nn.Parameter(start))
        else:
            self.register_buffer(name, start)

    def begin(self, model: torch.nn.Module) -> None:
        """Fit the decoder to the embeddings by the initial model, if there are `rows`."""
        if self.rows is not None:
            self.solve_decoder(model, self.rows)

    def after_step(self, model: torch.nn.Module, step: int, total_steps: int) -> None:
        """Fit the decoder again after every `solve_every` steps, if there are `rows`."""
        if self.rows is not None and (step + 1) % self.solve_every == 0:
            self.solve_decoder(model, self.rows)

    def batch_loss(self, embed: Embed, views: Sequence[Tensor], generator: torch.Generator) -> Tensor:
        """Return the loss of a batch without the encoder's norm."""
        x = torch.cat(list(views))
        z = torch.cat([embed(view) for view in views])
        features, L = self._features(embed, z)
        loss = kernel_autoencoder(x, features @ self.B + self.c, B=self.B, L=L, ridge=self.ridge)
        if self.unit > 0:
            loss = loss + self.unit * unit_norms(z)
        if self.covariance > 0:
            loss = loss + self.covariance * squared_covariances(z[None])
        return loss

    @torch.no_grad()
    def solve_decoder(self, embed: Embed, inputs: Tensor) -> None:
        """Set B and c to the best decoder of the current embeddings, a ridge regression: O(n m (m + d) + m^3) time.

        Parameters
        ----------
        embed : callable
            The model.
        inputs : tensor of shape (n, d)
            The rows to which the decoder is fitted.
        """
        features, L = self._features(embed, embed(inputs))
        features, x = features.to(torch.float64), inputs.to(torch.float64)
        penalty = torch.eye(len(self.B), dtype=x.dtype, device=x.device) if L is None else L.to(x)
        centered = features - features.mean(dim=0)
        gram = centered.T @ centered / len(x) + self.ridge * (penalty + penalty.T) / 2
        # A pseudo-inverse is needed, since landmarks may have equal embeddings.
        B = torch.linalg.pinv(gram, hermitian=True) @ (centered.T @ (x - x.mean(dim=0)) / len(x))
        self.B.copy_(B)
        self.c.copy_(x.mean(dim=0) - features.mean(dim=0) @ B)

    def _features(self, embed: Embed, z: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return l_z for each row z, of which the decoder is a linear function, and L."""
        if self.kernel is None:
            return z, None
        u = embed(self.landmarks)
        return self.kernel(z, u), self.kernel(u, u)
