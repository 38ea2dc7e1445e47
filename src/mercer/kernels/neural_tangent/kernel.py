"""The empirical neural tangent kernel of a network."""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from mercer.blocks import like_input, row_slices, rows_per_block
from mercer.checks import check_count, check_sample_shape
from mercer.exceptions import invalid_parameter
from mercer.kernels.base import GradientTerm, Kernel, LeafKernel, rows_as_tensor
from mercer.kernels.neural_tangent.network import HEADS, TangentNetwork
from mercer.kernels.neural_tangent.parts import Part
from mercer.mahalanobis import Mahalanobis, check_metric

# MiB for the gradients of one side, which are kept if they fit, and for those of a block of rows of the other side.
KEPT_MEMORY, BLOCK_MEMORY = 2048.0, 128.0


class Rows:
    """Rows and their gradients, which are either given or computed block by block in each iteration over the rows.

    Parameters
    ----------
    network : TangentNetwork
    inputs : tensor of shape (n, d)
    kept : list of Part or None
        The gradients of all rows, or None if they are computed when they are needed.
    """

    def __init__(self, network: TangentNetwork, inputs: Tensor, kept: list[Part] | None = None) -> None:
        self.network = network
        self.inputs = inputs
        self.kept = kept
        self._squares: Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice) -> "Rows":
        kept = None if self.kept is None else [part[rows] for part in self.kept]
        return Rows(self.network, self.inputs[rows], kept)

    def walk(self) -> Iterator[tuple[slice, list[Part]]]:
        """Yield blocks of rows, as a slice and the parts of the gradients of its rows."""
        if self.kept is not None:
            yield slice(0, len(self)), self.kept
            return
        squares = []
        for rows in row_slices(len(self), rows_per_block(len(self), self.network.bytes_kept, BLOCK_MEMORY)):
            parts = collected(self.network, self.inputs[rows])
            squares.append(squares_of(parts))
            yield rows, parts
            parts.clear()  # the caller still holds the list, and the next block needs the memory
        # The norms of all rows are stored, since computing them alone later would cost as much as this iteration.
        self._squares = torch.cat(squares) if squares else self.inputs.new_zeros(0)

    def squares(self) -> Tensor:
        """Return the squared norms of the gradients."""
        if self.kept is not None:
            return squares_of(self.kept)
        if self._squares is None:
            for _ in self.walk():
                pass
        return self._squares  # type: ignore[return-value]


def squares_of(parts: list[Part]) -> Tensor:
    """Return the squared norms of gradients that are given in parts."""
    return torch.stack([part.squares() for part in parts]).sum(dim=0)


def collected(network: TangentNetwork, inputs: Tensor) -> list[Part]:
    """Return the parts of the gradients of rows, computed pass by pass; results are copied to free a pass's memory."""
    held: list[Part] = []
    for rows in row_slices(len(inputs), network.rows_a_pass):
        parts = network.parts(inputs[rows])
        if len(inputs) <= network.rows_a_pass:
            return parts
        held = held or [part.empty(len(inputs)) for part in parts]
        for whole, part in zip(held, parts, strict=True):
            for tensor, some in zip(whole.tensors, part.tensors, strict=True):
                tensor[rows] = some
    return held


class TangentRows(NamedTuple):
    """Rows in the coordinates of a metric, with the network that computes their gradients."""

    metric: Mahalanobis
    rows: Rows


