"""Submissions that cheat, spy, break, exhaust or confuse, each with what it tries.

A grader is trusted for what was tried against it: each module holds one kind of attack, each attack
says what its honest part is worth.
"""

from . import cheating, exhausting, malformed, names, objects, protocol, showing, spying, stopping
from .attack import Attack

ATTACKS: tuple[Attack, ...] = (
    *cheating.ATTACKS,
    *spying.ATTACKS,
    *stopping.ATTACKS,
    *exhausting.ATTACKS,
    *protocol.ATTACKS,
    *objects.ATTACKS,
    *showing.ATTACKS,
    *names.ATTACKS,
    *malformed.ATTACKS,
)
