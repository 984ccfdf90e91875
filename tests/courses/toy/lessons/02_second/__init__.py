from grader.course.declare import collected

lesson = collected(__name__, ("nobody",), title="Another", question="?")
