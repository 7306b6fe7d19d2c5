"""Checks before a server listens: its settings of access, and who can reach its address."""

from server.auth.loopback import is_loopback_only
from server.auth.origins import allowed_by
from server.auth.tokens import jwt_verifier
from server.settings import Settings
from storage import access_keys, errors
from storage.database import Database


async def requires_credentials(database: Database, settings: Settings) -> bool:
    """Whether callers need a credential. Raises StartupError for wrong settings of access."""
    allowed_by(settings.allowed_origins)
    return jwt_verifier(settings) is not None or await access_keys.exist(database)


def check_exposure(settings: Settings, credentials: bool) -> None:
    """Raises StartupError if other machines could reach a server that requires no credentials."""
    if not (credentials or settings.insecure or is_loopback_only(settings.host)):
        raise errors.StartupError(
            f"listening on {settings.host} would give other machines full access: create a key with `sapwood keys "
            "create`, set up JWTs, listen on 127.0.0.1, or pass --insecure (SAPWOOD_INSECURE=1) if you mean it"
        )
