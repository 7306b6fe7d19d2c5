"""What a check has found."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Problem:
    """`what` is wrong with session `id`; `repair` is what a repair does about it, or None where it can do nothing.

    `by_hand` is what a person can do instead.
    """

    space: str
    id: str
    what: str
    repair: str | None = None
    by_hand: str | None = None
    repaired: bool = False

    def done(self) -> "Problem":
        """The same, repaired."""
        return replace(self, repaired=True)

    def __str__(self) -> str:
        if self.repaired:
            return f"{self.space}/{self.id} {self.what}: repaired, {self.repair}"
        if self.repair is not None:
            return f"{self.space}/{self.id} {self.what}: --repair helps, {self.repair}"
        return f"{self.space}/{self.id} {self.what}: can't be repaired, {self.by_hand}"
