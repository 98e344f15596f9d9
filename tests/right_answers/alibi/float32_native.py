"""float32 stays float32 all the way, as in model code; only distances are exact before the cast."""

import numpy as np
import torch


def computing(*arrays):
    """(dtype of the result, the arrays in that dtype, float16 in float32)."""
    kind = arrays[0].dtype if arrays[0].dtype.kind == "f" else np.dtype("float64")
    wide = np.promote_types(kind, np.float32)
    return kind, wide, [a.astype(wide) for a in arrays]


def apart(q_positions, k_positions):
    """Query minus key, in float64 whatever comes."""
    i, j = (np.asarray(p) for p in (q_positions, k_positions))
    if i.ndim != 1 or j.ndim != 1:
        raise TypeError("positions in one row, please")
    return i[:, np.newaxis].astype(np.float64) - j[np.newaxis, :].astype(np.float64)


def alibi_slopes(num_heads):
    """A plain list of Python's own floats."""
    if not num_heads > 0 or num_heads != round(num_heads):
        raise ArithmeticError(f"{num_heads} heads")
    whole = 1
    while whole * 2 <= num_heads:
        whole *= 2
    slopes = [0.5 ** (8 * h / whole) for h in range(1, whole + 1)]
    return slopes + [0.5 ** (4 * h / whole) for h in range(1, 2 * (num_heads - whole), 2)]


def alibi_bias(q_positions, k_positions, slopes):
    slopes = np.asarray(slopes, dtype=np.float64)
    if slopes.ndim != 1 or slopes.shape == (0,):
        raise TypeError("slopes in one row, please")
    distances = np.fabs(apart(q_positions, k_positions))
    return np.stack([distances * -slope for slope in slopes])


def alibi_attention(q, k, v, slopes, q_positions, k_positions):
    heads, n_q, d = q.shape
    n_k = k.shape[1]
    if k.shape != (heads, n_k, d) or v.shape != (heads, n_k, d) or np.shape(slopes) != (heads,):
        raise TypeError("shapes")
    distances = apart(q_positions, k_positions)
    if distances.shape != (n_q, n_k):
        raise TypeError("positions")
    if (distances < 0).all(axis=1).any():
        raise ValueError("a query that sees nothing")
    kind, wide, (q, k, v) = computing(q, k, v)
    slopes = np.asarray(slopes, dtype=wide)
    scores = np.einsum("hid,hjd->hij", q, k) / wide.type(d**0.5)
    scores -= slopes[:, np.newaxis, np.newaxis] * distances.astype(wide)
    scores[:, distances < 0] = -np.inf
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (powers @ v / powers.sum(axis=2, keepdims=True)).astype(kind)


def t5_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    """A table of all buckets, read at the distance."""
    later_half = num_buckets // 2 if bidirectional else 0
    n = later_half or num_buckets
    exact = n // 2
    if max_distance <= exact:
        raise ValueError(f"max_distance {max_distance} in the exact part")
    far = np.arange(exact, max_distance + 1, dtype=np.float64)
    logs = np.log(far / exact) / np.log(max_distance / exact) * (n - exact)
    table = np.append(np.arange(exact), np.minimum(exact + np.int64(logs + 1e-9), n - 1))
    key = np.asarray(relative_position).astype(np.int64)
    distance = abs(key) if bidirectional else np.where(key < 0, -key, 0)
    return table[np.minimum(distance, max_distance)] + later_half * (key > 0)


def shaw_scores(q, k, relative_keys, q_positions, k_positions):
    distances = -apart(q_positions, k_positions)
    if not len(relative_keys) & 1 or distances.shape != (len(q), len(k)):
        raise TypeError("a table with a middle, and one position for each row")
    if not q.shape[1:] == k.shape[1:] == relative_keys.shape[1:]:
        raise TypeError("widths")
    if np.any(distances != np.floor(distances)):
        raise TypeError("whole tokens")
    kind, wide, (q, k, relative_keys) = computing(q, k, relative_keys)
    K = (len(relative_keys) - 1) // 2
    keys = k + relative_keys[np.int64(distances.clip(-K, K)) + K]
    return (np.einsum("id,ijd->ij", q, keys) / wide.type(q.shape[1] ** 0.5)).astype(kind)


def fixed_bias(q_positions, k_positions, slope):
    distances = apart(q_positions, k_positions)
    return np.where(distances > 0, -distances, distances) * slope


def alibi_sdpa(q, k, v, slopes, offset=0):
    """Float64 throughout: better than asked for."""
    batch, heads, n_q, d = q.shape
    n_k = k.shape[2]
    if not k.shape == v.shape == (batch, heads, n_k, d) or slopes.shape != (heads,):
        raise TypeError("shapes")
    if offset < 0 or offset > n_k - n_q:
        raise IndexError(offset)
    with torch.autocast(q.device.type, enabled=False):
        at = torch.arange(n_q, device=q.device, dtype=torch.float64)[:, None] + offset
        away = at - torch.arange(n_k, device=q.device)
        scores = q.double() @ k.double().mT * d**-0.5
        scores = scores - slopes.to(q.device).double()[:, None, None] * away
        weights = scores.where(away >= 0, -torch.inf).softmax(-1)
        return (weights @ v.double()).to(q.dtype)
