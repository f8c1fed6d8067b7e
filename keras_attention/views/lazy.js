// What takes long. It is made when somebody asks for it, a slice at a time.

export const SLICE = 10; // Milliseconds. Nobody sees a page wait so long.

/**
 * A value that takes long. Nothing is done before somebody asks for it.
 *
 * @param make a generator: it pauses where its work can be cut, and returns the
 *     value at its end
 * @returns a function of milliseconds: it works for so long, and gives the
 *     value, or null where more is to be done
 */
export function lazy(make) {
  let work = null;
  let value = null;
  return (milliseconds) => {
    work ??= make();
    const end = performance.now() + milliseconds;
    while (value === null) {
      const step = work.next();
      if (step.done) {
        ({ value } = step);
      } else if (performance.now() >= end) {
        break;
      }
    }
    return value;
  };
}
