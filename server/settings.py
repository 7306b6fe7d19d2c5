"""Settings: the one place that names them.

The flags of commands, their help and the table in docs/configuration.md are made from these fields.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "SAPWOOD_"
METRICS_WORDS = ("off", "loopback", "open")
SHORTEST_TOKEN = 16


class Settings(BaseSettings):
    """How a server runs. Each field is an environment variable, and a flag of `sapwood serve`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    database_url: str | None = Field(
        None,
        description="mongodb://… or sqlite:///path/file.db (absolute: sqlite:////path); not set: SQLite in the folder.",
    )
    data_dir: Path = Field(Path("sapwood-data"), description="Folder of the SQLite file, sapwood.db.")
    workers: int = Field(1, ge=1, description="Server processes that share the port.")
    insecure: bool = Field(False, description="Serve other machines without access control.")
    allowed_origins: str = Field(
        "", description="Origins whose pages may call, such as https://a.example, separated by commas; * allows all."
    )
    jwt_secret: str | None = Field(
        None, repr=False, description="Secret of 32 bytes or more that verifies JWTs (HS256, HS384, HS512)."
    )
    jwt_jwks_url: str | None = Field(
        None, description="JWKS address of the public keys that verify JWTs (RS, PS, ES, EdDSA), instead of a secret."
    )
    jwt_issuer: str | None = Field(None, description="Issuer (iss) that JWTs must have.")
    jwt_audience: str | None = Field(None, description="Audience (aud) that JWTs must have.")
    jwt_space_claim: str = Field("space", description="Claim of JWTs that names the space.")
    jwt_role_claim: str = Field("role", description="Claim of JWTs that names the role.")
    deadline: float = Field(30, gt=0, description="Seconds that a query may take.")
    request_timeout: float = Field(
        30, gt=0, description="Seconds for a request's headers, and for each further 4 KiB of its body, to arrive."
    )
    send_timeout: float = Field(30, gt=0, description="Seconds after which a client that stops reading is dropped.")
    grace: int = Field(10, ge=0, description="Seconds that operations under way get to finish at shutdown.")
    max_cost: int = Field(100_000, ge=1, description="Nodes that one operation may ask for.")
    introspection: bool = Field(
        True, description="Allow introspection, and suggest names in errors; off with --documents-only."
    )
    documents: Path | None = Field(
        None, description="Trusted documents: a folder of .graphql files, or a JSON manifest."
    )
    documents_only: bool = Field(False, description="Run trusted documents only.")
    rate: float | None = Field(None, gt=0, description="Operations per second for each API key; not set: no limit.")
    rate_burst: int = Field(100, ge=1, description="Operations that a key may save up and send at once.")
    sockets_per_key: int | None = Field(
        None, ge=1, description="WebSockets that a key may hold open; not set: no limit."
    )
    graphiql: bool = Field(True, description="Serve GraphiQL to browsers that open /graphql.")
    metrics: str = Field(
        "loopback",
        description="Who may read /metrics: off, loopback, open, or whoever sends this token of 16 characters or more.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="Lowest level to log: debug, info, warning or error."
    )
    log_format: Literal["console", "json"] = Field(
        "console", description="Format of the log on stderr: console for people, json for machines."
    )
    frontend_dir: Path | None = Field(
        None, description="Folder of the built page, served at /; not set: frontend-example/dist, if it is built."
    )

    @field_validator("metrics")
    @classmethod
    def _is_word_or_token(cls, value: str) -> str:
        if value not in METRICS_WORDS and len(value) < SHORTEST_TOKEN:
            words = ", ".join(METRICS_WORDS)
            raise ValueError(f"must be {words}, or a token of {SHORTEST_TOKEN} characters or more")
        return value


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def flags(name: str) -> tuple[str, ...]:
    """The flags of a setting: one that takes a value, or a pair that turns it on and off."""
    flag = name.replace("_", "-")
    return (f"--{flag}", f"--no-{flag}") if Settings.model_fields[name].annotation is bool else (f"--{flag}",)


def table() -> str:
    """All settings as a Markdown table."""
    rows = ["| Variable | Flag | Default | Meaning |", "| --- | --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        # Of a pair, the flag that changes the default.
        flag = flags(name)[-1 if field.default is True else 0]
        rows.append(f"| `{variable(name)}` | `{flag}` | {_shown(field.default)} | {field.description} |")
    return "\n".join(rows) + "\n"


def _shown(default: Any) -> str:
    if default is None:
        return "not set"
    if default == "":
        return "none"
    if isinstance(default, Path):
        return f"`./{default}`"
    return f"`{str(default).lower()}`"
