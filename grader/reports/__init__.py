"""One file per format: text, HTML, JSON, JUnit, Markdown, CSV and others; a class's page."""
