"""Multi-head attention, split into four linear layers, which are recorded, and a softmax without parameters."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from mercer.kernels.neural_tangent.tracing import Tracing


def attend(
    tracing: "Tracing",
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    average_attn_weights: bool = True,
    **options: Any,
) -> tuple[Tensor, Tensor | None] | None:
    """Return the result of `torch.nn.functional.multi_head_attention_forward`, and record its linear layers.

    The arguments are those of torch's function. The result is None for what is not supported here: keys and values that
    are parameters, dropout, and sequences without a batch axis.
    """
    unsupported = bias_k is not None or bias_v is not None or add_zero_attn or (training and dropout_p > 0)
    if unsupported or query.ndim != 3 or any(value is not None for value in options.values() if value is not False):
        return None
    width = query.shape[-1]
    parts = slice(0, width), slice(width, 2 * width), slice(2 * width, 3 * width)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    projected = []
    for i, (x, rows) in enumerate(zip((query, key, value), parts, strict=True)):
        if separate is None:
            projected.append(tracing.linear(x, in_proj_weight, in_proj_bias, rows))  # type: ignore[arg-type]
        else:
            projected.append(tracing.linear(x, separate[i], None))  # type: ignore[arg-type]
            if in_proj_bias is not None:
                projected[-1] = tracing.shifted(projected[-1], in_proj_bias, rows)
    # (length, n, width) -> (n, heads, length, width / heads)
    q, k, v = (x.unflatten(2, (num_heads, -1)).permute(1, 2, 0, 3) for x in projected)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if attn_mask is not None:
        mask = attn_mask.unflatten(0, (-1, num_heads)) if attn_mask.ndim == 3 else attn_mask
        scores = scores.masked_fill(mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    if key_padding_mask is not None:
        hidden = key_padding_mask[:, None, None, :]
        scores = scores.masked_fill(hidden, float("-inf")) if hidden.dtype == torch.bool else scores + hidden
    weights = scores.softmax(dim=-1)
    heads = (weights @ v).permute(2, 0, 1, 3).flatten(2)
    output = tracing.linear(heads, out_proj_weight, out_proj_bias)
    if not need_weights:
        return output, None
    return output, weights.mean(dim=1) if average_attn_weights else weights
