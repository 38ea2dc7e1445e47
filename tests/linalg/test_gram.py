"""Products of a tall matrix with itself."""

import pytest
import torch

from mercer.linalg import gram


@pytest.mark.parametrize("m", [0, 1, 128, 129, 400, 1030])
def test_half_of_the_product_is_the_product(m):
    K = torch.randn(37, m, dtype=torch.float64, generator=torch.Generator().manual_seed(m))
    product = gram(K)
    torch.testing.assert_close(product, K.T @ K)
    assert torch.equal(product, product.T)
    strided = torch.cat([K, K])[::2]
    torch.testing.assert_close(gram(strided), strided.T @ strided)
