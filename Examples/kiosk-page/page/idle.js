// The watch for customers who have gone.

/**
 * Calls `expire` after a time without `touch()`; `warn(secondsLeft)` each second of the last part of it, and `calm()`
 * when the warning ends.  Nothing happens while `isHeld()`: the time begins again after that.
 */
export class IdleWatch {
  #touched = performance.now();
  #warned = null;
  #timer;

  constructor({ limit, warning, isHeld, warn, calm, expire }) {
    this.#timer = setInterval(() => {
      if (isHeld()) return this.touch();
      const left = Math.ceil(limit - (performance.now() - this.#touched) / 1000);
      if (left <= 0) {
        clearInterval(this.#timer);
        expire();
      } else if (left <= warning && left !== this.#warned) {
        this.#warned = left;
        warn(left);
      }
    }, 100);
    this.calm = calm;
  }

  /** The customer did something. */
  touch() {
    this.#touched = performance.now();
    if (this.#warned === null) return;
    this.#warned = null;
    this.calm();
  }
}
