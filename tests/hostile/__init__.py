"""Submissions that cheat, spy, break, exhaust or confuse, and the class in which they are handed in.

A grader is trusted for what was tried against it: each module holds one kind of attack, each attack
a sentence that says what it tries, and what its honest part is worth.
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
