"""Loopback addresses and names: those that reach this machine only."""

import ipaddress
import socket
from urllib.parse import urlsplit


def is_loopback_only(host: str) -> bool:
    """Whether a server that listens on this host can't be reached from other machines."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(is_loopback(str(address[0])) for *_, address in found)


def is_loopback_name(host_header: str) -> bool:
    """Whether a Host header has localhost or a loopback address, with any port."""
    try:
        name = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def is_loopback(address: str) -> bool:
    """Whether an IP address is a loopback address."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
