"""The kernel autoencoder as a solver: codes from closed forms, then decoder and encoder in turn."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.neighbors import kneighbors_graph
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.checks import check_count, check_flag, check_number
from mercer.embedding.coordinates import Coordinates, all_features
from mercer.embedding.decoder import RIDGES, SPREADS, Decoder, decoder_without_weights, solved, unexplained
from mercer.embedding.problem import Problem, Solution
from mercer.embedding.steps import split_rows
from mercer.embedding.trained_losses import AUTOENCODER
from mercer.exceptions import invalid_parameter
from mercer.views.sources import given_arrays

# At most this many rows are used: far fewer parameters are learned.
MOST_ROWS = 10_000
# Weights of the encoder's squared norm, as shares of the largest variance of kernel features.
ENCODER_RIDGES = (1e-7, 1e-5, 1e-3)
# For the initial codes from the neighborhood graph: the neighbors of a row, and the largest number of rows.
NEIGHBORS, GRAPH_ROWS = 10, 1000
# A round must lower the loss on the left-out rows by at least this share of the loss.
LEAST_GAIN = 1e-3
# An encoder must lose less of the variance than principal components by more than this, or these are kept.
AS_GOOD = 0.01


class Autoencoder(NamedTuple):
    """An encoder W of shape (r, h), its decoder, and the share of the variance of the left-out rows that is lost."""

    W: Tensor
    decoder: Decoder
    ridge: float
    decoder_ridge: float
    loss: float


class Rows(NamedTuple):
    """The kernel features Z and the rows X that are learned from, and the same of the rows that are left out."""

    Z: Tensor
    X: Tensor
    Z_out: Tensor
    X_out: Tensor


@dataclass(frozen=True)
class Alternate:
    """Minimize the loss of the kernel autoencoder, E |x - g(f(x))|^2 with the squared norms of f and g.

    The decoder g is a ridge regression on the codes, solved exactly (`decoder.py`). Its bandwidth is a multiple
    of the spread of the codes. There are two initial codes, both in closed form. One is the optimum under a linear
    decoder, a reduced-rank kernel regression of the rows on themselves. The other is made of the eigenvectors of the
    graph of neighbors with the smallest eigenvalues, which follow a curve where a linear decoder would cut across it.
    The weights of the norms, the bandwidth and the initial codes are chosen by the loss on left-out rows. Rounds
    follow: L-BFGS improves the encoder for a fixed decoder, and then the decoder is solved again.

    Parameters
    ----------
    rounds : int, default=5
        The largest number of rounds. They end when the loss on the left-out rows no longer falls.
    iterations : int, default=20
        Number of L-BFGS iterations in a round.
    validation_fraction : float, default=0.2
        The share of the rows that are left out, by which choices are made.
    guard : bool, default=True
        Whether to keep the kernel principal components of the landmarks, with the decoder that suits them, unless
        another encoder explains at least a hundredth more of the variance of left-out rows. With many codes the loss
        hardly distinguishes encoders, and the one it prefers by a tiny margin is worse for all other purposes.
    """

    rounds: int = 5
    iterations: int = 20
    validation_fraction: float = 0.2
    guard: bool = True

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds, at_least=0)
        check_count("iterations", self.iterations)
        fraction = check_number("validation_fraction", self.validation_fraction, above=0.0)
        if fraction >= 1.0:
            raise invalid_parameter("validation_fraction", self.validation_fraction, "above 0 and below 1")
        check_flag("guard", self.guard)

    def check(self, loss: Any) -> None:
        """Raise unless the loss is that of the kernel autoencoder."""
        if loss != AUTOENCODER:
            raise invalid_parameter("solver", self, f"'auto', Exact() or Steps() for loss={loss!r}")

    def solve(self, problem: Problem, estimator: Any = None) -> Solution:
        """Return encoder and decoder; the loss is the share of the variance of left-out rows that they lose."""
        rows = self._rows(problem)
        ridges = ENCODER_RIDGES if problem.ridge == "auto" else (float(problem.ridge),)
        start = decoded(rows, torch.eye(rows.Z.shape[1], problem.n_components).to(rows.Z), ridges[0])
        best = start
        history: list[dict[str, Any]] = []
        if not (self.guard and start.loss <= AS_GOOD):
            best = min(initial_autoencoders(rows, problem, ridges), key=lambda found: found.loss)
            best, history = self._in_rounds(rows, best)
        if self.guard:
            kept = "rounds" if best.loss < start.loss - AS_GOOD else "start"
            history.append({"loss_of_start": start.loss, "loss_of_rounds": best.loss, "kept": kept})
            best = best if kept == "rounds" else start
        codes = rows.Z @ best.W
        return Solution(
            best.W, torch.zeros_like(best.W[0]), codes.var(dim=0), best.ridge, best.loss, history, best.decoder
        )

    def _in_rounds(self, rows: Rows, best: Autoencoder) -> tuple[Autoencoder, list[dict[str, Any]]]:
        """Improve encoder and decoder in turn until the loss on left-out rows stops falling; also return the losses."""
        history: list[dict[str, Any]] = [{"round": 0, "criterion": best.loss}]
        for number in range(self.rounds):
            improved = self._round(rows, best)
            history.append({"round": number + 1, "criterion": improved.loss})
            if improved.loss > (1.0 - LEAST_GAIN) * best.loss:
                return min(best, improved, key=lambda found: found.loss), history
            best = improved
        return best, history

    def _rows(self, problem: Problem) -> Rows:
        """Draw the rows that are used, compute their kernel features, and leave a share of them out."""
        drawn = np.random.default_rng(problem.seed).permutation(problem.source.n_rows)[:MOST_ROWS]
        source, halves = problem.source.of_rows(np.sort(drawn)), problem.halves
        features = all_features(Coordinates(problem.centers, halves.B, halves.origin), source)
        X = [as_tensor(array) for array in (given_arrays(source) or [source.X])]  # type: ignore[union-attr]
        seen, left_out = split_rows(source.n_rows, self.validation_fraction, problem.seed)
        left_out = left_out if len(left_out) else seen

        def part(tensors: list[Tensor], index: np.ndarray) -> Tensor:
            return torch.cat([tensor[torch.from_numpy(index)] for tensor in tensors]).to(halves.B)

        return Rows(part(features, seen), part(X, seen), part(features, left_out), part(X, left_out))

    def _round(self, rows: Rows, found: Autoencoder) -> Autoencoder:
        """Improve the encoder for the present decoder by L-BFGS, then solve the decoder for the new codes."""
        W = found.W.contiguous().clone().requires_grad_()
        optimizer = torch.optim.LBFGS([W], max_iter=self.iterations, line_search_fn="strong_wolfe")
        scale = (rows.X - rows.X.mean(dim=0)).square().sum(dim=1).mean()

        def loss() -> Tensor:
            optimizer.zero_grad()
            rest = (rows.X - found.decoder.rows(rows.Z @ W)).square().sum(dim=1).mean() / scale
            value = rest + found.ridge * W.square().sum() / scale
            value.backward()
            return value

        with torch.enable_grad():
            optimizer.step(loss)
        return decoded(rows, W.detach(), found.ridge)


def initial_autoencoders(rows: Rows, problem: Problem, ridges: Any) -> list[Autoencoder]:
    """Return an autoencoder for each initial encoder and each ridge, with the best decoder for its codes."""
    values, Q = torch.linalg.eigh(rows.Z.T @ rows.Z / len(rows.Z))
    starts = []
    graph_codes = neighbor_codes(rows.X[:GRAPH_ROWS], problem.n_components)
    for share in ridges:
        ridge = share * float(values[-1]) if problem.ridge == "auto" else share
        starts.append((linear_codes(rows, values, Q, ridge, problem.n_components), ridge))
        if graph_codes is not None:
            Z = rows.Z[: len(graph_codes)]
            starts.append((ridge_regression(Z, graph_codes, ridge), ridge))
    return [decoded(rows, W, ridge) for W, ridge in starts]


def decoded(rows: Rows, W: Tensor, ridge: float) -> Autoencoder:
    """Return the encoder W with the bandwidth and ridge of the decoder that lose least of the left-out rows."""
    codes, codes_out, mean = rows.Z @ W, rows.Z_out @ W, rows.X.mean(dim=0)
    best: Autoencoder | None = None
    for multiple in SPREADS:
        empty = decoder_without_weights(codes, multiple, rows.X.shape[1])
        for decoder_ridge, decoder in zip(RIDGES, solved(empty, codes, rows.X, RIDGES), strict=True):
            loss = float(unexplained(rows.X_out, decoder.rows(codes_out), mean))
            if best is None or loss < best.loss:
                best = Autoencoder(W, decoder, ridge, decoder_ridge, loss)
    return best  # type: ignore[return-value]


def linear_codes(rows: Rows, values: Tensor, Q: Tensor, ridge: float, n_components: int) -> Tensor:
    """Return the encoder that is optimal for a linear decoder: the reduced-rank kernel regression of x on itself.

    M = (Σ + λ I)^-1 E[z x^T] is the ridge regression of x on z, and V holds the top h eigenvectors of
    M^T (Σ + λ I) M. The encoder is W = M V and the decoder V^T: no other map of rank h has a smaller penalized error.

    Parameters
    ----------
    rows : Rows
    values, Q : tensors of shapes (r,) and (r, r)
        The eigenvalues and eigenvectors of Σ = E[z z^T].
    ridge : float
        λ.
    n_components : int
        h.
    """
    inner = values.clamp(min=0.0) + ridge
    target = Q.T @ (rows.Z.T @ (rows.X - rows.X.mean(dim=0)) / len(rows.Z))
    if rows.X.shape[1] <= n_components:
        M = Q @ (target / inner[:, None])
        return torch.cat([M, M.new_zeros((len(M), n_components - M.shape[1]))], dim=1)
    Vh = torch.linalg.svd(target / inner.sqrt()[:, None], full_matrices=False)[2]
    return Q @ ((target @ Vh[:n_components].T) / inner[:, None])


def neighbor_codes(X: Tensor, n_components: int) -> Tensor | None:
    """Return codes of shape (n, h) that follow the graph of nearest neighbors; None if there are too few rows.

    They are the eigenvectors of the graph's normalized Laplacian with the smallest eigenvalues, without the constant
    one. They vary slowly along the graph: if the rows lie on a curve, they say where on the curve a row is.
    """
    n = len(X)
    if n <= max(NEIGHBORS, n_components) + 1:
        return None
    graph = kneighbors_graph(X.cpu().numpy(), NEIGHBORS, mode="connectivity").toarray()
    weights = torch.from_numpy(np.maximum(graph, graph.T))
    root = weights.sum(dim=1).rsqrt()
    _, vectors = torch.linalg.eigh(root[:, None] * weights * root)
    return (vectors.flip(1)[:, 1 : n_components + 1] * root[:, None] * n**0.5).to(X)


def ridge_regression(Z: Tensor, codes: Tensor, ridge: float) -> Tensor:
    """Return the W of the ridge regression of centered codes u on features: (Z^T Z / n + λ I)^-1 Z^T u / n."""
    gram = Z.T @ Z / len(Z)
    gram.diagonal().add_(ridge)
    return torch.linalg.solve(gram, Z.T @ (codes - codes.mean(dim=0)) / len(Z))
