// A button that writes the rows of a map once more, one after the other.

import { html } from "./elements.js";

const PAUSE_OF_ROWS = 800; // Milliseconds.
const PLAY = "Play: write it token by token";

/**
 * A button that shows rows one after the other. Where motion is not wanted,
 * each press shows one.
 *
 * @param buttons those of the rows
 * @param choose a function of the row that was written last, or null
 */
export function player(buttons, choose) {
  const play = html("button", { type: "button", class: "play" });
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let written = null;
  let timer = null;
  function show(number) {
    written = number;
    buttons.forEach((button, place) => {
      const isLater = number !== null && place >= number;
      button.style.visibility = isLater ? "hidden" : "visible";
    });
    choose(number === null ? null : number - 1);
    const next = timer ? "Stop" : "Next token";
    play.textContent = number === null ? PLAY : next;
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    show(null);
  }
  function step() {
    // Another map may have taken the place of this one.
    if (!play.isConnected || written >= buttons.length) {
      stop();
    } else {
      show(written + 1);
    }
  }
  play.addEventListener("click", () => {
    if (timer) {
      stop();
      return;
    }
    if (!still.matches) {
      timer = setInterval(step, PAUSE_OF_ROWS);
    }
    step();
  });
  play.textContent = PLAY;
  return play;
}