class NeuralTangent(LeafKernel):
    """The empirical neural tangent kernel k(x, z) = <df(x)/dθ, df(z)/dθ> of a network f with one output and weights θ.

    Two rows are similar if a step of gradient descent that changes the network's output for one of them changes it for
    the other in the same way. With pretrained weights, the kernel uses what the network has learned.

    The kernel is computed layer by layer from the inputs of the layers and the gradients of their outputs, in blocks of
    rows. The gradient of a row by all weights is never formed. Derivatives by the rows are not available: models that
    need them (AGOP) raise an error.

    Parameters
    ----------
    network : torch.nn.Module
        A network in evaluation mode. Its input is rows (n, d), or images with the channels first, and its output is a
        tensor (n,) or (n, outputs). Weights that do not require gradients are ignored. Dense layers, convolutions in
        one and two dimensions, batch norm, layer norm, group norm, embeddings, multi-head attention, and parameters
        that are added or multiplied are supported, in modules of any class, as are weights that several layers share.
        Gradients by other parameters are computed row by row, with a warning that names the module. The network is
        copied when it is used, and never changed.
    head : None, "sum" or "random", default=None
        How a single output is made of several: as their sum, or by a linear head with random weights, which count as
        parameters (krepes, appendix A). The random weights are normal with a standard deviation of .1 over the square
        root of the number of outputs. They are this small so that the network's outputs matter beside the gradients
        inside the network. None is for networks with one output.
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of images that are given as flat rows.
    n_projections : int or None, default=None
        The number of random projections of the inputs of a layer. They are used where they make the stored gradients
        smaller, and the kernel then has a random error: 2 % for ResNet-18 with 64. None is exact.
    random_state : int, RandomState instance or None, default=0
        The source of the random head and the projections. It is a number by default, so that the kernel is always the
        same function.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M = L L^T, or a vector with its diagonal. The network's input is the rows x L. None is the identity.

    Notes
    -----
    For a layer with P positions (1 for a dense layer of rows, otherwise the tokens or the pixels of the output), a pair
    of rows costs P^2 (c_in + c_out) or c_in c_out multiplications, whichever is less. For the second side, the inputs
    and gradients of its layers are stored, or the gradients by weights if these are smaller. If they need more than
    2 GiB, they are computed again for each block of rows of the first side.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import NeuralTangent
    >>> from mercer.networks import MLP
    >>> kernel = NeuralTangent(MLP(4, (16, 16), random_state=0))
    >>> kernel(np.ones((3, 4)), np.zeros((2, 4))).shape
    (3, 2)
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        head: str | None = None,
        image_shape: Any = None,
        n_projections: int | None = None,
        random_state: Any = 0,
        metric: Any = None,
    ) -> None:
        self.network = network
        self.head = head
        self.image_shape = image_shape
        self.n_projections = n_projections
        self.random_state = random_state
        self.metric = metric

    @property
    def may_run_in_threads(self) -> bool:
        # Each block has a memory budget of its own, and hooks on the one network.
        return False

    @property
    def has_closed_form_gradient(self) -> bool:
        return False

    def resolved(self, X: Any, random_state: Any = None) -> Kernel:
        return self.with_params()

    def rescaled(self, factor: float) -> Kernel:
        return self.with_params()

    def matrices(self, X: Tensor) -> Callable[[float], Tensor]:
        """Return the function factor -> the matrix of X; the kernel has no bandwidth, so it is the same for all."""
        K = self.matrix(X)
        return lambda factor: K

    def prepare(self, X: Tensor, beside: TangentRows | None = None) -> TangentRows:
        if torch.is_grad_enabled() and X.requires_grad:
            raise TypeError(
                "a NeuralTangent kernel has no derivatives by its rows: models that need them, such as those "
                "with average gradient outer products, need another kernel."
            )
        metric = check_metric(self.metric) if beside is None else beside.metric
        inputs = metric.project(X)
        if beside is not None:
            return TangentRows(metric, Rows(beside.rows.network, inputs))
        network = self._network(inputs)
        fits = 0 < network.bytes_kept * len(inputs) <= KEPT_MEMORY * 2**20
        with torch.no_grad():
            return TangentRows(metric, Rows(network, inputs, collected(network, inputs) if fits else None))

    def features(self, X: Any) -> Any:
        """Return features of each row whose inner products are the kernel: its gradient by the weights, projected.

        The number of features depends on the network and on `n_projections`, not on the rows. Without projections they
        are the gradients by all weights, which fit into memory for small networks only.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        features of shape (n, p)
            A tensor if X is one, else a NumPy array.
        """
        x = check_metric(self.metric).project(rows_as_tensor("X", X))
        with torch.no_grad():
            network = self._network(x, explicit=True)
            passes = [network.parts(x[rows]) for rows in row_slices(len(x), network.rows_a_pass)]
            found = torch.cat([torch.cat([part.tensors[0] for part in parts], dim=1) for parts in passes])
        return like_input(found, X)

    def _network(self, rows: Tensor, explicit: bool = False) -> TangentNetwork:
        if not isinstance(self.network, nn.Module):
            raise invalid_parameter("network", self.network, "a torch.nn.Module")
        if self.head is not None and (not isinstance(self.head, str) or self.head not in HEADS):
            raise invalid_parameter("head", self.head, "None, 'sum' or 'random'")
        if self.n_projections is not None:
            check_count("n_projections", self.n_projections)
        shape = self._image_shape()
        if shape is not None and prod(shape) != rows.shape[1]:
            raise invalid_parameter(
                "image_shape", self.image_shape, f"a shape of {rows.shape[1]} numbers, which the rows have"
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return TangentNetwork(
            self.network,
            rows,
            image_shape=shape,
            head=self.head,
            n_projections=self.n_projections,
            explicit=explicit,
            seed=seed,
        )

    def _image_shape(self) -> tuple[int, ...] | None:
        """Return (height, width, channels), or None for flat rows."""
        if self.image_shape is None:
            return None
        sizes = check_sample_shape("image_shape", self.image_shape, only_images=True, or_none=True)
        return sizes if len(sizes) == 3 else (*sizes, 1)

    def values(self, x: TangentRows, z: TangentRows, scratch: Tensor | None = None) -> Tensor:
        a, b = x.rows.inputs, z.rows.inputs
        if a.shape[1] != b.shape[1]:
            raise ValueError(f"the two sets of rows have {a.shape[1]} and {b.shape[1]} columns: they must be equal.")
        K = torch.empty((len(a), len(b)), dtype=a.dtype, device=a.device) if scratch is None else scratch
        K.zero_()
        with torch.no_grad():
            for rows, ours in x.rows.walk():
                for columns, theirs in z.rows.walk():
                    block = K[rows, columns]
                    for own, other in zip(ours, theirs, strict=True):
                        own.add_products(other, block)
        return K

    def prepared_diagonal(self, x: TangentRows) -> Tensor:
        with torch.no_grad():
            return x.rows.squares()

    def gradient_terms(self, x: TangentRows, z: TangentRows) -> list[GradientTerm]:
        raise TypeError("a NeuralTangent kernel has no gradient weights, nor derivatives by its rows.")

    def __eq__(self, other: object) -> bool:
        """Whether the networks have equal layers and weights, and all other parameters are equal."""
        if type(self) is not type(other):
            return NotImplemented
        ours, theirs = self.get_params(deep=False), other.get_params(deep=False)
        same = same_network(ours.pop("network"), theirs.pop("network"))
        ours["metric"], theirs["metric"] = check_metric(ours["metric"]), check_metric(theirs["metric"])
        return same and ours == theirs

    __hash__ = None  # type: ignore[assignment]


def same_network(one: Any, other: Any) -> bool:
    """Whether two networks are the same object, or have the same layers with the same weights."""
    if one is other:
        return True
    if not (isinstance(one, nn.Module) and isinstance(other, nn.Module)) or repr(one) != repr(other):
        return False
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
