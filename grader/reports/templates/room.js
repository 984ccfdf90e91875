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
