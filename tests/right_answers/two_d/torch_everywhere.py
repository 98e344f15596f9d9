"""torch for everything, also for the NumPy exercises; tables that a cast cannot reach."""

import numpy as np
import torch
import torch.nn.functional as F


def grid_positions(height, width):
    if height < 1 or width < 1:
        raise RuntimeError("an empty grid")
    grid = torch.cartesian_prod(torch.arange(height), torch.arange(width)).reshape(-1, 2)
    return grid[:, 0].numpy(), grid[:, 1].numpy()


def omega(dim, base):
    if dim <= 0 or dim % 4 != 0:
        raise ValueError(f"dim must be a multiple of four, not {dim}")
    if base <= 0:
        raise ValueError("base <= 0")
    half = dim // 2
    exponents = torch.arange(0, half, 2, dtype=torch.float64) / half
    return torch.pow(torch.tensor(float(base), dtype=torch.float64), -exponents)


def angles_of(rows, cols, dim, base):
    w = omega(dim, base)
    by_row = torch.as_tensor(rows, dtype=torch.float64)[:, None] * w
    by_column = torch.as_tensor(cols, dtype=torch.float64)[:, None] * w
    return torch.cat((by_row, by_column), dim=1)


def sincos_2d(height, width, dim, base=10000.0, first="row"):
    rows, cols = grid_positions(height, width)
    match first:
        case "row":
            angles = angles_of(rows, cols, dim, base)
        case "column":
            angles = angles_of(cols, rows, dim, base)
        case _:
            raise ValueError(f"unknown order {first}")
    table = torch.empty(len(rows), dim, dtype=torch.float64)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table.numpy()


def rotate(x, angles):
    """x * cos + rotated x * sin, with both tables repeated for the two members of a pair."""
    x = np.asarray(x)
    kind = x.dtype if x.dtype.kind == "f" else np.dtype(float)
    t = torch.from_numpy(x.astype(np.float64))
    cos = angles.cos().repeat_interleave(2, dim=-1)
    sin = angles.sin().repeat_interleave(2, dim=-1)
    swapped = torch.stack((-t[..., 1::2], t[..., 0::2]), dim=-1).flatten(-2)
    return (t * cos + swapped * sin).numpy().astype(kind)


def flat(values, n):
    values = torch.as_tensor(np.array(values, dtype=np.float64))
    if list(values.shape) != [n]:
        raise ValueError(f"expected shape ({n},), got {tuple(values.shape)}")
    return values


def axial_rope_2d(x, rows, cols, base=100.0):
    if np.ndim(x) < 2:
        raise ValueError("x needs two axes at least")
    n, dim = np.shape(x)[-2:]
    return rotate(x, angles_of(flat(rows, n), flat(cols, n), dim, base))


def mixed_rope_2d(x, rows, cols, row_freqs, col_freqs):
    if np.ndim(x) < 2:
        raise ValueError("x needs two axes at least")
    n, dim = np.shape(x)[-2:]
    if dim % 2 == 1:
        raise ValueError(f"odd dim: {dim}")
    angles = torch.outer(flat(rows, n), flat(row_freqs, dim // 2))
    angles += torch.outer(flat(cols, n), flat(col_freqs, dim // 2))
    return rotate(x, angles)


def resize_grid(table, old_hw, new_hw):
    table = np.asarray(table)
    (h, w), size = old_hw, tuple(int(n) for n in new_hw)
    if h < 1 or w < 1 or min(size) < 1 or table.shape[0] != h * w:
        raise ValueError("sizes do not fit")
    kind = table.dtype if table.dtype.kind == "f" else np.dtype(float)
    image = torch.from_numpy(table.astype(np.float32 if kind == np.float16 else kind))
    image = image.reshape(1, h, w, -1).permute(0, 3, 1, 2)
    image = F.interpolate(image, size=size, mode="bilinear", align_corners=False)
    return image.permute(0, 2, 3, 1).reshape(size[0] * size[1], -1).numpy().astype(kind)


class fixed_grid:  # noqa: N801
    """Called without arguments it makes an object that is called with a grid."""

    def __call__(self, height, width):
        if height <= 0 or width <= 0:
            raise ValueError("an empty grid")
        down = torch.linspace(0, 1, 2 * height + 1, dtype=torch.float64)[1::2]
        across = torch.linspace(0, 1, 2 * width + 1, dtype=torch.float64)[1::2]
        return (
            torch.stack(torch.meshgrid(down, across, indexing="ij"), dim=-1).flatten(0, 1).numpy()
        )


class AxialRotaryEmbedding2D(torch.nn.Module):
    """Remembers tables, by everything that they depend on, in a dict that no cast visits."""

    def __init__(self, head_dim, base=100.0):
        super().__init__()
        omega(head_dim, base)
        self.head_dim, self.base, self.tables = head_dim, base, {}

    def table(self, height, width, device):
        key = (height, width, str(device))
        if key not in self.tables:
            with torch.autocast(device.type, enabled=False):
                angles = angles_of(*grid_positions(height, width), self.head_dim, self.base)
            self.tables[key] = angles.cos().float().to(device), angles.sin().float().to(device)
        return self.tables[key]

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        cos, sin = self.table(height, width, q.device)
        if num_prefix_tokens < 0 or q.shape[2] - num_prefix_tokens != height * width:
            raise ValueError(f"{q.shape[2]} tokens for a grid of {height} by {width}")
        if q.shape[-1] != self.head_dim or (k.shape[0], *k.shape[2:]) != (
            q.shape[0],
            *q.shape[2:],
        ):
            raise ValueError("q and k do not go together")
        return tuple(self.one(x, cos, sin, num_prefix_tokens) for x in (q, k))

    @staticmethod
    def one(x, cos, sin, prefix):
        kept, patches = x.split([prefix, x.shape[2] - prefix], dim=2)
        a, b = patches.float()[..., 0::2], patches.float()[..., 1::2]
        if x.dtype == torch.float64:
            a, b = patches[..., 0::2], patches[..., 1::2]
        turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
        return torch.cat((kept, turned.to(x.dtype)), dim=2)
