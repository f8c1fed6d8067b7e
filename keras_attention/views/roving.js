// Buttons that are one stop of the tab key. Other keys move among them.

/**
 * Makes buttons one stop of the tab key.
 *
 * @param next a function of a key and a button's place to where the key leads
 * @param start the place at which the tab key comes in
 */
export function rove(buttons, next, start = 0) {
  buttons.forEach((button, place) => {
    button.tabIndex = place === start ? 0 : -1;
    button.addEventListener("focus", () => {
      buttons.forEach((other) => {
        other.tabIndex = other === button ? 0 : -1;
      });
    });
    button.addEventListener("keydown", (event) => {
      const to = buttons[next(event.key, place)];
      if (to) {
        event.preventDefault();
        to.focus();
      }
    });
  });
}

/** The keys of a line of buttons, in the direction of its text. */
export function alongLine(buttons) {
  return (key, place) => {
    const { direction } = getComputedStyle(buttons[place]);
    const forward = direction === "rtl" ? -1 : 1;
    return {
      ArrowLeft: place - forward,
      ArrowRight: place + forward,
      Home: 0,
      End: buttons.length - 1,
    }[key];
  };
}

/** The keys of buttons below each other. */
export function alongColumn(buttons) {
  return (key, place) => ({
    ArrowUp: place - 1,
    ArrowDown: place + 1,
    Home: 0,
    End: buttons.length - 1,
  })[key];
}
