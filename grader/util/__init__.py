"""Helpers for every stage: errors that are sentences, files written all at once, names, links."""
