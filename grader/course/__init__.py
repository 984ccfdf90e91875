"""The course as authors write it: lessons, a file each exercise; mistakes; references; stubs."""
