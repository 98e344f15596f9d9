"""Takes links and pipes out of what was handed in, before nbgrader copies or waits for them.

nbgrader follows a link, and the file that it points to would come back in a student's feedback.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def sweep(submitted: Path, refused: Path) -> list[str]:
    """Move everything that is neither a file nor a folder to `refused`; says what was moved."""
    moved = []
    for folder, folders, files in os.walk(submitted):
        for name in [*folders, *files]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                continue
            target = refused / path.relative_to(submitted)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
            moved.append(f"{path} is no file of its own: moved to {target}")
    return moved
