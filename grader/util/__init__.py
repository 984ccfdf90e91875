"""What every stage may use: errors that are sentences, files written whole, names, links."""
