"use strict";
const room = document.getElementById("room"), lost = document.getElementById("lost");
function listen() {
  const source = new EventSource(location.pathname + "/live");
  source.onmessage = (event) => { room.innerHTML = event.data; lost.hidden = true; };
  source.onerror = () => {  // a browser tries again by itself only for some of the ways in which it can fail
    lost.hidden = false;
    source.close();
    setTimeout(listen, 2000);
  };
}
listen();

const members = document.getElementById("members");
async function ask(what, data) {
  const body = JSON.stringify({format: 1, ...data});
  const answer = await fetch(location.pathname + "/" + what, {method: "POST", body, headers: {"Content-Type": "application/json"}});
  const said = await answer.json();
  if (!answer.ok) { throw new Error(said.error); }
  return said;
}
async function list() {
  const {learners} = await ask("learners", {});
  members.querySelector("ul").replaceChildren(...learners.map((one) => {
    const item = document.createElement("li"), label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox"; box.value = one.place; box.dataset.idle = !one.checked;
    label.append(box, " " + one.name + (one.checked ? "" : " (has checked nothing)"));
    item.append(label);
    return item;
  }));
}
async function press(what) {
  const boxes = [...members.querySelectorAll("input")];
  if (what === "idle") { boxes.forEach((box) => { box.checked = box.dataset.idle === "true"; }); return ""; }
  if (what === "code") { return "The code is now " + (await ask("code", {})).code + "."; }
  const places = boxes.filter((box) => box.checked).map((box) => Number(box.value));
  if (!places.length) { return "Select the learners to remove first."; }
  const {removed} = await ask("remove", {places});
  await list();
  return "Removed: " + removed + ".";
}
if (members) {
  const say = (text) => { members.querySelector("[role=status]").textContent = text; };
  members.addEventListener("toggle", () => { if (members.open) { list().catch((error) => say(error.message)); } });
  members.querySelectorAll("button").forEach((button) => {
    button.onclick = () => press(button.dataset.do).then(say, (error) => say(error.message));
  });
}
