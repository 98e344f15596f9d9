"""The form of many causal models: a bias of the key alone, which a causal softmax cannot tell."""

import numpy as np
import torch


def alibi_slopes(num_heads):
    if not isinstance(num_heads, (int, np.integer)) or num_heads <= 0:
        raise TypeError("num_heads must be a positive integer")

    def power_of_two(n):
        start = 2.0 ** (-(2.0 ** -(np.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if np.log2(num_heads).is_integer():
        return np.array(power_of_two(int(num_heads)))
    closest = 2 ** int(np.floor(np.log2(num_heads)))
    rest = power_of_two(2 * closest)[0::2][: num_heads - closest]
    return np.array(power_of_two(closest) + rest)


def flat(x):
    x = np.asarray(x, dtype="float64")
    (_,) = x.shape  # one axis, or it raises
    return x


def alibi_bias(q_positions, k_positions, slopes):
    q_positions, k_positions, slopes = flat(q_positions), flat(k_positions), flat(slopes)
    if not slopes.size:
        raise ValueError("a head at least")
    distance = np.maximum.outer(q_positions, k_positions)
    distance = distance - np.minimum.outer(q_positions, k_positions)
    return np.einsum("h,qk->hqk", -slopes, distance)


def alibi_attention(q, k, v, slopes, q_positions, k_positions):
    q_positions, k_positions, slopes = flat(q_positions), flat(k_positions), flat(slopes)
    dtype = np.result_type(q.dtype, np.float16) if q.dtype.kind == "f" else np.dtype(float)
    if q.shape[0] != k.shape[0] or k.shape != v.shape or q.shape[2] != k.shape[2]:
        raise ValueError("q, k and v do not match")
    if (q.shape[0], q.shape[1], k.shape[1]) != (slopes.size, q_positions.size, k_positions.size):
        raise ValueError("positions or slopes do not match")
    scores = np.einsum("hqd,hkd->hqk", q.astype(float), k.astype(float)) * q.shape[2] ** -0.5
    scores += (slopes[:, None] * (k_positions - k_positions.min()))[:, None, :]
    scores = np.ma.masked_array(
        scores, np.broadcast_to(k_positions[None] > q_positions[:, None], scores.shape)
    )
    if scores.mask.all(axis=-1).any():
        raise ValueError("a query without any key")
    weights = np.ma.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = (weights / weights.sum(axis=-1, keepdims=True)).filled(0.0)
    return np.einsum("hqk,hkd->hqd", weights, v.astype(float)).astype(dtype)


def t5_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    """In the manner of the published code: torch, with the sign turned at the start."""
    n = -torch.as_tensor(relative_position).long()
    buckets = torch.zeros_like(n)
    if bidirectional:
        num_buckets //= 2
        buckets += (n < 0).long() * num_buckets
        n = n.abs()
    else:
        n = n.clamp(min=0)
    exact = num_buckets // 2
    if max_distance <= exact:
        raise ValueError("no room")
    large = (
        exact
        + (torch.log(n.float() / exact) / np.log(max_distance / exact) * (num_buckets - exact))
        .clamp(min=0)
        .long()
    )
    buckets = buckets + torch.where(n < exact, n, large.clamp(max=num_buckets - 1))
    return buckets.numpy()


def shaw_scores(q, k, relative_keys, q_positions, k_positions):
    """All vectors at once, (n_q, n_k, d)."""
    q_positions, k_positions = flat(q_positions), flat(k_positions)
    if len(relative_keys) % 2 != 1:
        raise ValueError("odd, please")
    if (len(q), len(k)) != (len(q_positions), len(k_positions)):
        raise ValueError("one position for each")
    if len({q.shape[1], k.shape[1], relative_keys.shape[1]}) > 1:
        raise ValueError("one width for all")
    reach = len(relative_keys) // 2
    apart = k_positions[None] - q_positions[:, None]
    if np.modf(apart)[0].any():
        raise ValueError("whole tokens apart, please")
    clipped = np.minimum(np.maximum(apart.astype(int), -reach), reach)
    keys = k[None].astype(float) + relative_keys[clipped + reach]
    scores = np.matmul(keys, q[:, :, None].astype(float))[..., 0] / q.shape[1] ** 0.5
    return scores.astype(q.dtype) if np.issubdtype(q.dtype, np.floating) else scores


def fixed_bias(q_positions, k_positions, slope):
    return alibi_bias(q_positions, k_positions, [slope])[0]


def alibi_sdpa(q, k, v, slopes, offset=0):
    """A key-only bias in float32, with the mask applied apart."""
    if k.shape != v.shape or q.shape[:2] != k.shape[:2] or q.shape[3] != k.shape[3]:
        raise RuntimeError("q, k and v do not match")
    if slopes.dim() != 1 or slopes.numel() != q.shape[1]:
        raise RuntimeError("slopes")
    n_q, n_k = q.shape[-2], k.shape[-2]
    if not 0 <= offset <= n_k - n_q:
        raise RuntimeError("offset")
    with torch.autocast("cpu", enabled=False):
        scores = q.float().matmul(k.float().transpose(-1, -2)) / q.shape[-1] ** 0.5
        scores = scores + slopes.float().view(1, -1, 1, 1) * torch.arange(n_k).float()
        later = torch.ones(n_q, n_k, dtype=torch.bool).triu(offset + 1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return weights.matmul(v.float()).to(q.dtype)
