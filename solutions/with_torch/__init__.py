"""The reference as a model uses it: torch modules that follow their input's dtype and device.

Twin of `solutions.with_numpy`, where the same mathematics is written as the papers print it.
"""

from . import kernels, rope

# From here, so that a chapter's file works by itself, in a notebook too.
rope.kernel_for = kernels.kernel_for
