"""A live workshop: what notebooks send to a room, who is where, the page for the projector, the server."""

PORT = 8765  # that a room's server listens at, unless it is told another one
