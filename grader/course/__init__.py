"""The course as authors write it: lessons, one file per exercise; mistakes; references; stubs."""
