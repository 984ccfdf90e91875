"""One file a format: text, HTML, JSON, JUnit, Markdown, CSV and others; a class's page."""
