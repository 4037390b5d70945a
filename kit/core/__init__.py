"""Values: frozen, no I/O, no asyncio."""
