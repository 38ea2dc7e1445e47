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
"""(U, V) -> the matrix of l(u, v), differentiable by torch; a `mercer.kernels.Kernel` is one."""


def kernel_autoencoder(
    inputs: Tensor, reconstructions: Tensor, *, B: Tensor, L: Tensor | None = None, ridge: float = 1e-3
) -> Tensor:
    """Return E |x - g(f(x))|^2 + μ Tr(B^T L B), the squared error of reconstruction and the decoder's RKHS norm.

    With the encoder's norm, λ Tr(A^T K_mm A) of `tikhonov`, which whoever trains the encoder adds as under any loss,
    it is the whole of the loss.

    Parameters
    ----------
    inputs, reconstructions : tensors of shape (n, d)
        x and g(f(x)).
    B : tensor of shape (m, d)
        The coefficients of the decoder g(z) = B^T l_z + c.
    L : tensor of shape (m, m), optional
        The decoder's kernel matrix; the identity by default, for a linear decoder g(z) = B^T z + c.
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
    with a kernel l of its own and u_j = f(x_j) the embeddings of landmarks x_j, as they are at the moment: the optimal
    decoder lies in the span of the samples' embeddings (the representer theorem), and landmarks stand for samples.

    Parameters
    ----------
    landmarks : tensor of shape (m, d)
        x_j, inputs as the model takes them. Their mean is the start of c.
    n_components : int
        h.
    kernel : callable of (U, V), or "linear"
        l, a function of two sets of embeddings that torch can differentiate. "linear" is the decoder g(z) = B^T z + c,
        with B of shape (h, d), L = I and no landmarks.
    ridge : float, default=1e-3
        μ.
    unit : float, default=1.0
        ρ. Esser et al. ask for |f(x_i)| = 1; here it is a penalty.
    covariance : float, default=0.0
        κ, the weight of the sum of squared covariances between the columns of f, divided by h, as in `vicreg`.
    rows : tensor of shape (n, d), optional
        Inputs to which the decoder is fitted exactly, by `solve_decoder`, at the beginning and every `solve_every`
        steps: the encoder alone is then trained by gradient. Some thousands will do. Without them B and c are
        parameters of the objective, trained beside the encoder.
    solve_every : int, default=10

    Notes
    -----
    krepes prints no formula and refers to Esser et al. (2024), where all samples are centers. It leaves open the
    decoder's kernel and its landmarks, whether |f(x_i)| = 1 is kept, and what the 'covariance coefficient' is that its
    appendix B.3 tunes for this loss: κ is the likely reading. It searches all weights in [1e-5, 100] and gives none as
    a default.

    With rows the decoder is at its optimum: kernel matrices are ill-conditioned, and steps of the optimizer on B are
    slow there. A lower loss need not make better embeddings.

    Several views count as further samples, each of which is to be had back. Beside the embeddings of n samples a batch
    costs those of m landmarks and O(n m (h + d) + m^2 (h + d)); a few hundred landmarks will do.
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
        # Not in checkpoints: they are data, and whoever resumes has them.
        self.register_buffer("rows", rows, persistent=False)
        self._hold("B", landmarks.new_zeros(h if self.kernel is None else len(landmarks), landmarks.shape[1]))
        self._hold("c", landmarks.detach().mean(dim=0))

    def _hold(self, name: str, start: Tensor) -> None:
        """Register a part of the decoder, as a parameter only if it is trained."""
        if self.rows is None:
            self.register_parameter(name, torch.nn.Parameter(start))
        else:
            self.register_buffer(name, start)

    def begin(self, model: torch.nn.Module) -> None:
        """Fit the decoder to the embeddings that the model starts with."""
        if self.rows is not None:
            self.solve_decoder(model, self.rows)

    def after_step(self, model: torch.nn.Module, step: int, total_steps: int) -> None:
        """Fit the decoder again, if it is time."""
        if self.rows is not None and (step + 1) % self.solve_every == 0:
            self.solve_decoder(model, self.rows)

    def batch_loss(self, embed: Embed, views: Sequence[Tensor], generator: torch.Generator) -> Tensor:
        """Return the loss of a batch, without the encoder's norm."""
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
        """Set B and c to the best decoder of the embeddings as they are: a ridge regression, O(n m (m + d) + m^3).

        Parameters
        ----------
        embed : callable
            The model.
        inputs : tensor of shape (n, d)
            Rows to fit to.
        """
        features, L = self._features(embed, embed(inputs))
        features, x = features.to(torch.float64), inputs.to(torch.float64)
        penalty = torch.eye(len(self.B), dtype=x.dtype, device=x.device) if L is None else L.to(x)
        centered = features - features.mean(dim=0)
        gram = centered.T @ centered / len(x) + self.ridge * (penalty + penalty.T) / 2
        # A pseudo-inverse, for landmarks may have equal embeddings.
        B = torch.linalg.pinv(gram, hermitian=True) @ (centered.T @ (x - x.mean(dim=0)) / len(x))
        self.B.copy_(B)
        self.c.copy_(x.mean(dim=0) - features.mean(dim=0) @ B)

    def _features(self, embed: Embed, z: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the rows l_z, of which the decoder is a linear function, and L."""
        if self.kernel is None:
            return z, None
        u = embed(self.landmarks)
        return self.kernel(z, u), self.kernel(u, u)
