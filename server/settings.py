"""Settings: `SAPWOOD_*` variables, each also a flag of `serve`."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

METRICS_WORDS = ("off", "loopback", "open")
SHORTEST_TOKEN = 16


class Settings(BaseSettings):
    """How a server runs. README lists every setting."""

    model_config = SettingsConfigDict(env_prefix="SAPWOOD_", extra="ignore")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on.")
    database_url: str | None = Field(None, description="mongodb://… for MongoDB; not set: SQLite in the data folder.")
    data_dir: Path = Field(Path("sapwood-data"), description="Folder of the SQLite file.")
    insecure: bool = Field(False, description="Let anybody do anything, from other machines too, where no key is made.")
    allowed_origins: str = Field("", description="Whose pages may call: https://a.example, or several with commas.")
    jwt_secret: str | None = Field(None, repr=False, description="Verifies JWTs (HS256 and longer): 32 bytes or more.")
    jwt_jwks_url: str | None = Field(None, description="Or where the keys are that verify them: a JWKS address.")
    jwt_issuer: str | None = Field(None, description="Who must have made them (iss).")
    jwt_audience: str | None = Field(None, description="Whom they must be made for (aud).")
    jwt_space_claim: str = Field("space", description="The claim that names the space.")
    jwt_role_claim: str = Field("role", description="The claim that names the role.")
    workers: int = Field(1, ge=1, description="Server processes on the one port.")
    deadline: float = Field(30, gt=0, description="Seconds that a query may take.")
    send_timeout: float = Field(30, gt=0, description="Seconds that a client may read nothing of what waits for it.")
    grace: int = Field(10, ge=0, description="Seconds that operations may go on when the server is told to end.")
    max_cost: int = Field(100_000, ge=1, description="Nodes that one operation may ask for.")
    introspection: bool = Field(True, description="Let clients ask for the schema. Off under --documents-only.")
    documents: Path | None = Field(None, description="Trusted documents: a folder of .graphql files, or a manifest.")
    documents_only: bool = Field(False, description="Run trusted documents and nothing else.")
    rate: float | None = Field(None, gt=0, description="Operations a second for each API key; not set: no limit.")
    rate_burst: int = Field(100, ge=1, description="Operations that a key may save up and send at once.")
    sockets_per_key: int | None = Field(None, ge=1, description="Sockets that a key may hold; not set: no limit.")
    graphiql: bool = Field(True, description="Whether browsers that open /graphql get GraphiQL.")
    metrics: str = Field("loopback", description="Who may read /metrics: off, loopback, open, or a token to bring.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("warning", description="What is logged, at least.")
    log_format: Literal["console", "json"] = Field("console", description="How it is logged.")
    frontend_dir: Path | None = Field(None, description="Folder of the built page; not set: frontend-example/dist.")

    @field_validator("metrics")
    @classmethod
    def _is_word_or_token(cls, value: str) -> str:
        if value not in METRICS_WORDS and len(value) < SHORTEST_TOKEN:
            words = ", ".join(METRICS_WORDS)
            raise ValueError(f"must be {words}, or a token of {SHORTEST_TOKEN} characters or more")
        return value
