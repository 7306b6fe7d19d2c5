"""HTTP, WebSockets and event streams."""
