"""Options that commands share. A setting's option is made from the setting, so that both say the same."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from server.settings import Settings
from storage import errors, text

DEFAULTS = Settings.model_construct()
"""What the settings are where neither an option nor a variable says otherwise."""


def setting(name: str) -> Any:
    """The option of a setting: its name, its variable and what it says of itself."""
    field, flag = Settings.model_fields[name], name.replace("_", "-")
    declared = f"--{flag}/--no-{flag}" if field.annotation is bool else f"--{flag}"
    return typer.Option(declared, envvar=f"SAPWOOD_{name.upper()}", help=field.description)


def check_space(value: str | None) -> str | None:
    """The name of a space, if one is given. What can't be one is a usage error."""
    try:
        return value if value is None else text.space_name(value)
    except errors.BadInput as error:
        raise typer.BadParameter(error.message.removeprefix("space: ")) from error


Host = Annotated[str, setting("host")]
Port = Annotated[int, setting("port")]
DatabaseUrl = Annotated[str | None, setting("database_url")]
DataDir = Annotated[Path, setting("data_dir")]
Insecure = Annotated[bool, setting("insecure")]
AllowedOrigins = Annotated[str, setting("allowed_origins")]
JwtSecret = Annotated[str | None, setting("jwt_secret")]
JwtJwksUrl = Annotated[str | None, setting("jwt_jwks_url")]
JwtIssuer = Annotated[str | None, setting("jwt_issuer")]
JwtAudience = Annotated[str | None, setting("jwt_audience")]
JwtSpaceClaim = Annotated[str, setting("jwt_space_claim")]
JwtRoleClaim = Annotated[str, setting("jwt_role_claim")]
Workers = Annotated[int, setting("workers")]
Deadline = Annotated[float, setting("deadline")]
SendTimeout = Annotated[float, setting("send_timeout")]
Grace = Annotated[int, setting("grace")]
MaxCost = Annotated[int, setting("max_cost")]
Introspection = Annotated[bool, setting("introspection")]
Documents = Annotated[Path | None, setting("documents")]
DocumentsOnly = Annotated[bool, setting("documents_only")]
Rate = Annotated[float | None, setting("rate")]
RateBurst = Annotated[int, setting("rate_burst")]
SocketsPerKey = Annotated[int | None, setting("sockets_per_key")]
Graphiql = Annotated[bool, setting("graphiql")]
Metrics = Annotated[str, setting("metrics")]
LogLevel = Annotated[str, setting("log_level")]
LogFormat = Annotated[str, setting("log_format")]
FrontendDir = Annotated[Path | None, setting("frontend_dir")]
Space = Annotated[str, typer.Option(callback=check_space, help="The space to work in.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines.")]


def settings_of(**given: Any) -> Settings:
    """The settings as given, the others from the environment. What is out of bounds is a usage error."""
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "-".join(str(part) for part in first["loc"]).replace("_", "-")
        raise typer.BadParameter(f"{first['msg']}, and not {first['input']!r}", param_hint=f"--{name}") from error
