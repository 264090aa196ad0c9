"""Manners: how a crawler treats the wiki it reads."""

from dataclasses import dataclass

from unalike.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Manners:
    """Who asks, how often, and how patiently."""

    contact: str = ""
    """An e-mail or web address where the wiki's operators reach you."""
    rate: float = 5.0
    """Requests a second at most; 0 sets no limit."""
    at_once: int = 1
    """Requests that may be under way together."""
    maxlag: int = 5
    """Seconds that copies of the wiki may lag behind before it is left in peace."""
    tries: int = 10
    """How often the same request is sent before giving up."""
    first_wait: float = 1.0
    """Seconds before the second try; each later wait is twice as long."""
    longest_wait: float = 120.0
    timeout: float = 60.0
    """Seconds that a connection may be silent."""

    def __post_init__(self) -> None:
        if not self.rate >= 0:
            raise UserError(
                f"The rate is 0 or more requests a second, not {self.rate}."
            )
        if not 1 <= self.at_once <= 64:
            raise UserError(f"1 to 64 requests go at once, not {self.at_once}.")
