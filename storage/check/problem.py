"""What a check finds."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with session `id`.

    `repair` says what a repair does about it; where it is None, `by_hand` says what a person can do.
    """

    space: str
    id: str
    what: str
    repair: str | None = None
    by_hand: str | None = None
    repaired: bool = False

    def done(self) -> "Problem":
        """The same problem, repaired."""
        return replace(self, repaired=True)

    def __str__(self) -> str:
        if self.repaired:
            return f"{self.space}/{self.id} {self.what}: repaired, {self.repair}"
        if self.repair is not None:
            return f"{self.space}/{self.id} {self.what}: --repair helps, {self.repair}"
        return f"{self.space}/{self.id} {self.what}: can't be repaired, {self.by_hand}"
