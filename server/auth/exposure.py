"""What must be right before a server listens: its settings of access, and whom its address lets in."""

from server.auth.loopback import reaches_this_machine_alone
from server.auth.origins import allowed_by
from server.auth.tokens import tokens_of
from server.settings import Settings
from storage import access_keys, errors
from storage.database import Database


async def is_guarded(database: Database, settings: Settings) -> bool:
    """Whether callers need a credential. Raises StartupError for settings of access that can't be used."""
    allowed_by(settings.allowed_origins)
    return tokens_of(settings) is not None or await access_keys.exist(database)


def check_exposure(settings: Settings, guarded: bool) -> None:
    """Raises StartupError where other machines could reach a server that asks nobody for a credential."""
    if not (guarded or settings.insecure or reaches_this_machine_alone(settings.host)):
        raise errors.StartupError(
            f"on {settings.host} other machines could do anything here: make a key with `sapwood keys create` (or set "
            "up JWTs) first, listen on 127.0.0.1, or say --insecure (SAPWOOD_INSECURE=1) if that is meant"
        )
