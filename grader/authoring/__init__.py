"""What authors run: build, audit, release."""
