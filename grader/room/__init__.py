"""A workshop, live: what a notebook tells a room, who is where, the page for the projector, the server."""
