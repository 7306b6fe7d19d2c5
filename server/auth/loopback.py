"""Whether an address or a name is of this machine alone."""

import ipaddress
import socket
from urllib.parse import urlsplit


def reaches_this_machine_alone(host: str) -> bool:
    """Whether a server that listens there can't be reached from other machines."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(is_loopback(str(address[0])) for *_, address in found)


def names_this_machine(host_header: str) -> bool:
    """Whether a Host header holds a loopback address or localhost, with any port."""
    try:
        name = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def is_loopback(address: str) -> bool:
    """Whether an address is one of this machine's own, which no other can reach."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
