"""One module a lesson: its exercises with their cases, mistakes and hints."""
