"use strict";
const renewal = document.getElementById("renewal"), unsaved = new Set();
async function save(form) {
  const {exercise, seen} = form.dataset, points = form.points.value, comment = form.comment.value;
  const body = JSON.stringify({format: 1, exercise, seen, points, comment}), headers = {"Content-Type": "application/json"};
  const answer = await fetch(location.pathname, {method: "POST", body, headers});
  const told = await answer.json();
  form.dataset.seen = told.seen ?? seen;
  if (!answer.ok) { throw new Error(told.error); }
  document.getElementById("score").textContent = told.score;
  form.append(renewal);  // beside what was saved last
  renewal.hidden = false;
  if (points === form.points.value && comment === form.comment.value) { unsaved.delete(form); }
  return told.said;
}
for (const form of document.forms) {
  const say = (textContent, className) => Object.assign(form.querySelector("[role=status]"), {textContent, className});
  form.oninput = () => { unsaved.add(form); say("Not saved yet.", ""); };
  form.onkeydown = (event) => { if (event.key === "Enter" && event.ctrlKey) { form.requestSubmit(); } };
  form.onsubmit = (event) => { event.preventDefault(); save(form).then((said) => say(said, "good"), (error) => say(
    error instanceof TypeError ? "Not saved: `grader mark` does not answer. Is it still running?" : error.message, "bad")); };
}
addEventListener("beforeunload", (event) => { if (unsaved.size) { event.preventDefault(); } });
