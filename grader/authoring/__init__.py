"""The commands for authors: build, audit, release."""
