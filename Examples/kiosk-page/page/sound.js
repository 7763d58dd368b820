// Short signals.  They differ in rhythm, not only in pitch: success is quick, failure is slow, attention is even.

// Seconds from the start, seconds of length, hertz.
const patterns = {
  success: [[0, 0.08, 880], [0.12, 0.08, 1175], [0.24, 0.2, 1568]],
  failure: [[0, 0.45, 262], [0.65, 0.45, 262]],
  attention: [[0, 0.12, 660], [0.3, 0.12, 660]],
};

let context = null;

/** Plays a signal; silent where the browser does not allow it. */
export function play(name) {
  try {
    context ??= new AudioContext();
    if (context.state === "suspended") context.resume().catch(() => {});
    for (const [start, length, pitch] of patterns[name]) {
      const [tone, volume] = [context.createOscillator(), context.createGain()];
      const from = context.currentTime + start;
      tone.frequency.value = pitch;
      volume.gain.setValueAtTime(0, from);
      volume.gain.linearRampToValueAtTime(0.25, from + 0.01);
      volume.gain.setValueAtTime(0.25, from + length - 0.02);
      volume.gain.linearRampToValueAtTime(0, from + length);
      tone.connect(volume).connect(context.destination);
      tone.start(from);
      tone.stop(from + length);
    }
    document.dispatchEvent(new CustomEvent("kiosk-sound", { detail: name }));
  } catch {
    // No sound device: text and light say the same.
  }
}
