"""What a course is: its folder, specifications, patches of references, notebooks made from a source."""
